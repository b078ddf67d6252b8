#include "front.h"

#include <dlfcn.h>
#include <errno.h>
#if defined(__GLIBC__)
#include <execinfo.h>
#endif
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kDeepest = 2, kBlocks = 6, kCallsToFork = 1000 };
enum Name {
  kMemcpy,
  kMemmove,
  kMemset,
  kErrno,
  kAuxiliary,
  kSetSpecific,
  kKeyCreate,
  kKeyDelete,
  kBacktrace,
  kFindObject,
  kNames
};
static const struct {
  const char* name;
  int needed; /* whoever is served in a thread of its own gets there */
} names[kNames] = {{"memcpy", 1},
                   {"memmove", 0},
                   {"memset", 1},
                   {"__errno_location", 1},
                   {"getauxval", 1},
                   {"pthread_setspecific", 1},
                   {"pthread_key_create", 1},
                   {"pthread_key_delete", 0},
                   {"backtrace", 0}, /* for a profile */
                   {"_dl_find_object", 0}};

__thread int front_serving;
static __thread int depth;
static atomic_long calls[kNames], forks, all;

static void fail(const char* what, const char* name) {
  char text[200];
  int length = snprintf(text, sizeof text, "%s (in %s)\n", what, name);
  if (write(STDERR_FILENO, text, (size_t)length) < 0) _exit(3);
  _exit(1);
}

/* Not by memset, which stands below. */
static void fill(volatile unsigned char* block, size_t size, unsigned char mark) {
  for (size_t i = 0; i < size; i += 16) block[i] = mark;
}
static void check(const volatile unsigned char* block, size_t size, unsigned char mark, const char* name) {
  for (size_t i = 0; i < size; i += 16)
    if (block[i] != mark) fail("a block was given to two", name);
}

/* More blocks than a thread's cache of their class has in it, so that it is refilled and flushed in there. */
static void allocate_and_free(const char* name, long turn) {
  static const size_t sizes[] = {24, 100, 320, 384, 1000, 5000, 40000};
  void* blocks[kBlocks];
  size_t size = sizes[turn % 7];
  for (int i = 0; i < kBlocks; i++) {
    blocks[i] = malloc(size);
    if (blocks[i] == NULL) fail("no memory", name);
    fill(blocks[i], size, (unsigned char)(i + 1));
  }
  for (int i = 0; i < kBlocks; i++) {
    check(blocks[i], size, (unsigned char)(i + 1), name);
    free(blocks[i]);
  }
}

static void fork_here(const char* name, long turn) {
  pid_t child = fork();
  if (child < 0) fail("no fork", name);
  if (child == 0) {
    alarm(60);
    for (long i = 0; i < 14; i++) allocate_and_free(name, turn + i);
    _exit(0);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child || status != 0) fail("the child of a fork did not end well", name);
  atomic_fetch_add(&forks, 1);
}

/* What the C library has under this name. */
#define NEXT(function) ((__typeof__(&(function)))dlsym(RTLD_NEXT, #function))

static int* errno_of_libc(void) {
  static _Atomic(__typeof__(&__errno_location)) real;
  __typeof__(&__errno_location) found = atomic_load(&real);
  if (found == NULL) atomic_store(&real, found = NEXT(__errno_location));
  return found();
}

static void meddle(enum Name name) {
  int serving = front_serving;
  /* What is asked for once is asked for before main. */
  if (serving || name == kAuxiliary || name == kKeyCreate) atomic_fetch_add(&calls[name], 1);
  if (depth >= kDeepest) return;
  int saved = *errno_of_libc();
  depth++;
  long turn = atomic_fetch_add(&all, 1);
  allocate_and_free(names[name].name, turn);
  if (serving && turn % kCallsToFork == kCallsToFork - 1) fork_here(names[name].name, turn);
  depth--;
  *errno_of_libc() = saved;
}

/* ---- May be called. ---- */

void* memcpy(void* restrict to, const void* restrict from, size_t count) {
  meddle(kMemcpy);
  for (size_t i = 0; i < count; i++) ((volatile char*)to)[i] = ((const char*)from)[i];
  return to;
}
/* None is left in the allocator: while a table's entries move it is open.  A compiler may make one of a loop. */
void* memmove(void* to, const void* from, size_t count) {
  meddle(kMemmove);
  volatile char* low = to;
  const char* source = from;
  if ((uintptr_t)to <= (uintptr_t)from)
    for (size_t i = 0; i < count; i++) low[i] = source[i];
  else
    for (size_t i = count; i-- > 0;) low[i] = source[i];
  return to;
}
void* memset(void* block, int value, size_t count) {
  meddle(kMemset);
  for (size_t i = 0; i < count; i++) ((volatile char*)block)[i] = (char)value;
  return block;
}
int* __errno_location(void) {
  meddle(kErrno);
  return errno_of_libc();
}
unsigned long getauxval(unsigned long type) {
  meddle(kAuxiliary);
  return NEXT(getauxval)(type);
}
int pthread_setspecific(pthread_key_t key, const void* value) {
  meddle(kSetSpecific);
  int error = NEXT(pthread_setspecific)(key, value);
  meddle(kSetSpecific);
  return error;
}
int pthread_key_create(pthread_key_t* key, void (*end)(void*)) {
  meddle(kKeyCreate);
  return NEXT(pthread_key_create)(key, end);
}
int pthread_key_delete(pthread_key_t key) {
  meddle(kKeyDelete);
  return NEXT(pthread_key_delete)(key);
}

#if defined(__GLIBC__)
int backtrace(void** frames, int most) {
  meddle(kBacktrace);
  int found = NEXT(backtrace)(frames, most);
  meddle(kBacktrace);
  return found;
}

int _dl_find_object(void* address, struct dl_find_object* found) {
  meddle(kFindObject);
  return NEXT(_dl_find_object)(address, found);
}
#endif

/* ---- Must not be called, by whoever serves: they take locks, start threads, or run what the program says. ---- */

static void not_while_serving(const char* name) {
  if (front_serving && depth == 0) fail("called while it serves", name);
}
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*), void* argument) {
  not_while_serving("pthread_create");
  return NEXT(pthread_create)(thread, attributes, body, argument);
}
int sigaction(int number, const struct sigaction* wanted, struct sigaction* found) {
  not_while_serving("sigaction");
  return NEXT(sigaction)(number, wanted, found);
}
int pthread_mutex_lock(pthread_mutex_t* mutex) {
  not_while_serving("pthread_mutex_lock");
  return NEXT(pthread_mutex_lock)(mutex);
}
char* getenv(const char* name) {
  not_while_serving("getenv");
  return NEXT(getenv)(name);
}

int front_report(void) {
  int missing = 0;
  for (int i = 0; i < kNames; i++) {
    long n = atomic_load(&calls[i]);
    printf("%-20s %8ld%s\n", names[i].name, n, n == 0 ? "  never called" : "");
    missing += n == 0 && (names[i].needed || (i == kBacktrace && NEXT(getenv)("HMALLOC_PROFILE") != NULL));
  }
  printf("%-20s %8ld\n", "forks from inside", atomic_load(&forks));
  return missing;
}
