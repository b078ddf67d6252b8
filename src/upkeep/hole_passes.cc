#include "upkeep/hole_passes.h"

#include "base/clock.h"
#include "base/os_pages.h"
#include "core/superblock_pool.h"
#include "pages/footprint.h"
#include "pages/slice_pool.h"
#include "threads/own_heaps.h"

namespace hm {

constinit HolePasses hole_passes;

namespace {

// In units of PausePasses::kWorkPerMs.
constexpr size_t kLook = 1, kSystemCall = 2;

constexpr uint32_t bits(size_t from, size_t to) {
  return static_cast<uint32_t>((uint64_t{1} << to) - (uint64_t{1} << from));
}

// Bit i: page i, counted from the one that the superblock starts in, lies wholly in the superblock, and no byte of it
// belongs to a block that is not FREE.  Acquire: what the last holders did to the blocks happened before.
uint32_t free_pages(const Superblock& sb) noexcept {
  auto shift = static_cast<size_t>(std::countr_zero(os::page_size()));
  size_t lead = address_of(sb.start) % os::page_size(), size = sb.block_size;
  uint32_t free = bits(lead > 0, (lead + sb.bytes()) >> shift);
  for (size_t i = 0; i < sb.blocks && free != 0; i += StateGroup::kBlocks)
    for (uint64_t taken = ~StateGroup(sb.states + i).free_mask() & StateGroup::kOnes; taken != 0; taken &= taken - 1) {
      size_t at = lead + (i + static_cast<size_t>(std::countr_zero(taken)) / 8) * size;
      free &= ~bits(at >> shift, ((at + size - 1) >> shift) + 1);
    }
  return free;
}

}  // namespace

// For the holder.  Neighbouring pages go in one call.
void HolePasses::give_back(Superblock& sb, Pass& pass) noexcept {
  uint32_t due = sb.holes_refused ? 0 : free_pages(sb) & ~sb.holes;
  if (due != 0) slice_pool.give_up_huge_page(sb);
  uintptr_t base = align_down(address_of(sb.start), os::page_size());
  while (due != 0 && !sb.holes_refused) {
    auto page = static_cast<size_t>(std::countr_zero(due)), n = static_cast<size_t>(std::countr_one(due >> page));
    uint32_t hole = bits(page, page + n);
    due &= ~hole;
    pass.work += kSystemCall;
    if (os::purge(reinterpret_cast<void*>(base + page * os::page_size()), n * os::page_size())) {
      sb.holes |= hole;
      pass.given_back += n * os::page_size();
      footprint.count_purged(n * os::page_size());
    } else {
      sb.holes_refused = true;
    }
  }
}

// Each goes to the end of its queue, so that in the end all are in the order in which they were.
void HolePasses::search(SuperblockQueue& queue, Pass& pass) noexcept {
  for (size_t left = queue.count(); left > 0 && pass.work < pass.most_work; --left) {
    Superblock* sb = queue.pop();
    if (sb == nullptr) return;
    pass.work += kLook;
    if (sb->is_empty()) {
      release(*sb);
      continue;
    }
    pass.looked_at += sb->bytes();
    give_back(*sb, pass);
    queue.push(*sb);
  }
}

void HolePasses::run(Pass& pass) noexcept {
  auto search_queues = [&](size_t from, size_t to) {
    size_t i = 0;
    auto visit = [&](SuperblockQueue& queue) {
      if (size_t at = i++; at >= from && at < to && pass.work < pass.most_work) search(queue, pass), next_queue_ = at;
    };
    superblock_pool.for_each_queue(visit);
    own_heaps.for_each([&](OwnHeap& heap) {  // under its lock (O1)
      for (SuperblockQueue& queue : heap.queues) visit(queue);
    });
  };
  size_t first = next_queue_;
  search_queues(first, SIZE_MAX);
  search_queues(0, first);
}

void HolePasses::whole() noexcept {
  LockGuard guard(lock_);
  Pass pass{SIZE_MAX};
  run(pass);
}

void HolePasses::after_pause(uint64_t pause_ms) noexcept {
  TryLockGuard guard(lock_);
  if (!guard.holds()) return;
  uint64_t from_ms = os::now_ms();
  Pass pass{pauses_.work_after(pause_ms, from_ms, footprint.refilled())};
  if (pass.most_work == 0) return;
  run(pass);
  slice_pool.purge(SlicePool::Purge::kSurplus, slice_pool.surplus_bytes());  // that little which waited for its chunk
  pauses_.on_pass(pass.looked_at, pass.given_back, from_ms, os::now_ms(), footprint.refilled());
}

}  // namespace hm
