/* Says a word and waits for the end that others give it. */
#include <stdlib.h>
#include <unistd.h>

int main(void) {
  if (malloc(100) == NULL || write(1, "waiting\n", 8) != 8) return 1;
  for (;;) pause();
}
