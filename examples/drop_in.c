/* Nothing here mentions hmalloc: linked or preloaded, it serves every malloc of the program. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
  char* text = malloc(32);
  if (text == NULL) return 1;
  strcpy(text, "malloc, realloc, free");
  char* longer = realloc(text, 4096);
  if (longer == NULL) return free(text), 1;
  puts(longer);
  free(longer);
  return 0;
}
