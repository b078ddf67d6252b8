/* A program whose use of memory is known: known PAIRS SIZE [wait | wrong].  It loses ten blocks and gives all others back. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kLost = 10, kLostBytes = 12345 };

static __attribute__((noinline)) void loses(void) {
  char* block = malloc(kLostBytes);
  memset(block, 1, kLostBytes);
}

static __attribute__((noinline)) void gives_back(long pairs, size_t size) {
  for (; pairs > 0; --pairs) {
    volatile char* block = malloc(size);
    block[0] = 1;
    free((void*)block);
  }
}

static __attribute__((noinline)) void reads_freed(void) {
  volatile char* block = malloc(100);
  block[10] = 1;
  free((void*)block);
  (void)block[10];
}

static __attribute__((noinline)) void writes_past_the_end(void) {
  volatile char* block = malloc(100);
  block[100] = 1;
  free((void*)block);
}

/* By read and write, for stdio allocates. */
static void wait_for_a_line(const char* said) {
  char line[8];
  if (write(1, said, strlen(said)) > 0 && read(0, line, sizeof line) < 0) exit(1);
}

int main(int count, char** words) {
  if (count < 3) return 2;
  const char* way = count > 3 ? words[3] : "";
  if (strcmp(way, "wait") == 0) wait_for_a_line("ready\n");
  for (int i = 0; i < kLost; ++i) loses();
  gives_back(atol(words[1]), (size_t)atol(words[2]));
  if (strcmp(way, "wrong") == 0) {
    reads_freed();
    writes_past_the_end();
  }
  if (strcmp(way, "wait") == 0) wait_for_a_line("done\n");
  return 0;
}
