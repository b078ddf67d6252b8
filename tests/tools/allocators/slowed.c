/* hmalloc, whose malloc has been renamed in the archive, behind a malloc that wastes time. */
#include <stddef.h>

void* quick_malloc(size_t size);

__attribute__((visibility("default"))) void* malloc(size_t size) {
  for (volatile int i = 0; i < 500; ++i) continue;
  return quick_malloc(size);
}
