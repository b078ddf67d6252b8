// expect: hmalloc: free(0xPOINTER): not a block of hmalloc
// From mmap, not from malloc.
#include <stdlib.h>
#include <sys/mman.h>

int main(void) {
  void* volatile block = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  free(block);
}
