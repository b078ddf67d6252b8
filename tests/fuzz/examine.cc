// What the allocator's structures say of themselves.
#include <hmalloc/hmalloc.h>

#include "fuzz.h"
#include "hmalloc/huge.h"
#include "hmalloc/registry.h"
#include "hmalloc/slice_pool.h"

namespace fuzz {

void examine_everything() {
  expect(hm::registry.is_valid(), "a heap without a thread is not valid");
  expect(!hm::have_heap() || hm::my_heap()->is_valid(), "this thread's heap is not valid");
  expect(hm::huge_is_valid(), "huge blocks are not valid");
  hm::slice_pool.for_each([](hm::Superblock& sb) {
    expect(sb.kind() == hm::SliceKind::kLarge || sb.is_valid(), "a superblock is not valid", &sb);
  });
}

void expect_nothing_held() {
  hm_collect();
  examine_everything();
  hm_stats stats;
  hm_stats_get(&stats);
  expect(stats.allocated == 0, "the program holds nothing, and the gauge says it does");
}

}  // namespace fuzz
