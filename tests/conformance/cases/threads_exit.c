/* Threads that end while their blocks live on in the hands of others, and destructors that allocate late. */
#include <stdatomic.h>

#include "stats.h"

enum { kHanded = 200, kProducers = 8 };

typedef struct {
  void* blocks[kHanded];
  size_t sizes[kHanded];
  unsigned generation;
} Mailbox;
static Mailbox boxes[kProducers];

static void* free_predecessors_then_fill(void* number) {
  Mailbox* box = &boxes[(uintptr_t)number];
  uint64_t state = (uint64_t)box->generation * 2654435761u + 17;
  for (unsigned i = 0; i < kHanded; i++) {
    if (box->generation > 0) free_marked(box->blocks[i], box->sizes[i], box->generation - 1 + i);
    box->sizes[i] = 1 + random_next(&state) % 3000;
    box->blocks[i] = take_marked(box->sizes[i], box->generation + i);
  }
  box->generation++;
  return NULL;
}

CASE(exit_handoff) {
  double end = seconds_now() + case_seconds();
  while (seconds_now() < end) { run_threads(kProducers, free_predecessors_then_fill); }
  REQUIRE_BELOW(resident_bytes(), 300 * MIB);
  for (int i = 0; i < kProducers; i++)
    for (unsigned j = 0; j < kHanded; j++) free_marked(boxes[i].blocks[j], boxes[i].sizes[j], boxes[i].generation - 1 + j);
}

enum { kOwned = 1200, kHeirs = 4 };
static _Atomic(void*) owned[kOwned];

static void* own_and_leave(void* unused) {
  for (unsigned i = 0; i < kOwned; i++) atomic_store(&owned[i], take_marked(24 + i % 500, i));
  return unused;
}

/* Starts anywhere in the owner's life: while it fills, while it ends, after it. */
static void* free_and_allocate(void* first) {
  void* mine[kOwned / kHeirs];
  size_t count = 0;
  for (unsigned i = (unsigned)(uintptr_t)first; i < kOwned; i += kHeirs) {
    void* block;
    while ((block = atomic_exchange_explicit(&owned[i], NULL, memory_order_acquire)) == NULL) sched_yield();
    free_marked(block, 24 + i % 500, i);
    mine[count++] = take_marked(24 + i % 500, i + 1);
  }
  for (unsigned i = (unsigned)(uintptr_t)first, j = 0; j < count; i += kHeirs, j++)
    free_marked(mine[j], 24 + i % 500, i + 1);
  return NULL;
}

CASE(inherit_race) {
  for (int round = 0; round < 400; round++) {
    pthread_t owner = start_thread(own_and_leave, NULL);
    run_threads(kHeirs, free_and_allocate);
    join_thread(owner);
  }
  struct hm_stats stats;
  /* A thread that finds the heaps of the dead all being drained by others makes one more. */
  if (own_stats(&stats)) REQUIRE(stats.heaps <= 2 * (1 + 1 + kHeirs));
}

enum { kKeys = 40 };
static pthread_key_t keys[kKeys];

/* Values count down: the destructors of the last rounds run when the allocator's own may have run already. */
static void set_key(size_t size, unsigned key, unsigned rounds) {
  unsigned char* block = (unsigned char*)take(size);
  block[0] = (unsigned char)key;
  block[1] = (unsigned char)rounds;
  REQUIRE(pthread_setspecific(keys[key], block) == 0);
}

static void allocate_and_set_again(void* value) {
  unsigned key = ((unsigned char*)value)[0], rounds = ((unsigned char*)value)[1];
  free(value);
  free(malloc(2000));
  if (rounds > 0) set_key(700, key, rounds - 1);
}

static void* set_all_keys(void* unused) {
  for (unsigned i = 0; i < kKeys; i++) set_key(300, i, 2);
  return unused;
}

CASE(tls_dtor) {
  for (int i = 0; i < kKeys; i++) REQUIRE(pthread_key_create(&keys[i], allocate_and_set_again) == 0);
  for (int i = 0; i < 100; i++) join_thread(start_thread(set_all_keys, NULL));
  size_t resident = resident_bytes();
  for (int i = 0; i < 2200; i++) join_thread(start_thread(set_all_keys, NULL));
  REQUIRE_BELOW(growth(resident_bytes(), resident), 30 * MIB);
}

CASE_MAIN()
