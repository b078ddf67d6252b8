// expect: survival
// Blocks with an extent each, between them heaps of threads, which are mapped as they are.
#include "../overflow.h"

#include <pthread.h>

static void* live_on(void* ready) {
  free(malloc(100));
  pthread_barrier_wait((pthread_barrier_t*)ready);
  while (pause() < 0) continue;
  return NULL;
}

static void* with_a_thread(size_t size) {
  static int threads;
  void* block = malloc(size);
  if (threads == 4 || size < 2 << 20) return block;
  static pthread_barrier_t ready[4];
  pthread_barrier_t* mine = &ready[threads++];
  pthread_t thread;
  pthread_barrier_init(mine, NULL, 2);
  if (pthread_create(&thread, NULL, live_on, mine) != 0) return NULL;
  pthread_barrier_wait(mine);
  return block;
}

static void* aligned(size_t size) { return aligned_alloc(8 << 20, size); }

int main(void) {
  static const struct kind kinds[] = {{3 << 20, 6, malloc, free}, {3 << 20, 6, with_a_thread, free},
                                      {4 << 20, 6, malloc, free}, {(3 << 20) + 5000, 6, aligned, free}};
  return ALL_END_WELL(kinds);
}
