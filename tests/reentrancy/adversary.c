/* adversary [looks]: no block in use is written to by mistake here, so nothing may be reported, and nobody may wait for ever,
 * whatever was going on when a process was forked or when a mistake was found.  looks: the library knows what lies around its
 * blocks. */
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>

#include "case.h"
#include "marked_block.h"

__attribute__((weak)) size_t hm_check(void); /* of the library that is preloaded */

enum { kForks = 40, kChurners = 3, kSlots = 256, kPatience = 800 /* seconds */ };

static int looks;
static size_t most = 300000;
static atomic_int stopping, at_work;
static _Atomic(Block*) shared[kSlots];

static void look(void) { REQUIRE((hm_check() > 0) == looks); }

/* ---- Blocks with marks, which any thread takes and leaves. ---- */

static Block* resized(Block* block, size_t size) {
  size_t before = block == NULL ? 0 : block->size;
  block = realloc(block, hidden_size(size));
  if (before != 0) REQUIRE(block != NULL && block->size == before);
  return marked(block, size);
}

static size_t random_size(uint64_t* state) {
  size_t largest = random_next(state) % 64 == 0 ? 300000 : random_next(state) % 8 == 0 ? 40000 : 2000;
  return sizeof(Block) + 1 + random_next(state) % (largest < most ? largest : most);
}

static void churn(uint64_t* state) {
  size_t slot = random_next(state) % kSlots, size = random_size(state);
  Block* block = atomic_exchange(&shared[slot], NULL);
  switch (random_next(state) % 4) {
    case 0: block = resized(block, block == NULL ? size : block->size); break;
    case 1: block = resized(block, size); break;
    default:
      release(block);
      block = random_next(state) % 2 == 0 ? NULL : marked(aligned_alloc(random_next(state) % 8 == 0 ? 256 : 16, size), size);
  }
  release(atomic_exchange(&shared[slot], block));
}

static void* churn_until_stopped(void* number) {
  uint64_t state = 77 + (uintptr_t)number;
  churn(&state);
  atomic_fetch_add(&at_work, 1);
  while (!atomic_load_explicit(&stopping, memory_order_relaxed)) churn(&state);
  return NULL;
}

static void* look_until_stopped(void* unused) {
  while (!atomic_load_explicit(&stopping, memory_order_relaxed)) {
    look();
    malloc_trim(0);
  }
  return unused;
}

/* ---- Forks in the middle of that, from a thread that looks, trims and allocates itself. ---- */

static _Noreturn void live_as_child(unsigned number) {
  alarm(kPatience);
  uint64_t state = 4711 + number;
  for (unsigned step = number; step < number + 9; step++) {
    if (step % 3 == 0) look();
    if (step % 3 == 1) malloc_trim(0);
    for (int i = 0; step % 3 == 2 && i < 300; i++) churn(&state);
  }
  _exit(0);
}

static void fork_while_others_work(void) {
  uint64_t state = 99;
  pthread_t churners[kChurners];
  start_threads(churners, kChurners, churn_until_stopped);
  pthread_t looker = start_thread(look_until_stopped, NULL);
  for (unsigned i = 0; i < kForks; i++) {
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) live_as_child(i);
    look();
    churn(&state);
    require_good_end(child);
  }
  atomic_store(&stopping, 1);
  join_threads(churners, kChurners);
  join_thread(looker);
  for (size_t i = 0; i < kSlots; i++) release(atomic_exchange(&shared[i], NULL));
  look();
}

/* ---- A double free, found when its cache gives both entries back at the latest; and who answers the abort goes on. ---- */

static void answer(int number) {
  static Block* blocks[1000];
  static int answers;
  REQUIRE(answers++ == 0);
  for (int round = 0; round < 2; round++) {
    for (size_t i = 0; i < COUNT_OF(blocks); i++) blocks[i] = marked(take(i % 10 == 0 ? 20000 : 100), 98 + i % 3);
    look();
    malloc_trim(0);
    for (size_t i = 0; i < COUNT_OF(blocks); i++) release(blocks[i]);
    malloc_trim(0);
  }
  _exit(number == SIGABRT ? 0 : 1);
}

static void* free_twice(void* size) {
  void* others[16];
  for (size_t i = 0; i < COUNT_OF(others); i++) others[i] = take((size_t)size);
  void *block = take((size_t)size), *again = hidden(block);
  free(block);
  free_all(others, COUNT_OF(others) - 1); /* but for one the superblock would go */
  free(again);
  return NULL;
}

static void answer_a_double_free(size_t size, int by_another) {
  pid_t child = fork();
  REQUIRE(child >= 0);
  if (child != 0) return require_good_end(child);
  alarm(kPatience);
  REQUIRE(signal(SIGABRT, answer) != SIG_ERR);
  most = 50; /* others do not ask for blocks of that size: then it would be theirs */
  pthread_t churners[kChurners];
  start_threads(churners, kChurners, churn_until_stopped);
  while (atomic_load(&at_work) < kChurners) sched_yield(); /* one that begins later would inherit the heap of free_twice */
  if (by_another) join_thread(start_thread(free_twice, (void*)size));
  else free_twice((void*)size);
  malloc_trim(0);
  REQUIRE(!"a double free that nobody has found");
}

int main(int argc, char** argv) {
  (void)argv;
  looks = argc > 1;
  REQUIRE(hm_check != NULL);
  void* block = take(100);
  for (int by_another = 0; by_another < 2; by_another++)
    for (size_t size = 100; size <= 20000; size *= 200) answer_a_double_free(size, by_another);
  fork_while_others_work();
  free(block);
}
