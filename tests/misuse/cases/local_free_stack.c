// expect: hmalloc: hm_local_free(0xPOINTER): not a block of hmalloc
// Foreign memory.
#include "hmalloc/hmalloc_local.h"
#include <stdlib.h>

int main(void) {
  char buffer[64] __attribute__((aligned(16)));
  void* volatile block = buffer;
  hm_local_free(block);
}
