/* For allocators that break down on purpose: glibc's, until the call that was meant.  A program starts and ends with
 * fewer calls than kGoodCalls; a workload needs more. */
#pragma once
#include <stddef.h>

enum { kGoodCalls = 2000 };

void* __libc_malloc(size_t size);

static inline int still_good(void) {
  static int calls;
  return __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) <= kGoodCalls;
}
