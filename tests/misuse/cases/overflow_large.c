// expect: survival
// Runs of slices, few and two regions of them.
#include "../overflow.h"

int main(void) {
  static const struct kind kinds[] = {{40000, 5, malloc, free, NULL}, {131072, 250, malloc, free, NULL}, {1 << 20, 20, malloc, free, NULL}};
  return ALL_END_WELL(kinds);
}
