/* Preloaded into a workload: counts its allocations of WATCH_SIZE bytes, their frees, and those frees that another
 * thread made than the allocation; each allocation after the first WATCH_SPIN_AFTER takes WATCH_SPIN_NS longer.  At the
 * end the three numbers, and that of all calls of malloc, go to the file WATCH_FILE. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

void* __libc_malloc(size_t size);
void __libc_free(void* block);

/* Behind each watched block. */
struct mark {
  uintptr_t magic;
  unsigned thread;
};
#define MAGIC 0x5bd1e995a5a5a5a5u

static size_t watched;
static unsigned long spin_after;
static long spin_ns;
static atomic_ulong allocations, frees, foreign_frees, calls;
static atomic_uint threads;
static __thread unsigned own_number __attribute__((tls_model("initial-exec")));

static unsigned own(void) {
  if (own_number == 0) own_number = atomic_fetch_add(&threads, 1) + 1;
  return own_number;
}

static struct mark* mark_of(void* block) { return (struct mark*)((char*)block + ((watched + 15) & ~(size_t)15)); }

static void spin(void) {
  struct timespec start, now;
  clock_gettime(CLOCK_MONOTONIC, &start);
  do clock_gettime(CLOCK_MONOTONIC, &now);
  while ((now.tv_sec - start.tv_sec) * 1000000000 + now.tv_nsec - start.tv_nsec < spin_ns);
}

static unsigned long number(const char* name) {
  const char* text = getenv(name);
  return text != NULL ? strtoul(text, NULL, 10) : 0;
}

static __attribute__((constructor)) void begin(void) {
  spin_ns = (long)number("WATCH_SPIN_NS");
  spin_after = number("WATCH_SPIN_AFTER");
  watched = number("WATCH_SIZE");
}

static __attribute__((destructor)) void end(void) {
  const char* path = getenv("WATCH_FILE");
  int file = path != NULL ? open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600) : -1;
  if (file >= 0) dprintf(file, "%lu %lu %lu %lu\n", allocations, frees, foreign_frees, calls);
}

void* malloc(size_t size) {
  atomic_fetch_add(&calls, 1);
  if (size != watched || watched == 0) return __libc_malloc(size);
  if (atomic_fetch_add(&allocations, 1) >= spin_after && spin_ns != 0) spin();
  void* block = __libc_malloc(size + 16 + sizeof(struct mark));
  if (block == NULL) return NULL;
  *mark_of(block) = (struct mark){(uintptr_t)block ^ MAGIC, own()};
  return block;
}

void free(void* block) {
  if (block != NULL && watched != 0 && malloc_usable_size(block) >= watched + 16 + sizeof(struct mark) &&
      mark_of(block)->magic == ((uintptr_t)block ^ MAGIC)) {
    mark_of(block)->magic = 0;
    atomic_fetch_add(&frees, 1);
    if (mark_of(block)->thread != own()) atomic_fetch_add(&foreign_frees, 1);
  }
  __libc_free(block);
}
