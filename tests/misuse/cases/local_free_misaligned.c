// expect: hmalloc: hm_local_free(0xPOINTER): misaligned pointer
// The inline test rotates such an address out of range.
#include "hmalloc/hmalloc_local.h"
#include <stdlib.h>

int main(void) {
  char* volatile block = hm_local_alloc(200);
  hm_local_free(block + 1);
}
