#include "large/runs.h"

#include "base/slots.h"
#include "core/superblock_pool.h"
#include "pages/cache_budget.h"

namespace hm {

namespace {

FreshBlock allocate_run(size_t size) noexcept {
  size_t slices = divide_up(size, kSlice);
  SlicePool::Run run = superblock_pool.fresh_run(slices);
  if (run.first == nullptr) return {nullptr, 0};
  run.first->block_size = static_cast<uint32_t>(slices * kSlice);
  for (size_t i = 1; i < slices; ++i) run.first[i].set_kind(SliceKind::kLargeTail);
  run.first->set_kind(SliceKind::kLarge);
  return {run.first->base(), run.zeroed ? 0 : size};
}

size_t slices_in(const Slice& first) { return first.block_size / kSlice; }

}  // namespace

FreshBlock allocate_large(size_t size, size_t alignment) noexcept {
  if (size > kMaxRequest - 2 * kChunk || alignment > kMaxRequest / 4 || size + alignment > kMaxRequest / 2)
    return {nullptr, 0};
  if (size <= kLargeMax && alignment <= kSlice) return allocate_run(size == 0 ? 1 : size);
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
  size_t slices = slices_in(first);
  for (size_t i = 0; i < slices; ++i) (&first)[i].set_kind(SliceKind::kUnused);
  slice_pool.release(first, slices);
}

bool resize_large(Slice& first, size_t size) noexcept {
  if (size <= kSmallMax || size > SlicePool::kMaxRun * kSlice) return false;
  size_t old_slices = slices_in(first), new_slices = divide_up(size, kSlice);
  if (new_slices > old_slices && !slice_pool.extend(first, old_slices, new_slices)) return false;
  for (size_t i = old_slices; i < new_slices; ++i) (&first)[i].set_kind(SliceKind::kLargeTail);
  for (size_t i = new_slices; i < old_slices; ++i) (&first)[i].set_kind(SliceKind::kUnused);
  if (new_slices < old_slices) slice_pool.release((&first)[new_slices], old_slices - new_slices);
  std::atomic_ref(first.block_size).store(static_cast<uint32_t>(new_slices * kSlice), std::memory_order_relaxed);
  return true;
}

FreshBlock LargeCache::take(size_t size) noexcept {
  if (size > kLargeMax) return {nullptr, 0};
  wanted_ = true;
  size_t length = align_up(size, kSlice);
  for (size_t i = count_; i-- > 0;) {
    Slice& run = *runs_[i];
    if (run.block_size != length) continue;
    remove(i);
    run.set_kind(SliceKind::kLarge);
    return {run.base(), run.block_size};
  }
  most_slices_ = static_cast<uint16_t>(std::min(kMaxBytes, cache_budget() / 2) / kSlice);
  return {nullptr, 0};
}

// Other threads see its first slice as unused; the other slices stay as they are, for the next use.
bool LargeCache::keep(Slice& run) noexcept {
  if (!wanted_ || count_ == runs_.size() || bytes() + run.block_size > most_slices_ * kSlice) return false;
  run.set_kind(SliceKind::kUnused);
  runs_[count_++] = &run;
  bytes_.store(bytes() + run.block_size, std::memory_order_relaxed);
  return true;
}

void LargeCache::remove(size_t i) noexcept {
  bytes_.store(bytes() - runs_[i]->block_size, std::memory_order_relaxed);
  --count_;
  move_slots(runs_.data() + i, runs_.data() + i + 1, count_ - i);
}

void LargeCache::count_again() noexcept {
  size_t sum = 0;
  for (size_t i = 0; i < count_; ++i) sum += runs_[i]->block_size;
  bytes_.store(sum, std::memory_order_relaxed);
}

void LargeCache::tick() noexcept {
  if (!wanted_) release_all();
  wanted_ = false;
}

void LargeCache::release_all() noexcept {
  while (count_ > 0) {
    Slice& run = *runs_[count_ - 1];
    remove(count_ - 1);
    free_large(run);
  }
}

}  // namespace hm
