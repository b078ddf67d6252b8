/* glibc's malloc, but every thousandth small block is the same one, whoever has it already. */
#include "broken.h"

void __libc_free(void* block);

static char one[64] __attribute__((aligned(16)));
static long calls;

void* malloc(size_t size) {
  if (size <= sizeof one && __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) % 1000 == 0) return one;
  return __libc_malloc(size);
}

void free(void* block) {
  if (block != one) __libc_free(block);
}
