/* Blocks of all kinds, by threads that come and go and free each other's, while every libc function that the allocator
 * calls allocates, frees and forks (front.c).  Ends with 0 if no block was ever given to two. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <hmalloc/hmalloc_local.h>

#include "front.h"

enum { kThreads = 4, kRounds = 6, kTurns = 4000, kShared = 64, kOwn = 48 };

typedef struct {
  size_t size;
  unsigned long mark;
} Block;

static _Atomic(Block*) shared[kShared];

#define SERVE(call) (front_serving = 1, (call), front_serving = 0)

static void fail(const char* what) {
  fprintf(stderr, "%s\n", what);
  _exit(1);
}

static uint32_t next(uint64_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return (uint32_t)(*state >> 24);
}

static size_t some_size(uint64_t* state) {
  uint32_t which = next(state) % 200;
  size_t most = which < 120 ? 1000 : which < 180 ? 20000 : which < 198 ? 500000 : 3000000;
  return sizeof(Block) + 8 + next(state) % most;
}

static unsigned long* last_word(Block* block) {
  return (unsigned long*)((char*)block + (block->size - sizeof(Block) - 8) / 8 * 8 + sizeof(Block));
}
static Block* marked(Block* block, size_t size, unsigned long mark) {
  if (block == NULL) fail("no memory");
  block->size = size;
  block->mark = mark;
  *last_word(block) = mark;
  return block;
}
static void require_mark(Block* block) {
  if (*last_word(block) != block->mark) fail("a block was given to two");
}

static Block* get(uint64_t* state, unsigned long mark) {
  size_t size = some_size(state);
  Block* served;
  switch (next(state) % 4) {
    case 0: SERVE(served = calloc(1, size)); break;
    case 1: SERVE(served = aligned_alloc(64u << next(state) % 7, size)); break;
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
  if (served == NULL || served->mark != old) fail("realloc lost what was in the block");
  return marked(served, size, mark);
}

static void local_turn(Block** own, uint64_t* state, unsigned long mark) {
  Block* served;
  if (*own != NULL) {
    require_mark(*own);
    size_t size = sizeof(Block) + 8 + next(state) % 1500;
    SERVE(served = hm_local_realloc(*own, size));
    *own = marked(served, size, mark);
  } else {
    SERVE(served = hm_local_alloc(200));
    *own = marked(served, 200, mark);
  }
  if (next(state) % 4 != 0) return;
  SERVE(hm_local_free(*own));
  *own = NULL;
}

static void refused(void) {
  void* served;
  SERVE(served = malloc(SIZE_MAX / 4));
  if (served != NULL) fail("more memory than there is");
}

static void* body(void* seed) {
  uint64_t state = 0x9e3779b97f4a7c15u * ((uintptr_t)seed + 1);
  Block* own[kOwn] = {0};
  Block* local[4] = {0};
  for (unsigned long turn = 1; turn <= kTurns; turn++) {
    unsigned long mark = ((unsigned long)(uintptr_t)seed << 32) | turn;
    Block** slot = &own[next(&state) % kOwn];
    if (*slot == NULL) *slot = get(&state, mark);
    else if (next(&state) % 3 == 0) *slot = resized(&state, *slot, mark);
    else {
      Block* others = atomic_exchange(&shared[next(&state) % kShared], *slot);
      *slot = NULL;
      if (others != NULL) give(others);
    }
    local_turn(&local[turn % 4], &state, mark);
    if (turn % 500 == 0) refused();
  }
  for (int i = 0; i < kOwn; i++)
    if (own[i] != NULL) give(own[i]);
  return NULL;
}

int main(void) {
  alarm(100);
  for (uintptr_t round = 0; round < kRounds; round++) {
    pthread_t threads[kThreads];
    for (uintptr_t i = 0; i < kThreads; i++)
      if (pthread_create(&threads[i], NULL, body, (void*)(round * kThreads + i + 1)) != 0) fail("no thread");
    for (int i = 0; i < kThreads; i++) pthread_join(threads[i], NULL);
  }
  for (int i = 0; i < kShared; i++)
    if (atomic_load(&shared[i]) != NULL) give(atomic_load(&shared[i]));
  return front_report() == 0 ? 0 : 1;
}
