#include "verdict.h"

#include <hmalloc/hmalloc.h>

#include <cinttypes>
#include <cstdio>

#include "blocks.h"
#include "pages/slice_pool.h"
#include "threads/registry.h"

namespace stress {

void examine_everything() {
  if (!hm::registry.is_valid()) fail("a heap without a thread is not valid");
  if (hm::have_heap() && !hm::my_heap()->is_valid()) fail("the main thread's heap is not valid");
  hm::slice_pool.for_each([](hm::Slice& first) {
    if (first.kind() != hm::SliceKind::kLarge && !hm::Superblock::of(first).is_valid())
      fail("a superblock is not valid", &first);
  });
}

void expect_nothing_held() {
  hm_collect();
  hm_stats stats;
  hm_stats_get(&stats);
  if (stats.allocated == 0) return;
  fprintf(stderr, "stress: %" PRIu64 " bytes are lost\n", stats.allocated);
  hm_stats_print(2, 0);
  fail("blocks are lost");
}

}  // namespace stress
