/* malloc before main: from preinit_array, from a library's constructor, and beside dlsym and dlerror that early. */
#include <dlfcn.h>

#include "case.h"

void* early_block(void);

static void* from_preinit;
static void allocate_in_preinit(void) {
  from_preinit = realloc(malloc(10), 3000);
  void* found = dlsym(RTLD_NEXT, "no_such_symbol_anywhere");
  free(found != NULL || dlerror() == NULL ? NULL : malloc(50));
}
__attribute__((section(".preinit_array"), used)) static void (*preinit)(void) = allocate_in_preinit;

CASE(early_alloc) {
  REQUIRE(from_preinit != NULL && early_block() != NULL);
  mark(from_preinit, 3000, 2);
  free(from_preinit);
}

CASE_MAIN()
