/* malloc from an IFUNC resolver: relocation is still going on, and the initial values of thread-local variables have
 * not been copied to the first thread yet. */
#include "case.h"

static void* from_resolver;
static int answer(void) { return 42; }

__attribute__((used)) static int (*resolve_answer(void))(void) {
  from_resolver = malloc(200);
  free(realloc(malloc(100), 5000));
  return answer;
}
int chosen_at_load(void) __attribute__((ifunc("resolve_answer")));

CASE(early_ifunc) {
  REQUIRE(chosen_at_load() == 42 && from_resolver != NULL);
  mark(from_resolver, 200, 1);
  void* next = malloc(200);
  REQUIRE(next != NULL && next != from_resolver);
  mark(next, 200, 2);
  free_marked(from_resolver, 200, 1);
  free(next);
}

CASE_MAIN()
