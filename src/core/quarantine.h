// The small blocks that a thread has freed and that may not serve again yet (hardened library): all zero, and CACHED.
//
// A block gets a place at random among kPlaces; what was there goes to the end of a queue of kQueue, and what comes out of its
// front may serve again.  So at least kQueue other blocks are freed before a block serves again, and how many nobody can
// foresee; unless the limit of bytes (HMALLOC_QUARANTINE) is reached before, which then counts the blocks in place of kQueue.
// A single block waits in any case.
//
// Belongs to a heap, and only its thread uses it; a signal handler of that thread may end the program in the middle, and have it
// checked: no entry counts that does not wait.  All zero: empty.
#pragma once
#include <array>

#include "base/process.h"
#include "base/report.h"
#include "base/secret.h"
#include "base/zeros.h"
#include "core/description.h"
#include "core/small_heap.h"
#include "pages/options.h"

namespace hm {

class Quarantine {
 public:
  static constexpr size_t kPlaces = 256, kQueue = 256;

  bool is_full_for(size_t bytes) const noexcept { return queued_ == kQueue || bytes_ + bytes > options.quarantine_bytes; }
  // There must be room.
  void put(void* block, size_t bytes) noexcept {
    used_ = true;
    bytes_ += bytes;
    void* before = std::exchange(places_[next_random() % kPlaces], block);
    if (before == nullptr) return;
    queue_[(first_ + queued_) % kQueue] = before;
    keep_order();
    ++queued_;
  }
  // The one that has waited longest, or null if none does.
  void* take() noexcept {
    void* block = queued_ > 0 ? take_first() : take_any();
    if (block != nullptr) bytes_ -= find_block(block).sb.block_size;
    return block;
  }
  bool was_used() noexcept { return std::exchange(used_, false); }  // since this was asked last
  void release_all() noexcept {
    while (void* block = take()) {
      require_zero(block);
      BlockRef ref = find_block(block);
      give_back(ref.sb, ref.state);
    }
  }
  void check() const noexcept {
    for (void* block : places_)
      if (block != nullptr) require_zero(block);
    for (size_t i = 0; i < queued_; ++i) require_zero(queue_[(first_ + i) % kQueue]);
  }

 private:
  // Nobody has written to it since it was cleared.
  static void require_zero(void* block) noexcept {
    if (!is_all_zero(block, find_block(block).sb.block_size))
      die_on_misuse("free", block, kWrittenAfterFree, describe_written);
  }
  void* take_first() noexcept {
    void* block = queue_[first_];
    --queued_;
    keep_order();
    first_ = (first_ + 1) % kQueue;
    return block;
  }
  void* take_any() noexcept {
    if (bytes_ == 0) return nullptr;
    for (size_t i = 0, start = next_random(); i < kPlaces; ++i)
      if (void* block = std::exchange(places_[(start + i) % kPlaces], nullptr)) return block;
    return nullptr;
  }

  std::array<void*, kPlaces> places_;
  std::array<void*, kQueue> queue_;
  size_t first_, queued_, bytes_;
  bool used_;
};

}  // namespace hm
