/* hmalloc's own numbers, where the allocator under test has them: the same programs run on any other. */
#ifndef CONFORMANCE_STATS_H
#define CONFORMANCE_STATS_H

#include <dlfcn.h>

#include "case.h"
#include "hmalloc/hmalloc.h"

/* False where the allocator is not hmalloc. */
static inline int own_stats(struct hm_stats* out) {
  void (*get)(struct hm_stats*) = (void (*)(struct hm_stats*))dlsym(RTLD_DEFAULT, "hm_stats_get");
  if (get == NULL) return 0;
  get(out);
  return 1;
}

#endif
