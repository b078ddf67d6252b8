// expect checked: hmalloc: hm_free_sized(0xPOINTER): freed with a size it was not allocated with
// The sized free reads no metadata, except in the checked library.
#include "hmalloc/hmalloc.h"
#include <stdlib.h>

int main(void) {
  void* volatile block = hm_malloc(100);
  hm_free_sized(block, 1000);
}
