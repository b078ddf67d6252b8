// expect checked: hmalloc: hm_shared_free_sized(0xPOINTER): freed with a size it was not allocated with
// The sized free reads no metadata, except in the checked library.
#include "hmalloc/hmalloc.h"
#include <stdlib.h>

int main(void) {
  void* volatile block = hm_shared_alloc(100);
  hm_shared_free_sized(block, 1000);
}
