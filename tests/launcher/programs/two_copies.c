// Allocates from the C library's malloc, and from that of another library, for as long as its input is open.
//   two_copies LIBRARY
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

int main(int count, char** arguments) {
  void* library = count > 1 ? dlmopen(LM_ID_NEWLM, arguments[1], RTLD_NOW) : NULL;
  void* (*allocate)(size_t) = library != NULL ? (void* (*)(size_t))dlsym(library, "malloc") : NULL;
  if (allocate == NULL || allocate(100) == NULL || malloc(100) == NULL) return 1;
  char end;
  return write(1, "ready\n", 6) < 0 || read(0, &end, 1) != 0;
}
