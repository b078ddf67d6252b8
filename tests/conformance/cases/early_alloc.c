/* malloc before main: from an IFUNC resolver (relocation is still going on), from preinit_array, from a library's
 * constructor, and from dlsym and dlerror called that early. */
#include <dlfcn.h>

#include "case.h"

void* early_block(void);

static void* from_resolver;
static int answer(void) { return 42; }

__attribute__((used)) static int (*resolve_answer(void))(void) {
  from_resolver = malloc(200);
  return answer;
}
int chosen_at_load(void) __attribute__((ifunc("resolve_answer")));

static void* from_preinit;
static void allocate_in_preinit(void) {
  from_preinit = realloc(malloc(10), 3000);
  void* found = dlsym(RTLD_NEXT, "no_such_symbol_anywhere");
  free(found != NULL || dlerror() == NULL ? NULL : malloc(50));
}
__attribute__((section(".preinit_array"), used)) static void (*preinit)(void) = allocate_in_preinit;

static void early_alloc(void) {
  REQUIRE(chosen_at_load() == 42);
  REQUIRE(from_resolver != NULL && from_preinit != NULL && early_block() != NULL);
  mark(from_resolver, 200, 1);
  mark(from_preinit, 3000, 2);
  REQUIRE(is_marked(from_resolver, 200, 1));
  free(from_resolver);
  free(from_preinit);
}

static const Case cases[] = {{"early_alloc", early_alloc}};
CASE_MAIN(cases)
