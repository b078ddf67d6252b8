// expect: hmalloc: free(0xPOINTER): not a block of hmalloc
// A small integer read as a pointer.
#include <stdlib.h>

int main(void) {
  void* volatile block = (void*)16;
  free(block);
}
