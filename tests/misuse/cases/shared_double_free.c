// expect default: hmalloc: hm_shared_free(0xPOINTER): double free
// expect checked: hmalloc: hm_shared_free(0xPOINTER): double free, or never a block
// Twice in a row.
#include "hmalloc/hmalloc.h"
#include <stdlib.h>

int main(void) {
  void* volatile block = hm_shared_alloc(100);
  hm_shared_free(block);
  hm_shared_free(block);
}
