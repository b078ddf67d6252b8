/* Threads that hand blocks to each other, children that go on with them, and what the C library allocates itself. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kThreads = 4, kBlocks = 1000, kRounds = 100000, kChildren = 20 };

static _Atomic(char*) blocks[kBlocks];

static void* hand_over(void* seed) {
  unsigned random = (unsigned)(size_t)seed;
  for (int i = 0; i < kRounds; ++i) {
    random = random * 1664525 + 1013904223;
    size_t size = 2 + (random >> 8) % 3000 * (random % 4096 == 0 ? 700 : 1);
    char* block = malloc(size);
    if (block == NULL) abort();
    block[0] = block[size - 1] = 1;
    free(atomic_exchange(&blocks[random >> 16 & 511], block));
  }
  return NULL;
}

static int read_own_mappings(void) {
  FILE* file = fopen("/proc/self/maps", "r");
  char* line = NULL;
  size_t size = 0;
  int lines = 0;
  while (getline(&line, &size, file) > 0) ++lines;
  free(line);
  return fclose(file) == 0 && lines > 0;
}

int main(void) {
  pthread_t threads[kThreads];
  for (size_t i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, hand_over, (void*)(i + 1));
  for (int i = 0; i < kChildren; ++i) {
    pid_t child = fork();
    if (child == 0) {
      hand_over((void*)(size_t)i);
      _exit(0);
    }
    int status = 1;
    if (waitpid(child, &status, 0) != child || status != 0) return 1;
  }
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  return !read_own_mappings();
}
