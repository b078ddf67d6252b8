/* One OS call of the allocator fails, whichever HM_FAIL_NTH names: every function may say NULL, none may crash, no
 * content may change, and what was half made must not be lost again and again. */
#include <malloc.h>

#include "case.h"

enum { kSlots = 400, kThreads = 3 };

typedef struct {
  void* block;
  size_t size;
  unsigned seed;
} Slot;

static void replace(Slot* slot, size_t size, unsigned seed, uint32_t how) {
  void* block;
  if (slot->block != NULL && how % 4 == 0) {
    block = realloc(slot->block, size);
    REQUIRE(block != NULL || is_marked(slot->block, slot->size, slot->seed));
  } else {
    if (slot->block != NULL) free_marked(slot->block, slot->size, slot->seed);
    slot->block = NULL;
    block = how % 4 == 1 ? calloc(1, size) : how % 4 == 2 ? memalign(512, size) : malloc(size);
  }
  REQUIRE(block != NULL || errno == ENOMEM);
  if (block == NULL) return;
  mark(block, size, seed);
  *slot = (Slot){block, size, seed};
}

static void* stress(void* seed) {
  uint64_t state = (uint64_t)(uintptr_t)seed * 0x9E3779B97F4A7C15u;
  Slot slots[kSlots] = {{NULL, 0, 0}};
  for (unsigned i = 0; i < 6000; i++) {
    uint32_t dice = random_next(&state) % 1000;
    size_t most = dice < 900 ? 2000 : dice < 990 ? 60000 : 5000000;
    errno = 0;
    replace(&slots[random_next(&state) % kSlots], 16 + random_next(&state) % most, i, random_next(&state));
    if (i % 2000 == 1999) malloc_trim(0);
  }
  for (size_t i = 0; i < kSlots; i++)
    if (slots[i].block != NULL) free_marked(slots[i].block, slots[i].size, slots[i].seed);
  return NULL;
}

CASE(nth_os_call_fails) {
  size_t first_round = 0;
  for (int round = 0; round < 4; round++) {
    pthread_t threads[kThreads];
    size_t started = 0;
    /* The thread's stack is no business of the allocator, its thread-local storage is. */
    while (started < kThreads && pthread_create(&threads[started], NULL, stress, (void*)(uintptr_t)(started + 1)) == 0)
      started++;
    stress((void*)(uintptr_t)77);
    join_threads(threads, started);
    if (round == 0) first_round = mapped_bytes();
  }
  REQUIRE_BELOW(growth(mapped_bytes(), first_round), 200 * MIB);
}

CASE_MAIN()
