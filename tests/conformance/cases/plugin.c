/* The plugin of dl_loop: thread-local storage, a constructor and a destructor that allocate. */
#include <stdlib.h>
#include <string.h>

void* plugin_allocate(size_t size);

static __thread char scratch[3000];
static void* kept;

__attribute__((constructor)) static void open_plugin(void) { kept = malloc(70000); }
__attribute__((destructor)) static void close_plugin(void) { free(kept); }

void* plugin_allocate(size_t size) {
  memset(scratch, 1, sizeof scratch);
  return malloc(size);
}
