// What the tests of guarded blocks share.
#pragma once
#include "base/os_pages.h"
#include "guard/guarded_blocks.h"
#include "profile/sampler.h"
#include "support.h"

namespace hm::test {

// Each sampled block is guarded: no pause in between.
struct Guarded : testing::Test {
  Guarded() {
    EXPECT_TRUE(guarded_blocks.start(0));
    sampler.start_for_guard();
  }
};

// Until the one that is sampled.
inline char* guarded(size_t size, void* (*allocate)(size_t) = hm_malloc) {
  for (int i = 0; i < 10'000'000; ++i) {
    void* block = allocate(size);
    if (kind_of(block) == ChunkKind::kGuarded) return static_cast<char*>(block);
    hm_free(block);
  }
  ADD_FAILURE() << "no block of " << size << " bytes was guarded";
  return nullptr;
}

// One that ends with its page, or one that begins with it.
inline bool ends_page(const char* block, size_t size) {
  return (address_of(block) + align_up(size, kGranule)) % os::page_size() == 0;
}
inline char* guarded_at(bool end, size_t size) {
  for (int i = 0; i < 1000; ++i) {
    char* block = guarded(size);
    if (ends_page(block, size) == end) return block;
    hm_free(block);
  }
  ADD_FAILURE() << "all lie at the other end";
  return nullptr;
}

}  // namespace hm::test
