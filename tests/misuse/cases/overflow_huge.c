// expect: survival
// Blocks with an extent each, and between them the heaps of threads, mapped as they are.  The threads end before the
// overflow, for it may run over their stacks.
#include "../overflow.h"

#include <pthread.h>

enum { THREADS = 4 };
static pthread_t threads[THREADS];
static pthread_barrier_t ready, done;
static int started;

static void* have_a_heap(void* nothing) {
  free(malloc(100));
  pthread_barrier_wait(&ready);
  pthread_barrier_wait(&done);
  return nothing;
}

static void* with_a_thread(size_t size) {
  void* block = malloc(size);
  if (started == THREADS) return block;
  if (started == 0) {
    pthread_barrier_init(&ready, NULL, 2);
    pthread_barrier_init(&done, NULL, THREADS + 1);
  }
  if (pthread_create(&threads[started++], NULL, have_a_heap, NULL) != 0) return NULL;
  pthread_barrier_wait(&ready);
  return block;
}

static void end_threads(void) {
  pthread_barrier_wait(&done);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

static void* aligned(size_t size) { return aligned_alloc(8 << 20, size); }

int main(void) {
  static const struct kind kinds[] = {{3 << 20, 6, malloc, free, NULL},
                                      {3 << 20, 6, with_a_thread, free, end_threads},
                                      {4 << 20, 6, malloc, free, NULL},
                                      {(3 << 20) + 5000, 6, aligned, free, NULL}};
  return ALL_END_WELL(kinds);
}
