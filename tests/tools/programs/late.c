/* An allocator that dawdles: between being called and taking memory, and between giving memory back and returning. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>

static void dawdle(void) {
  struct timespec moment = {0, 20000};
  nanosleep(&moment, NULL);
}

void* malloc(size_t size) {
  static void* (*next)(size_t);
  if (!next) next = (void* (*)(size_t))dlsym(RTLD_NEXT, "malloc");
  dawdle();
  return next(size);
}

void free(void* block) {
  static void (*next)(void*);
  if (!next) next = (void (*)(void*))dlsym(RTLD_NEXT, "free");
  next(block);
  dawdle();
}
