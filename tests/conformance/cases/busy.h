/* Threads that allocate and free until they are told to stop, beside what a case is about. */
#ifndef CONFORMANCE_BUSY_H
#define CONFORMANCE_BUSY_H

#include <stdatomic.h>

#include "case.h"

static atomic_int stopping;

static inline void* allocate_until_stopped(void* seed) {
  uint64_t state = (uint64_t)(uintptr_t)seed * 77 + 5;
  void* held[64] = {NULL};
  while (!atomic_load_explicit(&stopping, memory_order_relaxed)) {
    size_t slot = random_next(&state) % COUNT_OF(held);
    free(held[slot]);
    held[slot] = take(1 + random_next(&state) % (slot == 0 ? 300000 : 2000));
  }
  free_all(held, COUNT_OF(held));
  return NULL;
}

static inline void stop(const pthread_t* threads, size_t count) {
  atomic_store(&stopping, 1);
  join_threads(threads, count);
}

#endif
