#include "large/runs.h"

#include "base/slots.h"
#include "core/superblock_pool.h"
#include "pages/cache_budget.h"
#include "pages/memory_limit.h"

namespace hm {

namespace {

// Tails stay tails when a run is freed, and often are tails of the next one: their descriptors are other lines.
void mark_tails(Slice& first, size_t from, size_t to) noexcept {
  for (size_t i = from; i < to; ++i)
    if ((&first)[i].kind() != SliceKind::kLargeTail) (&first)[i].set_kind(SliceKind::kLargeTail);
}

FreshBlock allocate_run(size_t size) noexcept {
  size_t slices = divide_up(size, kSlice);
  SlicePool::Run run = superblock_pool.fresh_run(slices);
  if (run.first == nullptr) return {nullptr, 0};
  run.first->block_size = static_cast<uint32_t>(slices * kSlice);
  mark_tails(*run.first, 1, slices);
  LargeRun::of(*run.first).heap = nullptr;
  run.first->set_kind(SliceKind::kLarge);
  return {run.first->base(), run.zeroed ? 0 : size};
}

size_t slices_in(const Slice& first) { return first.block_size / kSlice; }

}  // namespace

FreshBlock allocate_large(size_t size, size_t alignment) noexcept {
  if (size > kMaxRequest - 2 * kChunk || alignment > kMaxRequest / 4 || size + alignment > kMaxRequest / 2)
    return {nullptr, 0};
  if (!kHardened && size <= kLargeMax && alignment <= kSlice) return allocate_run(size == 0 ? 1 : size);
  FreshBlock kept = allocate_huge(size, alignment, false);
  if (kept.block != nullptr) return kept;
  superblock_pool.reclaim_before_growth(size);  // so that phases of small and of huge blocks share their memory
  return allocate_huge(size, alignment, true);
}

// Statistics read it too, while the owner may be resizing.
size_t large_capacity(const Slice& first) noexcept {
  return std::atomic_ref(const_cast<uint32_t&>(first.block_size)).load(std::memory_order_relaxed);
}

void free_large(Slice& first) noexcept {
  first.set_kind(SliceKind::kUnused);
  slice_pool.release(first, slices_in(first));
}

bool resize_large(Slice& first, size_t size) noexcept {
  if (size <= kSmallMax || size > SlicePool::kMaxRun * kSlice) return false;
  size_t old_slices = slices_in(first), new_slices = divide_up(size, kSlice);
  if (new_slices > old_slices && !slice_pool.extend(first, old_slices, new_slices)) return false;
  mark_tails(first, old_slices, new_slices);
  std::atomic_ref(first.block_size).store(static_cast<uint32_t>(new_slices * kSlice), std::memory_order_relaxed);
  keep_order();  // a fork that cuts another thread off here loses the slices
  if (new_slices < old_slices) slice_pool.release((&first)[new_slices], old_slices - new_slices);
  return true;
}

FreshBlock LargeCache::take(size_t size) noexcept {
  if (size > kLargeMax) return {nullptr, 0};
  wanted_ = true;
  size_t slices = divide_up(size, kSlice);
  for (size_t i = count_; i-- > 0;) {
    if (slices_[i] != slices) continue;
    Slice& run = remove(i);
    run.set_kind(SliceKind::kLarge);
    return {run.base(), slices * kSlice};
  }
  most_slices_ = static_cast<uint16_t>(std::min(kMaxBytes, cache_budget() / 2) / kSlice);
  return {nullptr, 0};
}

// Other threads see its first slice as unused.
bool LargeCache::keep(Slice& run) noexcept {
  if (!wanted_ || is_above_soft_limit() || count_ == kMostRuns || bytes() + run.block_size > most_slices_ * kSlice)
    return false;
  run.set_kind(SliceKind::kUnused);
  slices_[count_] = static_cast<uint8_t>(slices_in(run));
  runs_[count_++] = &run;
  bytes_.store(bytes() + run.block_size, std::memory_order_relaxed);
  return true;
}

Slice& LargeCache::remove(size_t i) noexcept {
  Slice& run = *runs_[i];
  bytes_.store(bytes() - slices_[i] * kSlice, std::memory_order_relaxed);
  --count_;
  move_slots(runs_.data() + i, runs_.data() + i + 1, count_ - i);
  move_slots(slices_.data() + i, slices_.data() + i + 1, count_ - i);
  return run;
}

void LargeCache::count_again() noexcept {
  size_t sum = 0;
  for (size_t i = 0; i < count_; ++i) sum += slices_[i];
  bytes_.store(sum * kSlice, std::memory_order_relaxed);
}

void LargeCache::tick() noexcept {
  if (!wanted_) release_all();
  wanted_ = false;
}

void LargeCache::release_all() noexcept {
  while (count_ > 0) free_large(remove(count_ - 1));
}

}  // namespace hm
