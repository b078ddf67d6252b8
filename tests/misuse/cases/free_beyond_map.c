// expect: hmalloc: free(0xPOINTER): not a block of hmalloc
// An address of more bits than the system gives by itself, asked for by a hint; made up where the machine has none.
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

int main(void) {
  static const int bits[] = {56, 52, 51, 48};
  for (unsigned i = 0; i < sizeof bits / sizeof *bits; ++i) {
    void* hint = (void*)((uintptr_t)1 << bits[i]);
    void* block = mmap(hint, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block != MAP_FAILED && (uintptr_t)block >> 48 != 0) free(block);
  }
  free((void*)((uintptr_t)1 << 48));
  return 0;
}
