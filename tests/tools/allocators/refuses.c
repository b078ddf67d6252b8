#include <errno.h>

#include "broken.h"

void* malloc(size_t size) {
  if (still_good()) return __libc_malloc(size);
  errno = ENOMEM;
  return NULL;
}
