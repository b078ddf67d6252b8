/* C23 free_sized and free_aligned_sized, found at run time: glibc 2.36 has neither. */
#include <dlfcn.h>

#include "case.h"

typedef void (*FreeSized)(void*, size_t);
typedef void (*FreeAlignedSized)(void*, size_t, size_t);

CASE(free_sized_right) {
  FreeSized sized = (FreeSized)dlsym(RTLD_DEFAULT, "free_sized");
  FreeAlignedSized aligned = (FreeAlignedSized)dlsym(RTLD_DEFAULT, "free_aligned_sized");
  REQUIRE(sized != NULL && aligned != NULL);
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

CASE_MAIN()
