// Where blocks lie: a real kernel gives addresses of 48 bits, of which an emulator of processes shows nothing.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
  static const size_t sizes[] = {16, 5000, 100000, 3000000};
  int wide = 1;
  for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    char* volatile block = malloc(sizes[i]);
    if (block == NULL) return 2;
    block[0] = block[sizes[i] - 1] = 1;
    printf("%zu bytes at %p\n", sizes[i], (void*)block);
    wide = wide && (uintptr_t)block >> 47 == 1;
    free(block);
  }
  return wide ? 0 : 1;
}
