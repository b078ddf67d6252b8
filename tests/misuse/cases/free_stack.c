// expect: hmalloc: free(0xPOINTER): not a block of hmalloc
// A local array.
#include <stdlib.h>

int main(void) {
  char buffer[64] __attribute__((aligned(16)));
  char* volatile block = buffer;
  free(block);
}
