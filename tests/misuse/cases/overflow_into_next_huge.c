// expect: survival
// One linear overflow that runs from a block of 3 MB right to the start of the next, and a little into it; then the next
// is freed.  A header there would be all words that name the target, or have them where it has zeros now.
#include "../overflow.h"

static void run_over(int careful) {
  enum { SIZE = 3 << 20 };
  char *one = checked(malloc(SIZE)), *other = checked(malloc(SIZE));
  char *low = one < other ? one : other, *high = one < other ? other : one;
  memset(low, 1, SIZE);
  memset(high, 1, SIZE);
  overwrite(low + SIZE, high + 80, 0, careful);
  write_begin = write_end = NULL;
  free(high);
  free(checked(malloc(SIZE)));
  free(checked(malloc(5 << 20)));
  free(low);
  use_the_allocator(malloc, free);
}

int main(void) {
  for (size_t i = 0; i < sizeof target / sizeof *target; i++) target[i] = i;
  struct sigaction action = {.sa_sigaction = judge_fault, .sa_flags = SA_SIGINFO};
  if (sigaction(SIGSEGV, &action, NULL) != 0) fail("no handler\n");
  run_over(1);
  run_over(0);
  return 0;
}
