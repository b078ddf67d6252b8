/* What every conformance program shares: picking a case by name, requirements that allocate nothing, marks in
 * blocks, and the process's own memory numbers.  C and C++. */
#ifndef CONFORMANCE_CASE_H
#define CONFORMANCE_CASE_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if !defined(__GLIBC__)
/* musl has no such names, hmalloc has them everywhere: looked up, because most programs get it by preload. */
#include <dlfcn.h>

static inline int malloc_trim(size_t pad) {
  static int (*trim)(size_t);
  if (trim == NULL) *(void**)&trim = dlsym(RTLD_DEFAULT, "malloc_trim");
  return trim(pad);
}
static inline void* pvalloc(size_t size) {
  static void* (*pages)(size_t);
  if (pages == NULL) *(void**)&pages = dlsym(RTLD_DEFAULT, "pvalloc");
  return pages(size);
}
static inline int mallopt(int parameter, int value) {
  static int (*set)(int, int);
  if (set == NULL) *(void**)&set = dlsym(RTLD_DEFAULT, "mallopt");
  return set(parameter, value);
}
enum { M_TRIM_THRESHOLD = -1, M_ARENA_MAX = -8 };
#endif

#define KIB ((size_t)1024)
#define MIB (KIB * KIB)
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

typedef struct {
  const char* name;
  void (*run)(void);
} Case;
__attribute__((unused)) static Case cases[64];
__attribute__((unused)) static size_t case_count;

/* _exit and a buffer on the stack: a failing allocator must not be needed to report its failure. */
static inline void require_failed(const char* file, int line, const char* what, int error) {
  char text[300];
  int length = snprintf(text, sizeof text, "%s:%d: not so: %s (errno %d)\n", file, line, what, error);
  if (write(STDERR_FILENO, text, (size_t)length) != length) _exit(2);
  _exit(1);
}
#define REQUIRE(condition)                                                   \
  do {                                                                       \
    if (!(condition)) require_failed(__FILE__, __LINE__, #condition, errno); \
  } while (0)
/* For a bound: the number itself is the useful part of the report. */
#define REQUIRE_BELOW(value, limit)                                                \
  do {                                                                             \
    double value_ = (double)(value), limit_ = (double)(limit);                     \
    char text_[160];                                                               \
    snprintf(text_, sizeof text_, "%s = %.3f below %.3f", #value, value_, limit_); \
    if (!(value_ < limit_)) require_failed(__FILE__, __LINE__, text_, 0);          \
  } while (0)

/* CASE(what_it_is_called) { what it does } */
#define CASE(function)                                                 \
  static void function(void);                                          \
  __attribute__((constructor)) static void add_case_##function(void) { \
    cases[case_count].name = #function;                                \
    cases[case_count++].run = function;                                \
  }                                                                    \
  static void function(void)

static inline int run_named_case(int argc, char** argv) {
  for (size_t i = 0; argc > 1 && i < case_count; i++) {
    if (strcmp(argv[1], cases[i].name) == 0) {
      cases[i].run();
      return 0;
    }
  }
  for (size_t i = 0; i < case_count; i++) puts(cases[i].name);
  return argc > 1 && strcmp(argv[1], "--list") == 0 ? 0 : 2;
}
#define CASE_MAIN() \
  int main(int argc, char** argv) { return run_named_case(argc, argv); }

/* Hides from the compiler where a pointer or a size comes from: misuse must reach the allocator, not a warning. */
static inline void* hidden(void* pointer) {
  __asm__ volatile("" : "+r"(pointer) : : "memory");
  return pointer;
}
static inline size_t hidden_size(size_t size) {
  __asm__ volatile("" : "+r"(size));
  return size;
}

static inline uint32_t random_next(uint64_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return (uint32_t)(*state >> 24);
}

/* The first and the last bytes carry the mark: overlap shows at the edges. */
static inline void mark(void* block, size_t size, unsigned seed) {
  unsigned char* bytes = (unsigned char*)block;
  size_t edge = size < 32 ? size : 32;
  memset(bytes, (int)(seed % 255 + 1), edge);
  memset(bytes + size - edge, (int)(seed % 255 + 1), edge);
}
static inline int is_marked(const void* block, size_t size, unsigned seed) {
  const unsigned char* bytes = (const unsigned char*)block;
  size_t edge = size < 32 ? size : 32;
  for (size_t i = 0; i < edge; i++)
    if (bytes[i] != seed % 255 + 1 || bytes[size - 1 - i] != seed % 255 + 1) return 0;
  return 1;
}

static inline void* take(size_t size) {
  void* block = malloc(hidden_size(size));
  REQUIRE(block != NULL);
  return hidden(block);
}
static inline void* take_marked(size_t size, unsigned seed) {
  void* block = take(size);
  mark(block, size, seed);
  return block;
}
static inline void free_marked(void* block, size_t size, unsigned seed) {
  REQUIRE(is_marked(block, size, seed));
  free(block);
}

static inline void free_all(void* const* blocks, size_t count) {
  for (size_t i = 0; i < count; i++) free(blocks[i]);
}

static inline size_t memory_pages(int field) {
  char text[128] = {0};
  int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (fd < 0 || read(fd, text, sizeof text - 1) <= 0) _exit(3);
  close(fd);
  char* at = text;
  size_t pages = 0;
  for (int i = 0; i <= field; i++) pages = strtoul(at, &at, 10);
  return pages;
}
static inline size_t mapped_bytes(void) { return memory_pages(0) * (size_t)sysconf(_SC_PAGESIZE); }
static inline size_t resident_bytes(void) { return memory_pages(1) * (size_t)sysconf(_SC_PAGESIZE); }
/* Growth since an earlier reading, 0 if it shrank: sizes are unsigned. */
static inline size_t growth(size_t now, size_t before) { return now > before ? now - before : 0; }

static inline double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
static inline void sleep_ms(long ms) {
  struct timespec time = {ms / 1000, ms % 1000 * 1000000};
  while (nanosleep(&time, &time) != 0) {}
}
/* How long the timed cases run; the nightly raises it. */
static inline double case_seconds(void) {
  const char* text = getenv("CONFORMANCE_SECONDS");
  return text != NULL ? atof(text) : 2.0;
}
/* How long a case waits for what need not happen at once. */
static inline double case_patience(void) {
  const char* text = getenv("CONFORMANCE_PATIENCE");
  return text != NULL ? atof(text) : 15.0;
}

static inline pthread_t start_thread(void* (*body)(void*), void* argument) {
  pthread_t thread;
  REQUIRE(pthread_create(&thread, NULL, body, argument) == 0);
  return thread;
}
static inline void* join_thread(pthread_t thread) {
  void* result = NULL;
  REQUIRE(pthread_join(thread, &result) == 0);
  return result;
}

/* Each is told its number. */
static inline void start_threads(pthread_t* threads, size_t count, void* (*body)(void*)) {
  for (size_t i = 0; i < count; i++) threads[i] = start_thread(body, (void*)i);
}
static inline void join_threads(const pthread_t* threads, size_t count) {
  for (size_t i = 0; i < count; i++) join_thread(threads[i]);
}
static inline void run_threads(size_t count, void* (*body)(void*)) {
  pthread_t threads[16];
  REQUIRE(count <= COUNT_OF(threads));
  start_threads(threads, count, body);
  join_threads(threads, count);
}

/* It ends with status 0; what may hang sets an alarm. */
static inline void require_good_end(pid_t child) {
  int status;
  pid_t ended;
  do ended = waitpid(child, &status, 0);
  while (ended < 0 && errno == EINTR);
  REQUIRE(ended == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

#endif
