/* What musl does in ways of its own, with hmalloc: small stacks, values of threads whose ends allocate late, the three forks beside
 * threads, what is asked at exit. */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kKeys = 8, kThreads = 4, kRounds = 30, kBlocks = 300, kStack = 16 << 10 };

static pthread_key_t keys[kKeys];
static _Thread_local int again[kKeys];

/* Ends of other values come before and after, and this one comes back: the heap must not be gone for good. */
static void end_late(void* value) {
  size_t key = (size_t)value - 1;
  free(malloc(1000 + key));
  free(calloc(3, 40000));
  if (again[key]++ < 2) pthread_setspecific(keys[key], value);
}

static void use_blocks(void) {
  for (size_t i = 0; i < kBlocks; i++) {
    char* block = malloc(i * 370 % 70000 + 1);
    if (block == NULL || (block = realloc(block, i * 910 % 300000 + 1)) == NULL) abort();
    block[0] = 1;
    free(block);
  }
}

static void* live(void* nothing) {
  for (size_t i = 0; i < kKeys; i++) pthread_setspecific(keys[i], (void*)(i + 1));
  use_blocks();
  return nothing;
}

static void around_fork(void) {
  free(malloc(100));
  free(malloc(300000));
}

static void at_exit(void) { free(malloc(5000)); }

static int has_ended_well(pid_t child) {
  int status = 1;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static int fork_beside_threads(void) {
  pthread_t threads[kThreads];
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, kStack);
  for (int i = 0; i < kThreads; i++)
    if (pthread_create(&threads[i], &small, live, NULL) != 0) return 0;
  pid_t child = fork();
  if (child == 0) {
    use_blocks();
    _exit(0);
  }
  int well = has_ended_well(child);
  /* No handler of a fork runs in the parent or the child here, and musl's own malloc may be locked in the child. */
  child = getenv("LD_PRELOAD") != NULL ? _Fork() : fork();
  if (child == 0) {
    use_blocks();
    _exit(0);
  }
  well &= has_ended_well(child);
  child = vfork();
  if (child == 0) {
    free(malloc(64));
    _exit(0);
  }
  well &= has_ended_well(child);
  for (int i = 0; i < kThreads; i++) pthread_join(threads[i], NULL);
  return well;
}

static int aligns(void) {
  for (size_t alignment = sizeof(void*); alignment <= 4 << 20; alignment *= 2) {
    void* block = aligned_alloc(alignment, alignment * 3);
    if ((size_t)block % alignment != 0 || malloc_usable_size(block) < 3 * alignment) return 0;
    free(block);
    if (posix_memalign(&block, alignment, 10) != 0 || (size_t)block % alignment != 0) return 0;
    block = reallocarray(block, 3, alignment);
    if (block == NULL) return 0;
    free(block);
  }
  volatile size_t many = (size_t)-1 / 2;
  return reallocarray(NULL, many, 4) == NULL;
}

int main(void) {
  atexit(at_exit);
  pthread_atfork(around_fork, around_fork, around_fork);
  for (int i = 0; i < kKeys; i++) pthread_key_create(&keys[i], end_late);
  for (int round = 0; round < kRounds; round++)
    if (!fork_beside_threads()) return puts("a child did not end well"), 1;
  if (!aligns()) return puts("an alignment is wrong"), 1;
  char line[20] = "";
  FILE* shell = popen("echo from a shell", "r");
  if (shell == NULL || fgets(line, sizeof line, shell) == NULL || pclose(shell) != 0) return puts("no shell"), 1;
  return fputs(line, stdout) < 0;
}
