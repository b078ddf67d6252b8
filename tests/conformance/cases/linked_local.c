/* Local blocks in the wrong hands.  Linked with libhmalloc, for the fast paths are inline in its header. */
#include <sched.h>
#include <stdatomic.h>

#include "case.h"
#include "hmalloc/hmalloc_local.h"

enum { kSlots = 4000 };
static _Atomic(unsigned char*) handed[kSlots];
static atomic_int stopping;

static size_t size_of(size_t slot) { return 1 + slot * 13 % 4000; }

static void* free_what_is_handed(void* unused) {
  (void)unused;
  for (size_t slot = 0; !atomic_load(&stopping); slot = (slot + 1) % kSlots) {
    unsigned char* block = atomic_exchange(&handed[slot], NULL);
    if (block == NULL) continue;
    REQUIRE(is_marked(block, size_of(slot), (unsigned)slot));
    hm_local_free(block);
  }
  return NULL;
}

/* Half of the blocks come back to their owner, half are freed by others at the same time. */
CASE(local_foreign_free) {
  pthread_t threads[2];
  start_threads(threads, 2, free_what_is_handed);
  size_t resident = 0;
  double end = seconds_now() + case_seconds();
  for (size_t i = 0; seconds_now() < end; i++) {
    size_t slot = i * 7 % kSlots;
    unsigned char* block = (unsigned char*)hm_local_alloc(size_of(slot));
    REQUIRE(block != NULL);
    mark(block, size_of(slot), (unsigned)slot);
    block = atomic_exchange(&handed[slot], block);
    if (block != NULL) {
      REQUIRE(is_marked(block, size_of(slot), (unsigned)slot));
      hm_local_free(block);
    }
    if (i == 200000) resident = resident_bytes();
    if (i % 64 == 0) sched_yield();
  }
  size_t last = resident_bytes();
  atomic_store(&stopping, 1);
  join_threads(threads, 2);
  if (resident != 0) REQUIRE_BELOW(growth(last, resident), 64 * MIB);
}

static void* fill_and_end(void* unused) {
  (void)unused;
  for (size_t slot = 0; slot < kSlots; slot++) {
    unsigned char* block = (unsigned char*)hm_local_alloc(size_of(slot));
    REQUIRE(block != NULL);
    mark(block, size_of(slot), (unsigned)slot);
    atomic_store(&handed[slot], block);
  }
  return NULL;
}

/* The owner is gone, perhaps its memory has an heir already. */
CASE(local_outlives_owner) {
  for (int round = 0; round < 50; round++) {
    join_thread(start_thread(fill_and_end, NULL));
    pthread_t next = start_thread(free_what_is_handed, NULL);
    for (size_t slot = 0; slot < kSlots; slot++) {
      unsigned char* block = atomic_exchange(&handed[slot], NULL);
      if (block == NULL) continue;
      REQUIRE(is_marked(block, size_of(slot), (unsigned)slot));
      hm_local_free(block);
    }
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

/* Not what the header says, yet no reason to corrupt anything: it is routed, or refused with a message. */
CASE(local_free_by_free) {
  void* blocks[3];
  for (size_t i = 0; i < COUNT_OF(blocks); i++) {
    REQUIRE((blocks[i] = hm_local_alloc(100)) != NULL);
    mark(blocks[i], 100, (unsigned)i);
  }
  join_thread(start_thread(free_by_free, blocks[1]));
  for (unsigned i = 0; i < 10000; i++) mark(hm_local_alloc(100), 100, i);
  REQUIRE(is_marked(blocks[0], 100, 0) && is_marked(blocks[2], 100, 2));
  hm_local_free(blocks[0]);
  free(blocks[2]);
}

CASE_MAIN()
