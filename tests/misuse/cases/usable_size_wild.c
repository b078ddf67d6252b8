// expect: hmalloc: malloc_usable_size(0xPOINTER): not a block of hmalloc
// Asking is no safer than freeing.
#include <malloc.h>
#include <stdlib.h>

int main(void) {
  void* volatile block = (void*)0x5a5a5a5a5a50;
  return malloc_usable_size(block) != 0;
}
