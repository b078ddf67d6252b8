// expect: hmalloc: hm_free(0xPOINTER): not a block of hmalloc
// The explicit name is the one in the message.
#include "hmalloc/hmalloc.h"
#include <stdlib.h>

int main(void) {
  void* volatile block = (void*)0x5a5a5a5a5a50;
  hm_free(block);
}
