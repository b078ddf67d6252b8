/* Uses 32 MiB of the heap in small blocks, so that every malloc needs at least that much. */
#include <stdlib.h>
#include <string.h>

int main(void) {
  for (int i = 0; i < 32 * 1024; i++) {
    char* block = malloc(1024);
    if (!block) return 1;
    memset(block, i, 1024);
  }
  return 0;
}
