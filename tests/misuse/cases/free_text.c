// expect: hmalloc: free(0xPOINTER): not a block of hmalloc
// The program's code.
#include <stdint.h>
#include <stdlib.h>

int main(void);

int main(void) {
  void* volatile block = (void*)((uintptr_t)&main & ~(uintptr_t)15);
  free(block);
}
