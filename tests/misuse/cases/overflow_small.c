// expect: survival
// Blocks of superblocks: few, and as many as fill a region, so that one is in its first slice and one in its last.
#include "../overflow.h"

int main(void) {
  static const struct kind kinds[] = {{16, 100, malloc, free, NULL},     {64, 1000, malloc, free, NULL},
                                      {384, 1000, malloc, free, NULL},   {5000, 100, malloc, free, NULL},
                                      {20000, 50, malloc, free, NULL},   {32768, 1000, malloc, free, NULL}};  // two regions
  return ALL_END_WELL(kinds);
}
