// Blocks above 32 KB: runs of slices inside chunks up to 1 MB, huge blocks above.  For any thread.
#pragma once
#include <array>

#include "large/huge.h"
#include "large/own_link.h"
#include "pages/region.h"

namespace hm {

FreshBlock allocate_large(size_t size, size_t alignment) noexcept;

// Runs of slices: the descriptor of the first.
struct alignas(2 * kLine) LargeRun : Slice, OwnLink<LargeRun> {
  static LargeRun& of(Slice& first) noexcept { return static_cast<LargeRun&>(first); }
};
static_assert(sizeof(LargeRun) == sizeof(Slice));
size_t large_capacity(const Slice& first) noexcept;
void free_large(Slice& first) noexcept;
bool resize_large(Slice& first, size_t size) noexcept;  // in place

// The runs that a thread freed last, kept for its next requests of the same lengths: a program that keeps asking for 64
// KB should not take a lock each time.  Belongs to a heap; bytes() is for any thread.
class LargeCache {
 public:
  static constexpr size_t kMaxBytes = 16 * kSlice;
  FreshBlock take(size_t size) noexcept;  // null if none has this length
  bool keep(Slice& run) noexcept;         // false if there is no room for it
  void tick() noexcept;                   // if no run was requested since the last tick, releases all
  void release_all() noexcept;
  void count_again() noexcept;  // in the child of a fork that cut a release off
  size_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }

 private:
  friend struct Layout;
  static constexpr size_t kMostRuns = 8;
  Slice& remove(size_t i) noexcept;
  std::array<Slice*, kMostRuns> runs_{};     // oldest first
  std::array<uint8_t, kMostRuns> slices_{};  // their lengths, so that no descriptor is read of a run that does not fit
  std::atomic<size_t> bytes_{0};
  uint32_t count_ = 0;
  uint16_t most_slices_ = 0;  // that may be kept, as it was at the last request that found none
  bool wanted_ = false;
};

}  // namespace hm
