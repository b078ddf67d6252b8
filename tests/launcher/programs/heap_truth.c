// Holds blocks at random, in three threads that also free each other's, and says in a file which they are: a line for each, its
// address and the size that was asked for.  Some of them are lost.  For hmalloc inspect.
//   heap_truth FILE [crash | sparse | vfork | fork]    "ready" on the standard output: whoever reads it may look
// It crashes then, or first maps much that it never writes to, or waits for a child of vfork until the first line, or goes on
// in a child, without the threads.
// Lines on its standard input: "grow" allocates more, "signals" says how many signals came, "statistics" prints hmalloc's as
// JSON; any other one ends it.
#define _GNU_SOURCE
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((weak)) void hm_stats_print(int descriptor, int json);

enum { kThreads = 3, kSlots = 2000, kSteps = 30000, kHuge = 60, kLost = 70, kLostSize = 384, kRefersSize = 448 };

struct held {
  void* block;
  size_t size;
};

static struct held table[kThreads][kSlots];
static struct held huge[kHuge];
static void** elsewhere[2];
static uintptr_t lost[kLost][2];  // complemented, so that they are no references
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t stand;
static void* grown[1000];
static _Atomic int signals;  // any thread handles them, and two at once those that waited for a stop to end

static uint32_t next(uint64_t* state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(*state >> 33);
}

static size_t any_size(uint64_t* state) {
  uint32_t kind = next(state) % 1000;
  if (kind < 800) return next(state) % 1024;
  if (kind < 980) return next(state) % (32 << 10);
  if (kind < 998) return next(state) % (1 << 20);
  return next(state) % (4 << 20);
}

static void change(struct held* held, uint64_t* state) {
  if (held->block != NULL && next(state) % 4 == 0) {
    held->size = any_size(state) + 1;
    held->block = realloc(held->block, held->size);
  } else if (held->block != NULL) {
    free(held->block);
    *held = (struct held){NULL, 0};
  } else {
    held->size = any_size(state);
    held->block = next(state) % 8 == 0 ? memalign((size_t)16 << next(state) % 10, held->size) : malloc(held->size);
  }
}

static void* work(void* argument) {
  uint64_t who = (uint64_t)(uintptr_t)argument, state = who * 977 + 5;
  char name[16];
  snprintf(name, sizeof name, "worker %d", (int)who);
  pthread_setname_np(pthread_self(), name);
  for (int i = 0; i < kSteps; ++i) {
    uint64_t whose = next(&state) % 4 == 0 ? next(&state) % kThreads : who;
    pthread_mutex_lock(&one_at_a_time);
    change(&table[whose][next(&state) % kSlots], &state);
    pthread_mutex_unlock(&one_at_a_time);
  }
  pthread_barrier_wait(&stand);
  pthread_barrier_wait(&stand);
  return NULL;
}

// Each second one is freed, and then a few in a row, so that what they lay in is joined.
static void hold_huge(void) {
  for (int i = 0; i < kHuge; ++i) {
    huge[i].size = 1100000 + (size_t)i * 10000;
    huge[i].block = malloc(huge[i].size);
  }
  for (int i = 0; i < kHuge; ++i) {
    if (i % 2 == 0 && i < kHuge - 8) continue;
    free(huge[i].block);
    huge[i].block = NULL;
  }
}

// Of two blocks, one refers to the other, and nothing to the first.
__attribute__((noinline)) static void lose(void) {
  for (int i = 0; i < kLost; ++i) {
    void** outer = calloc(1, kLostSize);
    void** inner = calloc(1, kRefersSize);
    outer[3] = inner;
    inner[1] = inner;
    lost[i][0] = ~(uintptr_t)outer;
    lost[i][1] = ~(uintptr_t)inner;
  }
}

// Blocks to which something refers in memory of other kinds only.
static void refer_from_elsewhere(void) {
  int zero = open("/dev/zero", O_RDWR);
  elsewhere[0] = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, zero, 0);
  elsewhere[1] = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (int i = 0; i < 2; ++i)
    if (elsewhere[i] != MAP_FAILED) *elsewhere[i] = malloc(kLostSize);
  close(zero);
}

// So that no reference stays on the stack below.
__attribute__((noinline)) static void wipe(void) {
  char space[65536];
  memset(space, 0, sizeof space);
  __asm__ volatile("" : : "r"(space) : "memory");
}

// Addresses, a block, and private pages of a file, of which nothing is ever written.
static void map_much(const char* file) {
  mmap(NULL, (size_t)4 << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  mmap(NULL, 1 << 14, PROT_READ | PROT_WRITE, MAP_PRIVATE, open(file, O_RDONLY), 0);
  grown[999] = malloc(256 << 20);
}

static void count_signal(int number) {
  (void)number;
  ++signals;
}

static void say(const char* text) {
  if (write(1, text, strlen(text)) < 0) _exit(1);
}

// A byte at a time: nothing is allocated for it.
static void read_line(char* line, size_t room) {
  size_t used = 0;
  while (read(0, line + used, 1) == 1 && line[used] != '\n' && used + 1 < room) ++used;
  line[used] = '\0';
}

static void obey(void) {
  char line[16], text[32];
  int blocks = 0;
  for (;;) {
    read_line(line, sizeof line);
    if (strcmp(line, "grow") == 0) {
      for (int i = 0; i < 100 && blocks < 1000; ++i) grown[blocks++] = malloc(5000);
      say("grown\n");
    } else if (strcmp(line, "signals") == 0) {
      snprintf(text, sizeof text, "%d\n", signals);
      say(text);
    } else if (strcmp(line, "statistics") == 0) {
      hm_stats_print(1, 1);
    } else {
      return;
    }
  }
}

int main(int count, char** arguments) {
  pthread_t threads[kThreads];
  if (count < 2) return 2;
  int forks = count > 2 && strcmp(arguments[2], "fork") == 0;
  int file = open(arguments[1], O_WRONLY | O_CREAT | O_TRUNC, 0644);
  pthread_barrier_init(&stand, NULL, kThreads + 1);
  for (uintptr_t i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, work, (void*)i);
  pthread_barrier_wait(&stand);
  lose();
  hold_huge();
  refer_from_elsewhere();
  for (int i = 0; i < kHuge; ++i)
    if (huge[i].block != NULL) dprintf(file, "%p %zu held\n", huge[i].block, huge[i].size);
  for (int who = 0; who < kThreads; ++who)
    for (int i = 0; i < kSlots; ++i)
      if (table[who][i].block != NULL) dprintf(file, "%p %zu held\n", table[who][i].block, table[who][i].size);
  for (int i = 0; i < 2; ++i)
    if (elsewhere[i] != MAP_FAILED) dprintf(file, "%p %d held\n", *elsewhere[i], kLostSize);
  for (int i = 0; i < kLost; ++i)
    dprintf(file, "%p %d lost\n%p %d lost\n", (void*)~lost[i][0], kLostSize, (void*)~lost[i][1], kRefersSize);
  close(file);
  wipe();
  signal(SIGRTMIN, count_signal);
  if (count > 2 && strcmp(arguments[2], "sparse") == 0) map_much(arguments[0]);
  if (forks && fork() != 0) _exit(wait(NULL) < 0);
  say("ready\n");
  if (count > 2 && strcmp(arguments[2], "crash") == 0) abort();
  if (count > 2 && strcmp(arguments[2], "vfork") == 0 && vfork() == 0) {
    read_line((char[16]){0}, 16);
    _exit(0);
  }
  obey();
  if (forks) _exit(0);
  pthread_barrier_wait(&stand);
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  return 0;
}
