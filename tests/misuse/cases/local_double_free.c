// expect: hmalloc: hm_local_free(0xPOINTER): double free, or never a block
// The byte that holds a local block's size is 0 after the first.
#include "hmalloc/hmalloc_local.h"
#include <stdlib.h>

int main(void) {
  void* volatile block = hm_local_alloc(100);
  void* volatile kept = hm_local_alloc(100);
  hm_local_free(block);
  hm_local_free(block);
  hm_local_free(kept);
}
