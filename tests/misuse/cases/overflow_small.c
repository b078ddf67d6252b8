// expect: survival
// Blocks of superblocks: few, and as many as fill a region, so that one is in its first slice and one in its last.
#include "../overflow.h"

int main(void) {
  static const struct kind kinds[] = {{16, 100, malloc, free},      {64, 1000, malloc, free}, {384, 1000, malloc, free},
                                      {5000, 100, malloc, free},    {20000, 50, malloc, free},
                                      {32768, 1000, malloc, free}};  // two regions
  return ALL_END_WELL(kinds);
}
