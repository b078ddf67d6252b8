/* Blocks of all kinds, by threads that come and go and free each other's, while every libc function that the allocator
 * calls allocates, frees and forks (front.c).  Ends with 0 if no block was ever given to two. */
#include <stdatomic.h>
#include <stdlib.h>

#include <hmalloc/hmalloc_local.h>

#include "case.h"
#include "front.h"

enum { kThreads = 4, kRounds = 6, kTurns = 4000, kShared = 64, kOwn = 48 };

typedef struct {
  size_t size;
  unsigned long mark;
} Block;

static _Atomic(Block*) shared[kShared];

#define SERVE(call) (front_serving = 1, (call), front_serving = 0)

static size_t some_size(uint64_t* state) {
  uint32_t which = random_next(state) % 200;
  size_t most = which < 120 ? 1000 : which < 180 ? 20000 : which < 198 ? 500000 : 3000000;
  return sizeof(Block) + 8 + random_next(state) % most;
}

static unsigned long* last_word(Block* block) {
  return (unsigned long*)((char*)block + (block->size - sizeof(Block) - 8) / 8 * 8 + sizeof(Block));
}
static Block* marked(Block* block, size_t size, unsigned long mark) {
  REQUIRE(block != NULL);
  block->size = size;
  block->mark = mark;
  *last_word(block) = mark;
  return block;
}
static void require_mark(Block* block) { REQUIRE(*last_word(block) == block->mark && "no block is given to two"); }

static Block* get(uint64_t* state, unsigned long mark) {
  size_t size = some_size(state);
  Block* served;
  switch (random_next(state) % 4) {
    case 0: SERVE(served = calloc(1, size)); break;
    case 1: SERVE(served = aligned_alloc(64u << random_next(state) % 7, size)); break;
    default: SERVE(served = malloc(size));
  }
  return marked(served, size, mark);
}

static void give(Block* block) {
  require_mark(block);
  SERVE(free(block));
}

static Block* resized(uint64_t* state, Block* block, unsigned long mark) {
  require_mark(block);
  size_t size = some_size(state);
  unsigned long old = block->mark;
  Block* served;
  SERVE(served = realloc(block, size));
  REQUIRE(served != NULL && served->mark == old);
  return marked(served, size, mark);
}

static void local_turn(Block** own, uint64_t* state, unsigned long mark) {
  Block* served;
  size_t size = *own != NULL ? sizeof(Block) + 8 + random_next(state) % 1500 : 200;
  if (*own != NULL) {
    require_mark(*own);
    SERVE(served = hm_local_realloc(*own, size));
  } else {
    SERVE(served = hm_local_alloc(size));
  }
  *own = marked(served, size, mark);
  if (random_next(state) % 4 != 0) return;
  SERVE(hm_local_free(*own));
  *own = NULL;
}

static void refused(void) {
  void* served;
  SERVE(served = malloc(SIZE_MAX / 4));
  REQUIRE(served == NULL);
}

static void* body(void* number) {
  static _Atomic(unsigned long) begun;
  unsigned long seed = atomic_fetch_add(&begun, 1) + 1;
  uint64_t state = 0x9e3779b97f4a7c15u * (seed + 1);
  Block* own[kOwn] = {0};
  Block* local[4] = {0};
  for (unsigned long turn = 1; turn <= kTurns; turn++) {
    unsigned long mark = seed << 32 | turn;
    Block** slot = &own[random_next(&state) % kOwn];
    if (*slot == NULL) *slot = get(&state, mark);
    else if (random_next(&state) % 3 == 0) *slot = resized(&state, *slot, mark);
    else {
      Block* others = atomic_exchange(&shared[random_next(&state) % kShared], *slot);
      *slot = NULL;
      if (others != NULL) give(others);
    }
    local_turn(&local[turn % 4], &state, mark);
    if (turn % 500 == 0) refused();
  }
  for (int i = 0; i < kOwn; i++)
    if (own[i] != NULL) give(own[i]);
  return number;
}

int main(void) {
  alarm(getenv("HMALLOC_PROFILE") != NULL ? 800 : 400);  // backtraces by the hundred thousand
  for (int round = 0; round < kRounds; round++) run_threads(kThreads, body);
  for (int i = 0; i < kShared; i++)
    if (atomic_load(&shared[i]) != NULL) give(atomic_load(&shared[i]));
  return front_report() == 0 ? 0 : 1;
}
