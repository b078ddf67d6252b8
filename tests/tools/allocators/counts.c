/* glibc's malloc in the manner of a baseline: a line of counters when the process ends. */
#include <stdio.h>
#include <stdlib.h>

void* __libc_malloc(size_t size);

static long calls;

void* malloc(size_t size) {
  __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
  return __libc_malloc(size);
}

__attribute__((destructor)) static void finish(void) {
  const char* path = getenv("COUNTS_STATS_FILE");
  FILE* file = path ? fopen(path, "a") : NULL;
  if (file == NULL) return;
#ifdef DAMAGED
  fputs("{\"calls\":", file);
#else
  fprintf(file, "{\"allocator\":\"counts\",\"calls\":%ld}\n", calls);
#endif
  fclose(file);
}
