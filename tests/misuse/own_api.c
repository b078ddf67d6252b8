/* own_api NAME: one misuse of the API that only hmalloc has; cases.py says how it is answered. */
#include "hmalloc/hmalloc.h"

#include "case.h"

static char global_array[256] __attribute__((aligned(16)));

static char* local(size_t size) { return (char*)hidden(hm_local_alloc(size)); }
static char* shared(size_t size) { return (char*)hidden(hm_shared_alloc(size)); }
static void* free_local(void* block) {
  hm_local_free(hidden(block));
  return NULL;
}
/* Two blocks, so that the second keeps the unit of the first alive. */
static char* local_and_free(void) {
  char* block = local(100);
  (void)local(100);
  free_local(block);
  return block;
}

static void hm_free_made_up(void) { hm_free(hidden((void*)0x5a5a5a5a5a50)); }
static void hm_free_sized_wrong(void) { hm_free_sized(hidden(hm_malloc(100)), 1000); }

static void local_df(void) { free_local(local_and_free()); }
static void local_df_by_thread(void) { join_thread(start_thread(free_local, local_and_free())); }
static void local_df_after_thread(void) {
  char *block = local(100), *kept = local(100);
  join_thread(start_thread(free_local, block));
  free_local(block);
  free_local(kept);
}
static void local_realloc_freed(void) { (void)hidden(hm_local_realloc(local_and_free(), 10)); }
static void local_free_inside_16(void) { free_local(local(100) + 16); }
static void local_free_inside_32(void) { free_local(local(200) + 32); }
static void local_free_inside_8(void) { free_local(local(100) + 8); }
static void local_free_inside_1(void) { free_local(local(200) + 1); }
static void local_free_global(void) { free_local(global_array); }
static void local_free_stack(void) {
  char buffer[64] __attribute__((aligned(16)));
  free_local(buffer);
}

static void shared_df(void) {
  char* block = shared(100);
  hm_shared_free(block);
  hm_shared_free(hidden(block));
}
static void shared_free_sized_wrong(void) { hm_shared_free_sized(shared(100), 1000); }

#define CASE(name) {#name, name}
static const Case cases[] = {
    CASE(hm_free_made_up), CASE(hm_free_sized_wrong), CASE(local_df), CASE(local_df_by_thread),
    CASE(local_df_after_thread), CASE(local_realloc_freed), CASE(local_free_inside_16), CASE(local_free_inside_32),
    CASE(local_free_inside_8), CASE(local_free_inside_1), CASE(local_free_global), CASE(local_free_stack),
    CASE(shared_df), CASE(shared_free_sized_wrong)};
CASE_MAIN(cases)
