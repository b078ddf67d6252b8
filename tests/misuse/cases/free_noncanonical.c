// expect: hmalloc: free(0xPOINTER): not a block of hmalloc
// Text read as a pointer: no address at all on x86-64.
#include <stdlib.h>

int main(void) {
  void* volatile block = (void*)0x4141414141414140;
  free(block);
}
