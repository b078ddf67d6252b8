#include "pages/slice_guards.h"

#include <algorithm>

#include "base/os_pages.h"
#include "base/process.h"
#include "base/secret.h"

namespace hm {
namespace {

std::atomic<size_t> guard_count{0};  // slices.  Relaxed: a count

// Noted before it is made: the child of a fork that cuts this off hands out no slice that it cannot touch.
bool make_guard(Chunk& chunk, size_t slice, size_t n) noexcept {
  bool room = guard_count.fetch_add(n, std::memory_order_relaxed) + n <= SliceGuards::kMost;
  chunk.guards |= mask_of(slice, n);
  keep_order();
  if (room && os::seal(slice_at(chunk, slice), n * kSlice)) return true;
  chunk.guards &= ~mask_of(slice, n);
  guard_count.fetch_sub(n, std::memory_order_relaxed);
  return false;
}

}  // namespace

void SliceGuards::make(Chunk& chunk) noexcept {
  if (!are_on() || chunk.guards != 0) return;
  size_t in_page = std::max(os::page_size() / kSlice, size_t{1});
  for (size_t first = 0; first < kSlicesInChunk; first += kEvery * in_page) {
    size_t slice = first + next_random() % kEvery * in_page;
    bool is_metadata = (mask_of(slice, in_page) & ~all_slices(chunk)) != 0;
    if (!is_metadata && !make_guard(chunk, slice, in_page)) return;
  }
}

void SliceGuards::unmapped(size_t slices) noexcept { guard_count.fetch_sub(slices, std::memory_order_relaxed); }
size_t SliceGuards::count() noexcept { return guard_count.load(std::memory_order_relaxed); }

}  // namespace hm
