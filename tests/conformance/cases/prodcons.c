/* Messages: allocated here, freed there, for as long as the clock says.  Memory must stop growing. */
#include <sched.h>
#include <stdatomic.h>

#include "stats.h"

enum { kSlots = 1024, kMax = 8, kHeld = 64 };

/* One producer, one consumer; the cursors lie on lines of their own. */
typedef struct {
  _Alignas(64) _Atomic(size_t) head;
  _Alignas(64) _Atomic(size_t) tail;
  _Alignas(64) void* slots[kSlots];
} Queue;

static Queue queues[kMax];
static atomic_int stopping;

static int is_full(Queue* queue) {
  size_t head = atomic_load_explicit(&queue->head, memory_order_relaxed);
  return head - atomic_load_explicit(&queue->tail, memory_order_acquire) == kSlots;
}

static void send_block(Queue* queue, void* block) {
  size_t head = atomic_load_explicit(&queue->head, memory_order_relaxed);
  while (is_full(queue)) sched_yield();
  queue->slots[head % kSlots] = block;
  atomic_store_explicit(&queue->head, head + 1, memory_order_release);
}

/* NULL when there is none: the caller decides whether to wait. */
static void* receive_block(Queue* queue) {
  size_t tail = atomic_load_explicit(&queue->tail, memory_order_relaxed);
  if (atomic_load_explicit(&queue->head, memory_order_acquire) == tail) return NULL;
  void* block = queue->slots[tail % kSlots];
  atomic_store_explicit(&queue->tail, tail + 1, memory_order_release);
  return block;
}

typedef struct {
  uint32_t size;
  uint32_t number;
} Message;

static Message* new_message(uint64_t* state, size_t least, size_t most) {
  uint32_t size = (uint32_t)(least + random_next(state) % (most - least + 1));
  Message* message = (Message*)take(size);
  message->size = size;
  message->number = random_next(state);
  mark(message + 1, size - sizeof *message, message->number);
  return message;
}
static void free_message(Message* message) {
  REQUIRE(is_marked(message + 1, message->size - sizeof *message, message->number));
  free(message);
}

static void* consume(void* argument) {
  Queue* queue = (Queue*)argument;
  for (;;) {
    int last_look = atomic_load_explicit(&stopping, memory_order_acquire);
    Message* message = (Message*)receive_block(queue);
    if (message != NULL) free_message(message);
    else if (last_look) return NULL;
    else sched_yield();
  }
}

static void require_flat(size_t half, size_t end) {
  REQUIRE_BELOW(growth(end, half), 16 * MIB + half / 8);
  REQUIRE_BELOW(end, 200 * MIB);
}

static void produce_and_consume(size_t consumers, size_t least, size_t most) {
  pthread_t threads[kMax];
  for (size_t i = 0; i < consumers; i++) threads[i] = start_thread(consume, &queues[i]);
  uint64_t state = 0x9E3779B97F4A7C15u;
  double begin = seconds_now(), length = case_seconds();
  size_t half = 0;
  for (size_t i = 0;; i++) {
    send_block(&queues[i % consumers], new_message(&state, least, most));
    if (i % 4096 != 0) continue;
    double passed = seconds_now() - begin;
    if (half == 0 && passed > length / 2) half = resident_bytes();
    if (passed > length) break;
  }
  require_flat(half, resident_bytes());
  atomic_store(&stopping, 1);
  join_threads(threads, consumers);
}

CASE(prodcons1) { produce_and_consume(1, 40, 300); }
CASE(prodcons8) { produce_and_consume(8, 16, 3000); }
CASE(consumer_never_allocs) { produce_and_consume(2, 64, 512); }

/* A thread that only frees needs no heap of its own. */
CASE(consumer_no_heap) {
  uint64_t state = 99;
  pthread_t consumer = start_thread(consume, &queues[0]);
  for (int i = 0; i < 200000; i++) send_block(&queues[0], new_message(&state, 64, 512));
  while (atomic_load(&queues[0].tail) != 200000) sched_yield();
  struct hm_stats stats;
  if (own_stats(&stats)) REQUIRE(stats.live_heaps == 1);
  atomic_store(&stopping, 1);
  join_thread(consumer);
}

enum { kRing = 4 };

/* Takes from its own queue, holds a while, frees; sends fresh blocks to the next: every block moves on once. */
static void* drift(void* argument) {
  size_t self = (size_t)(uintptr_t)argument;
  uint64_t state = self * 7919 + 1;
  Message* held[kHeld] = {NULL};
  for (size_t i = 0; !atomic_load_explicit(&stopping, memory_order_relaxed); i++) {
    Message* received = (Message*)receive_block(&queues[self]);
    if (received != NULL) {
      if (held[i % kHeld] != NULL) free_message(held[i % kHeld]);
      held[i % kHeld] = received;
    }
    Queue* next = &queues[(self + 1) % kRing];
    if (is_full(next)) sched_yield();
    else send_block(next, new_message(&state, 32, 400));
  }
  for (size_t i = 0; i < kHeld; i++)
    if (held[i] != NULL) free_message(held[i]);
  return NULL;
}

CASE(drift_ring) {
  pthread_t threads[kRing];
  start_threads(threads, kRing, drift);
  sleep_ms((long)(case_seconds() * 500));
  size_t half = resident_bytes();
  sleep_ms((long)(case_seconds() * 500));
  size_t end = resident_bytes();
  atomic_store(&stopping, 1);
  join_threads(threads, kRing);
  require_flat(half, end);
  for (int i = 0; i < kRing; i++)
    for (Message* left; (left = (Message*)receive_block(&queues[i])) != NULL;) free_message(left);
}

CASE_MAIN()
