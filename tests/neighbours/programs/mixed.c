/* A block of a name of hmalloc's own is freed by free, and one of malloc by such a name: both are allowed. */
#include <hmalloc/hmalloc.h>
#include <stdlib.h>

int main(void) {
  free(hm_shared_alloc(200));
  hm_shared_free(malloc(100));
  return 0;
}
