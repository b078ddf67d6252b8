// expect: hmalloc: hm_local_free(0xPOINTER): points into a block, not to its start
// Sizes are kept for starts alone.
#include "hmalloc/hmalloc_local.h"
#include <stdlib.h>

int main(void) {
  char* volatile block = hm_local_alloc(200);
  hm_local_free(block + 32);
}
