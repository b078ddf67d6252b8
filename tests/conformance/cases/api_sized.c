/* C23 free_sized and free_aligned_sized, found at run time: glibc 2.36 has neither. */
#include <dlfcn.h>

#include "case.h"

typedef void (*FreeSized)(void*, size_t);
typedef void (*FreeAlignedSized)(void*, size_t, size_t);

static FreeSized free_sized_here(void) {
  FreeSized function = (FreeSized)dlsym(RTLD_DEFAULT, "free_sized");
  REQUIRE(function != NULL);
  return function;
}
static FreeAlignedSized free_aligned_sized_here(void) {
  FreeAlignedSized function = (FreeAlignedSized)dlsym(RTLD_DEFAULT, "free_aligned_sized");
  REQUIRE(function != NULL);
  return function;
}

static void free_sized_right(void) {
  FreeSized sized = free_sized_here();
  FreeAlignedSized aligned = free_aligned_sized_here();
  for (size_t size = 0; size < 6 * MIB; size += size / 5 + 1) {
    sized(malloc(size), size);
    sized(calloc(1, size), size);
    sized(realloc(malloc(3), size + 1), size + 1);
    aligned(aligned_alloc(256, (size + 255) / 256 * 256), 256, (size + 255) / 256 * 256);
  }
  errno = 4242;
  sized(NULL, 0);
  aligned(NULL, 64, 0);
  REQUIRE(errno == 4242);
}

static void free_sized_wrong(void) { free_sized_here()(malloc(100), hidden_size(5000)); }
static void free_sized_wrong_large(void) { free_sized_here()(malloc(3 * MIB), hidden_size(100)); }
static void free_aligned_sized_wrong(void) {
  free_aligned_sized_here()(aligned_alloc(64, 128), hidden_size(64), hidden_size(4096));
}

static const Case cases[] = {{"free_sized_right", free_sized_right},
                             {"free_sized_wrong", free_sized_wrong},
                             {"free_sized_wrong_large", free_sized_wrong_large},
                             {"free_aligned_sized_wrong", free_aligned_sized_wrong}};
CASE_MAIN(cases)
