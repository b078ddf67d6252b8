#include "broken.h"

void* malloc(size_t size) {
  if (!still_good()) __builtin_trap();
  return __libc_malloc(size);
}
