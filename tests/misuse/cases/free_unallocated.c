// expect: hmalloc: free(0xPOINTER): double free, or never a block
// In a superblock of ours, where no block has been handed out yet.
#include <stdint.h>
#include <stdlib.h>

int main(void) {
  char* volatile block = malloc(64);
  free((void*)((uintptr_t)block ^ 0x8000));
}
