/* A program that can take the advice of `hmalloc profile`, and with -DADVISED has: advised own|handed BLOCKS [marked].
 * marked: SIGUSR1 before and after what tests/launcher/programs/steps.c is to count, which the main thread does alone. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#ifdef ADVISED
#include <hmalloc/hmalloc_local.h>
#endif

enum { kSize = 64, kMost = 1 << 20 };
static void* passed[kMost];
static size_t count;

/* What the compiler must not see the end of. */
static inline void use(void* block) { __asm__ volatile("" : : "r"(block) : "memory"); }

__attribute__((noinline)) static void own(void) {
  for (size_t i = 0; i < count; ++i) {
#ifdef ADVISED
    void* block = hm_local_alloc(kSize);
    use(block);
    hm_local_free_sized(block, kSize);
#else
    void* block = malloc(kSize);
    use(block);
    free(block);
#endif
  }
}

__attribute__((noinline)) static void produce(void) {
#ifdef ADVISED
  struct hm_cache* cache = hm_cache_of(kSize); /* none while a profile runs */
  if (cache != NULL) {
    for (size_t i = 0; i < count; ++i) use(passed[i] = hm_cache_alloc(cache));
    return;
  }
#endif
  for (size_t i = 0; i < count; ++i) use(passed[i] = malloc(kSize));
}

static void* consume(void* unused) {
  for (size_t i = 0; i < count; ++i) free(passed[i]);
  return unused;
}
/* Nothing runs beside the thread: the phases are one after the other. */
static void consume_elsewhere(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, consume, NULL) != 0) abort();
  pthread_join(thread, NULL);
}

int main(int words, char** word) {
  if (words < 3) return 2;
  count = strtoul(word[2], NULL, 10);
  int is_marked = words > 3, is_own = strcmp(word[1], "own") == 0;
  if (count > kMost) return 2;
  /* Once to begin with, so that what is counted finds caches and superblocks as a program does that has run for long. */
  if (is_own) own();
  else produce(), consume_elsewhere();
  if (is_marked) raise(SIGUSR1);
  if (is_own) own();
  else produce();
  if (is_marked) raise(SIGUSR1);
  if (!is_own) consume_elsewhere();
  return 0;
}
