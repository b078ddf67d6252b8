// What the allocator's structures say of themselves.
#include <hmalloc/hmalloc.h>

#include "fuzz.h"
#include "large/huge.h"
#include "pages/slice_pool.h"
#include "profile/samples.h"
#include "threads/registry.h"

namespace fuzz {

void examine_everything() {
  expect(hm::registry.is_valid(), "a heap without a thread is not valid");
  expect(!hm::have_heap() || hm::my_heap()->is_valid(), "this thread's heap is not valid");
  expect(hm::samples.is_valid(), "the samples are not valid");
  expect(hm::huge_is_valid(), "huge blocks are not valid");
  hm::slice_pool.for_each([](hm::Slice& first) {
    expect(first.kind() == hm::SliceKind::kLarge || hm::Superblock::of(first).is_valid(), "a superblock is not valid",
           &first);
  });
}

void expect_nothing_held() {
  hm_collect();
  examine_everything();
  hm_stats stats;
  hm_stats_get(&stats);
  expect(stats.allocated == 0, "the program holds nothing, and the gauge says it does");
  expect(hm_check() == 0, "the program holds nothing, and a check finds blocks in use");
}

}  // namespace fuzz
