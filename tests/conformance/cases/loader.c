/* Plugins come and go, and an attempt to unload the allocator itself. */
#include <dlfcn.h>

#include "case.h"

static void* allocate_through(void* plugin) {
  void* (*allocate)(size_t) = (void* (*)(size_t))dlsym(plugin, "plugin_allocate");
  REQUIRE(allocate != NULL);
  for (size_t size = 1; size < 5000; size += 97) free(allocate(size));
  return memset(allocate(1234), 1, 1234);
}

CASE(dl_loop) {
  char path[4096];
  ssize_t length = readlink("/proc/self/exe", path, sizeof path - 20);
  REQUIRE(length > 0);
  path[length] = '\0';
  strcpy(strrchr(path, '/') + 1, "libplugin.so"); /* beside this program */
  for (int i = 0; i < 300; i++) {
    void* plugin = dlopen(path, i % 2 ? RTLD_NOW : RTLD_LAZY | RTLD_GLOBAL);
    REQUIRE(plugin != NULL);
    void* from_main = allocate_through(plugin);
    void* from_thread = join_thread(start_thread(allocate_through, plugin));
    REQUIRE(dlclose(plugin) == 0);
    free(from_main);
    free(from_thread);
  }
}

static pthread_barrier_t closed;

static void* live_across_dlclose(void* unused) {
  void* block = take_marked(300, 4);
  pthread_barrier_wait(&closed);
  pthread_barrier_wait(&closed);
  free_marked(block, 300, 4);
  free(malloc(5000));
  return unused;
}

/* CONFORMANCE_LIBRARY names the allocator's file.  Not preloaded: its thread-local storage must fit what the loader
 * keeps in reserve, and dlclose must leave it in place, for threads still point into it. */
CASE(dlopen_self) {
  const char* path = getenv("CONFORMANCE_LIBRARY");
  REQUIRE(path != NULL && pthread_barrier_init(&closed, NULL, 2) == 0);
  pthread_t thread = start_thread(live_across_dlclose, NULL);
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) require_failed(__FILE__, __LINE__, dlerror(), errno);
  void* (*other_malloc)(size_t) = (void* (*)(size_t))dlsym(library, "malloc");
  void (*other_free)(void*) = (void (*)(void*))dlsym(library, "free");
  REQUIRE(other_malloc != NULL && other_free != NULL);
  void* block = other_malloc(1000);
  REQUIRE(block != NULL);
  mark(block, 1000, 6);
  pthread_barrier_wait(&closed);
  for (int i = 0; i < 5; i++) {
    dlclose(library);
    REQUIRE((library = dlopen(path, RTLD_NOW | RTLD_NOLOAD)) != NULL);
  }
  dlclose(library);
  REQUIRE(is_marked(block, 1000, 6));
  other_free(block);
  pthread_barrier_wait(&closed);
  join_thread(thread);
}

CASE_MAIN()
