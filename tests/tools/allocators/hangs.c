#include <unistd.h>

#include "broken.h"

void* malloc(size_t size) {
  while (!still_good()) pause();
  return __libc_malloc(size);
}
