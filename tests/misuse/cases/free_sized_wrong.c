// expect checked: hmalloc: free_sized(0xPOINTER): freed with a size it was not allocated with
// C23: the size must be the one asked for.
#include <stdlib.h>

__attribute__((weak)) void free_sized(void* block, size_t size);

int main(void) {
  char* volatile block = malloc(100);
  free_sized(block, 5000);
}
