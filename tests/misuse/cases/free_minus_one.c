// expect: hmalloc: free(0xPOINTER): misaligned pointer
// MAP_FAILED, never tested.
#include <stdlib.h>

int main(void) {
  void* volatile block = (void*)-1;
  free(block);
}
