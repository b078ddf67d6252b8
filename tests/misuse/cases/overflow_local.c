// expect: survival
// Local blocks: of one unit, of several chunks; and of a thread that has local caches, for it frees every other one.
#include "hmalloc/hmalloc_local.h"
#include "../overflow.h"

static void* get(size_t size) { return hm_local_alloc(size); }
static void put(void* block) { hm_local_free(block); }

static void* get_mixed(size_t size) {
  static int begun;
  if (!begun++) {
    static void* others[4000];
    for (size_t i = 0; i < 4000; i++) others[i] = hm_local_alloc(1000);
    for (size_t i = 0; i < 4000; i += 2) hm_local_free(others[i]);
  }
  return hm_local_alloc(size);
}

int main(void) {
  static const struct kind kinds[] = {{48, 100, get, put, NULL}, {1792, 2000, get, put, NULL}, {1000, 2000, get_mixed, put, NULL}};
  return ALL_END_WELL(kinds);
}
