/* Local blocks in the wrong hands. */
#include <sched.h>
#include <stdatomic.h>

#include "case.h"
#include "hmalloc/hmalloc_local.h"

enum { kSlots = 4000 };
static _Atomic(void*) handed[kSlots];
static atomic_int stopping;

static size_t size_of(size_t slot) { return 1 + slot * 13 % 4000; }

static void* take_local(size_t size, unsigned seed) {
  void* block = hm_local_alloc(size);
  REQUIRE(block != NULL);
  mark(block, size, seed);
  return block;
}

/* Puts a block or nothing in the place of what is handed there, and frees that. */
static void hand(size_t slot, void* block) {
  block = atomic_exchange(&handed[slot], block);
  if (block == NULL) return;
  REQUIRE(is_marked(block, size_of(slot), (unsigned)slot));
  slot % 2 == 0 ? hm_local_free(block) : hm_local_free_sized(block, size_of(slot));
}

static void* free_what_is_handed(void* unused) {
  for (size_t slot = 0; !atomic_load(&stopping); slot = (slot + 1) % kSlots) hand(slot, NULL);
  return unused;
}

/* Half of the blocks are freed by others, at the same time. */
CASE(local_foreign_free) {
  pthread_t threads[2];
  start_threads(threads, 2, free_what_is_handed);
  size_t resident = 0;
  double end = seconds_now() + case_seconds();
  for (size_t i = 0; seconds_now() < end; i++) {
    size_t slot = i * 7 % kSlots;
    hand(slot, take_local(size_of(slot), (unsigned)slot));
    if (i == 200000) resident = resident_bytes();
    if (i % 64 == 0) sched_yield();
  }
  size_t last = resident_bytes();
  atomic_store(&stopping, 1);
  join_threads(threads, 2);
  if (resident != 0) REQUIRE_BELOW(growth(last, resident), 64 * MIB);
}

static void* fill_and_end(void* unused) {
  for (size_t slot = 0; slot < kSlots; slot++) hand(slot, take_local(size_of(slot), (unsigned)slot));
  return unused;
}

/* The owner is gone, perhaps its memory has an heir already. */
CASE(local_outlives_owner) {
  for (int round = 0; round < 50; round++) {
    join_thread(start_thread(fill_and_end, NULL));
    pthread_t next = start_thread(free_what_is_handed, NULL);
    for (size_t slot = 0; slot < kSlots; slot++) hand(slot, NULL);
    atomic_store(&stopping, 1);
    join_thread(next);
    atomic_store(&stopping, 0);
  }
}

CASE(local_realloc) {
  for (size_t size = 1; size < 20000; size += size / 7 + 1) {
    unsigned char* block = (unsigned char*)hm_local_alloc(size);
    REQUIRE(block != NULL && (uintptr_t)block % 16 == 0 && hm_local_usable_size(block) >= size);
    memset(block, 0x33, size);
    block = (unsigned char*)hm_local_realloc(block, size * 2);
    REQUIRE(block != NULL && block[0] == 0x33 && block[size - 1] == 0x33);
    hm_local_free(block);
  }
  hm_local_free(NULL);
}

static void* free_by_free(void* block) {
  free(block);
  return NULL;
}

CASE(local_free_by_free) {
  void* blocks[3];
  for (unsigned i = 0; i < COUNT_OF(blocks); i++) blocks[i] = take_local(100, i);
  join_thread(start_thread(free_by_free, blocks[1]));
  for (unsigned i = 0; i < 10000; i++) take_local(100, i);
  REQUIRE(is_marked(blocks[0], 100, 0) && is_marked(blocks[2], 100, 2));
  hm_local_free(blocks[0]);
  free(blocks[2]);
}

CASE_MAIN()
