/* own_api NAME: one misuse of the API that only hmalloc has; cases.py says how it is answered. */
#include "hmalloc/hmalloc_local.h"

#include "case.h"

static char global_array[256] __attribute__((aligned(16)));

static char* local(size_t size) { return (char*)hidden(hm_local_alloc(size)); }
static char* shared(size_t size) { return (char*)hidden(hm_shared_alloc(size)); }
static void* free_local(void* block) {
  hm_local_free(hidden(block));
  return NULL;
}
static char* local_and_free(void) {
  char* block = local(100);
  free_local(block);
  return block;
}

CASE(hm_free_made_up) { hm_free(hidden((void*)0x5a5a5a5a5a50)); }
CASE(hm_free_sized_wrong) { hm_free_sized(hidden(hm_malloc(100)), 1000); }

CASE(local_df) { free_local(local_and_free()); }
CASE(local_df_by_thread) { join_thread(start_thread(free_local, local_and_free())); }
CASE(local_df_after_thread) {
  char *block = local(100), *kept = local(100);
  join_thread(start_thread(free_local, block));
  free_local(block);
  free_local(kept);
}
CASE(local_realloc_freed) { (void)hidden(hm_local_realloc(local_and_free(), 10)); }
CASE(local_free_inside_16) { free_local(local(100) + 16); }
CASE(local_free_inside_32) { free_local(local(200) + 32); }
CASE(local_free_inside_8) { free_local(local(100) + 8); }
CASE(local_free_inside_1) { free_local(local(200) + 1); }
CASE(local_free_global) { free_local(global_array); }
CASE(local_free_stack) {
  char buffer[64] __attribute__((aligned(16)));
  free_local(buffer);
}

CASE(shared_df) {
  char* block = shared(100);
  hm_shared_free(block);
  hm_shared_free(hidden(block));
}
CASE(local_free_sized_near) { hm_local_free_sized(local(100), 60); }
CASE(local_free_sized_wrong) { hm_local_free_sized(local(100), 1000); }
CASE(shared_free_sized_wrong) { hm_shared_free_sized(shared(100), 1000); }

CASE_MAIN()
