/* Pointers that no allocator handed out, or not in this form. */
#include <malloc.h>
#include <sys/mman.h>

#include "case.h"

static char* take(size_t size) {
  char* block = (char*)malloc(hidden_size(size));
  REQUIRE(block != NULL);
  memset(block, 1, size);
  return block;
}

static void free_at(uintptr_t address) { free(hidden((void*)address)); }

static void free_stack(void) {
  char buffer[256] __attribute__((aligned(16)));
  free(hidden(buffer + 64));
}

static char global_buffer[256] __attribute__((aligned(16)));
static void free_global(void) { free(hidden(global_buffer)); }
static void free_text(void) { free_at((uintptr_t)&free_stack & ~(uintptr_t)15); }
static void free_wild(void) { free_at(0x5a5a5a5a5a50u); }
static void free_noncanon(void) { free_at(0x4141414141414140u); }
static void free_kernel(void) { free_at(0xffffffff81000000u); }
static void free_low(void) { free_at(16); }

static char* map_foreign(int fill) {
  char* region = (char*)mmap(NULL, 16 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(region != MAP_FAILED);
  if (fill != 0) memset(region, fill, 16 * MIB);
  return region;
}
static void free_foreign_mmap(void) { free(hidden(map_foreign(0x41) + 65536 + 4096 + 64)); }

/* At the 4 MiB boundary, where an allocator that masks addresses would look for its header and find zeros. */
static void free_foreign_zero(void) {
  uintptr_t region = (uintptr_t)map_foreign(0);
  free_at(((region + 4 * MIB - 1) & ~(4 * MIB - 1)) + 65536);
}

static void free_unmapped(void) {
  char* region = map_foreign(0);
  REQUIRE(munmap(region, 16 * MIB) == 0);
  free(hidden(region + 4096));
}

/* Half a superblock away from a live block, where none has been handed out yet. */
static void free_unalloc(void) { free_at((uintptr_t)take(64) ^ 0x8000); }
static void free_interior(void) { free(hidden(take(200) + 64)); }
static void free_unaligned(void) { free(hidden(take(200) + 1)); }
static void free_off8(void) { free(hidden(take(200) + 8)); }
static void free_medium_interior(void) { free(hidden(take(20000) + 4096)); }
static void free_large_interior(void) { free(hidden(take(MIB) + 4096)); }
static void free_large_4m(void) { free(hidden(take(16 * MIB) + 4 * MIB)); }

static void usable_wild(void) { (void)hidden((void*)malloc_usable_size(hidden((void*)0x5a5a5a5a5a50u))); }
static void realloc_stack(void) {
  char buffer[256] __attribute__((aligned(16)));
  (void)hidden(realloc(hidden(buffer), 500));
}
static void realloc_interior(void) { (void)hidden(realloc(hidden(take(200) + 16), 500)); }
static void realloc_freed(void) {
  char* block = take(100);
  free(block);
  (void)hidden(realloc(hidden(block), 5000));
}

static const Case cases[] = {{"free_stack", free_stack},
                             {"free_global", free_global},
                             {"free_text", free_text},
                             {"free_wild", free_wild},
                             {"free_noncanon", free_noncanon},
                             {"free_kernel", free_kernel},
                             {"free_low", free_low},
                             {"free_foreign_mmap", free_foreign_mmap},
                             {"free_foreign_zero", free_foreign_zero},
                             {"free_unmapped", free_unmapped},
                             {"free_unalloc", free_unalloc},
                             {"free_interior", free_interior},
                             {"free_unaligned", free_unaligned},
                             {"free_off8", free_off8},
                             {"free_medium_interior", free_medium_interior},
                             {"free_large_interior", free_large_interior},
                             {"free_large_4m", free_large_4m},
                             {"usable_wild", usable_wild},
                             {"realloc_stack", realloc_stack},
                             {"realloc_interior", realloc_interior},
                             {"realloc_freed", realloc_freed}};
CASE_MAIN(cases)
