// expect checked: hmalloc: free_aligned_sized(0xPOINTER): freed with a size it was not allocated with
// C23: so must size and alignment.
#include <stdlib.h>

__attribute__((weak)) void free_aligned_sized(void* block, size_t alignment, size_t size);

int main(void) {
  char* volatile block = aligned_alloc(64, 128);
  free_aligned_sized(block, 64, 4096);
}
