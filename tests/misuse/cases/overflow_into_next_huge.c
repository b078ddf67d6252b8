// expect: survival
// One linear overflow that runs from a block of 3 MB right to the start of the next, and a little into it; then the next
// is freed.  A header there, of whatever shape, would be all pointers to the target.
#include "../overflow.h"

static void* get(size_t size) { return malloc(size); }

static void run_over(void) {
  enum { SIZE = 3 << 20 };
  char *one = checked(get(SIZE)), *other = checked(get(SIZE));
  char *low = one < other ? one : other, *high = one < other ? other : one;
  memset(low, 1, SIZE);
  memset(high, 1, SIZE);
  for (size_t i = 0; i < sizeof target / sizeof *target; i++) target[i] = i;
  struct sigaction action = {.sa_sigaction = judge_fault, .sa_flags = SA_SIGINFO};
  if (sigaction(SIGSEGV, &action, NULL) != 0) fail("no handler\n");
  overwrite(low + SIZE, high + 80, 0);
  write_begin = write_end = NULL;
  free(high);
  free(checked(get(SIZE)));
  free(checked(get(5 << 20)));
  free(low);
  use_the_allocator(malloc, free);
}

int main(void) {
  run_over();
  return 0;
}
