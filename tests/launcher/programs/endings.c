/* Ways to end: endings WAY.  Says a word when the end may come. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void ready(void) {
  if (write(1, "ready\n", 6) != 6) _exit(3);
}

/* Small, large and huge blocks, that the thread's caches never hold all of: every lock of the allocator is taken. */
static void* allocate_for_ever(void* seed) {
  enum { kBlocks = 3000 };
  static const size_t sizes[] = {40, 400, 4000, 40000, 3000000};
  void** blocks = calloc(kBlocks, sizeof *blocks);
  for (unsigned round = (unsigned)(size_t)seed;; ++round)
    for (unsigned i = 0; i < kBlocks; ++i) {
      unsigned kind = (round + i) % 500 == 0 ? 4 : (round + i) % 4;
      free(blocks[i]);
      blocks[i] = malloc(sizes[kind]);
    }
  return NULL;
}

static void end_with_seven(int number) {
  (void)number;
  _exit(7);
}

static void leave_in_handler(int number) {
  (void)number;
  exit(0);
}

int main(int count, char** words) {
  const char* way = count > 1 ? words[1] : "";
  if (strcmp(way, "sleep") == 0) {
    ready();
    for (;;) pause();
  }
  if (strcmp(way, "busy") == 0) {
    pthread_t thread;
    for (size_t i = 1; i < 4; ++i) pthread_create(&thread, NULL, allocate_for_ever, (void*)i);
    ready();
    allocate_for_ever(NULL);
  }
  if (strcmp(way, "handler") == 0) {
    signal(SIGTERM, end_with_seven);
    ready();
    for (;;) pause();
  }
  if (strcmp(way, "exit-in-handler") == 0) {
    signal(SIGALRM, leave_in_handler);
    ualarm(20000, 0);
    allocate_for_ever(NULL);
  }
  if (strcmp(way, "fork") == 0) {
    if (fork() == 0) return 0;
    return wait(NULL) < 0;
  }
  if (strcmp(way, "fork-sleep") == 0) {
    if (fork() == 0) {
      ready();
      for (;;) pause();
    }
    wait(NULL);
    return 0;
  }
  if (strcmp(way, "exec") == 0) {
    if (fork() == 0) execl(words[0], words[0], (char*)NULL);
    return wait(NULL) < 0;
  }
  if (strcmp(way, "blocks") == 0)
    for (size_t size = 16; size < 20000; size += size / 2)
      if (malloc(size) == NULL) return 1;
  if (strcmp(way, "_exit") == 0) _exit(0);
  return 0;
}
