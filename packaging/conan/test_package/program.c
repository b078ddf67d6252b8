#include <hmalloc/hmalloc.h>
#include <stdlib.h>

int main(void) {
  char* block = malloc(100);
  int served = block != NULL && hm_usable_size(block) >= 100; /* ends the program if the block is another allocator's */
  free(block);
  return !served;
}
