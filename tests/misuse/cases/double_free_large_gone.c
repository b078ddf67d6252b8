// expect: hmalloc: free(0xPOINTER): double free, or never a block
// Its region has gone back to the system.
#include <malloc.h>
#include <stdlib.h>

int main(void) {
  enum { COUNT = 60 };
  static char* volatile blocks[COUNT];
  for (int i = 0; i < COUNT; i++) blocks[i] = malloc(1 << 20);
  for (int i = COUNT; i-- > 0;) free(blocks[i]);
  malloc_trim(0);
  free(blocks[COUNT - 1]);
}
