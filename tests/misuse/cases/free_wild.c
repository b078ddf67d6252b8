// expect: hmalloc: free(0xPOINTER): not a block of hmalloc
// An address where nothing is mapped.
#include <stdlib.h>

int main(void) {
  void* volatile block = (void*)0x5a5a5a5a5a50;
  free(block);
}
