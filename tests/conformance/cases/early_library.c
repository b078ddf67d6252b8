/* The library of early_alloc: a constructor that allocates before main, a destructor after it. */
#include <stdlib.h>

void* early_block(void);

static __thread void* of_this_thread;
static void* kept;

__attribute__((constructor)) static void allocate_early(void) {
  of_this_thread = malloc(500);
  kept = calloc(20, 20);
}
void* early_block(void) { return kept; }
__attribute__((destructor)) static void free_late(void) {
  free(kept);
  free(of_this_thread);
  free(malloc(100));
}
