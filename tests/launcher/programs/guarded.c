// Makes one kind of mistake with every block, until somebody minds.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((noinline)) static char* allocate_here(size_t size) { return malloc(size); }
__attribute__((noinline)) static void free_here(char* block) { free(block); }

static void own_handler(int number) {
  static const char text[] = "own handler\n";
  if (write(2, text, sizeof text - 1) < 0 || number != SIGSEGV) _exit(1);
  _exit(33);
}

int main(int argc, char** argv) {
  const char* mistake = argc > 1 ? argv[1] : "none";
  if (!strcmp(mistake, "handled")) signal(SIGSEGV, own_handler);
  for (size_t i = 0; i < 40; ++i)  // in front of the first block of a chunk lies an inaccessible page
    if (allocate_here(16 + i * 16) == NULL) return 1;
  long times = argc > 2 ? atol(argv[2]) : 2000000;
  for (long i = 0; i < times; ++i) {
    size_t size = 16 + (size_t)(i % 40) * 16;
    volatile char* block = allocate_here(size);
    block[size - 1] = 1;
    // What lies beyond is another block's, or the page is another's; so it gets back what it had.
    if (!strcmp(mistake, "read-behind")) block[0] = block[size];
    if (!strcmp(mistake, "read-in-front")) block[0] = block[-1];
    free_here((char*)block);
    if (!strcmp(mistake, "read-after-free")) (void)block[3];
    if (!strcmp(mistake, "handled")) (void)block[3];
    if (!strcmp(mistake, "crash") && i == 1000000) raise(SIGSEGV);
  }
  puts("end");
  return 0;
}
