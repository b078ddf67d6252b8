/* own_heaps [looks]: threads that come and go allocate, resize and free in heaps that they share, while others make and destroy
 * such heaps, collect, look, and fork; each child uses all heaps that it inherits, and destroys them.  Every block has the
 * marks that it was given, and nobody waits for ever.  looks: the library knows what lies around its blocks. */
#include <hmalloc/hmalloc.h>
#include <malloc.h>
#include <stdatomic.h>

#include "case.h"
#include "marked_block.h"

enum { kForks = 100, kHeaps = 6, kSlots = 64, kChurners = 2, kSteps = 3000, kPatience = 800 /* seconds */ };

/* Who uses the heap shares the lock; who destroys it has it alone. */
static struct {
  pthread_rwlock_t lock;
  struct hm_heap* heap;
  _Atomic(Block*) blocks[kSlots];
} all[kHeaps];
static int looks;
static atomic_int stopping;

static size_t random_size(uint64_t* state) {
  size_t most = random_next(state) % 256 == 0  ? 3000000
                : random_next(state) % 64 == 0 ? 300000
                : random_next(state) % 8 == 0  ? 40000
                                               : 2000;
  return sizeof(Block) + 1 + random_next(state) % most;
}

static Block* resized(struct hm_heap* heap, Block* block, size_t size, int by_heap) {
  size_t before = block->size;
  block = by_heap ? hm_heap_realloc(heap, block, size) : realloc(block, hidden_size(size));
  REQUIRE(block != NULL && block->size == before);
  return marked(block, size);
}

static void churn(size_t which, uint64_t* state) {
  struct hm_heap* heap = all[which].heap;
  _Atomic(Block*)* slot = &all[which].blocks[random_next(state) % kSlots];
  Block* block = atomic_exchange(slot, NULL);
  size_t size = random_size(state);
  uint32_t what = random_next(state) % 8;
  if (block != NULL && what < 4) {
    block = resized(heap, block, size, what % 2 == 0);
  } else {
    release(block);
    block = what == 7 ? NULL : marked(what == 6 ? hm_heap_aligned_alloc(heap, 256, size) : hm_heap_malloc(heap, size), size);
  }
  release(atomic_exchange(slot, block));
}

static void* churn_for_a_while(void* number) {
  uint64_t state = 77 + (uintptr_t)number;
  for (int i = 0; i < kSteps && !atomic_load(&stopping); i++) {
    size_t which = random_next(&state) % kHeaps;
    pthread_rwlock_rdlock(&all[which].lock);
    churn(which, &state);
    pthread_rwlock_unlock(&all[which].lock);
  }
  return NULL;
}

/* Threads end, and others go on with their blocks. */
static void* start_others(void* number) {
  for (uintptr_t life = (uintptr_t)number; !atomic_load(&stopping); life += kChurners)
    join_thread(start_thread(churn_for_a_while, (void*)life));
  return NULL;
}

static void* destroy_and_make(void* unused) {
  uint64_t state = 4711;
  while (!atomic_load(&stopping)) {
    size_t which = random_next(&state) % kHeaps;
    pthread_rwlock_wrlock(&all[which].lock);
    for (size_t i = 0; i < kSlots; i++) {
      Block* block = atomic_exchange(&all[which].blocks[i], NULL);
      if (i % 2 == 0) release(block);
    }
    hm_heap_destroy(all[which].heap);
    all[which].heap = hm_heap_create();
    REQUIRE(all[which].heap != NULL);
    pthread_rwlock_unlock(&all[which].lock);
    sleep_ms(1);
  }
  return unused;
}

static void* collect(void* unused) {
  while (!atomic_load(&stopping)) {
    REQUIRE((hm_check() > 0) == looks);
    hm_collect();
    sleep_ms(1);
  }
  return unused;
}

static _Noreturn void live_as_child(unsigned number) {
  alarm(kPatience);
  uint64_t state = 99 + number;
  for (size_t which = 0; which < kHeaps; which++) {
    for (int i = 0; i < 100; i++) churn(which, &state);
    if (number % 3 == 0) REQUIRE((hm_check() > 0) == looks);
    if (number % 3 == 1) malloc_trim(0);
    hm_heap_destroy(all[which].heap);
    all[which].heap = hm_heap_create();
    for (size_t i = 0; i < kSlots; i++) atomic_store(&all[which].blocks[i], NULL);
    for (int i = 0; i < 100; i++) churn(which, &state);
  }
  _exit(0);
}

/* No heap may be in the middle of its destruction: that one is nobody's in the child. */
static pid_t fork_with_all_heaps(void) {
  for (size_t i = 0; i < kHeaps; i++) pthread_rwlock_rdlock(&all[i].lock);
  pid_t child = fork();
  if (child == 0) return child;
  for (size_t i = 0; i < kHeaps; i++) pthread_rwlock_unlock(&all[i].lock);
  return child;
}

int main(int argc, char** argv) {
  (void)argv;
  looks = argc > 1;
  void* block = take(100); /* one is in use at any time */
  for (size_t i = 0; i < kHeaps; i++) {
    REQUIRE(pthread_rwlock_init(&all[i].lock, NULL) == 0);
    all[i].heap = hm_heap_create();
    REQUIRE(all[i].heap != NULL);
  }
  pthread_t churners[kChurners], maker = start_thread(destroy_and_make, NULL), collector = start_thread(collect, NULL);
  start_threads(churners, kChurners, start_others);
  for (unsigned i = 0; i < kForks; i++) {
    pid_t child = fork_with_all_heaps();
    REQUIRE(child >= 0);
    if (child == 0) live_as_child(i);
    require_good_end(child);
  }
  atomic_store(&stopping, 1);
  join_threads(churners, kChurners);
  join_thread(maker);
  join_thread(collector);
  for (size_t i = 0; i < kHeaps; i++) {
    struct hm_heap_stats stats = {.size = sizeof stats};
    for (size_t k = 0; k < kSlots; k++) release(atomic_exchange(&all[i].blocks[k], NULL));
    hm_heap_stats_get(all[i].heap, &stats);
    REQUIRE(stats.blocks == 0);
    hm_heap_destroy(all[i].heap);
  }
  free(block);
  return 0;
}
