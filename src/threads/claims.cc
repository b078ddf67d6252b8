#include "threads/claims.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>

#include <bit>
#include <cerrno>

#include "base/system_call.h"

namespace hm {

constinit Claims claims;

namespace {

// All threads of the process have seen what this one did before, and it sees what they did.  False if the system cannot.
bool barrier_everywhere() noexcept {
  long result = system_call(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED);
  if (result == -EPERM && system_call(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0)
    result = system_call(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED);
  return result == 0;
}

// ThreadSanitizer knows nothing of that barrier.
constexpr bool kPossible = !kThreadSanitizer;

// Relaxed, here and at every slot: a barrier stands between this thread's accesses and those of the heap's thread that matter.
void put(void** slot, void* block) noexcept { std::atomic_ref(*slot).store(block, std::memory_order_relaxed); }
void* entry(void** slot) noexcept { return std::atomic_ref(*slot).load(std::memory_order_relaxed); }

uint64_t tops_of(const ThreadHeap& heap) noexcept {
  uint64_t sum = heap.refills.get() + heap.flushes.get();
  for (const BlockCache& cache : heap.caches) sum = std::rotl(sum, 7) + reinterpret_cast<uintptr_t>(cache.top());
  return sum;
}

bool is_above(const BlockCache& cache, void** fence) noexcept { return cache.top() > fence; }

}  // namespace

void Claims::look(ThreadHeap* newest) noexcept {
  if (!kPossible) return;
  LockGuard guard(lock_);
  for (ThreadHeap* heap = newest; heap != nullptr; heap = heap->next) heap->tops_when_seen = tops_of(*heap);
}

void Claims::collect(ThreadHeap* newest) noexcept {
  while (kPossible && newest != nullptr) {
    LockGuard guard(lock_);
    newest = want_some(newest);
    if (count_ > 0) take();
  }
}

// Returns where to go on.  Whether a heap is in use may change any moment; here it only saves work.
ThreadHeap* Claims::want_some(ThreadHeap* heap) noexcept {
  for (; heap != nullptr && count_ < kAtOnce; heap = heap->next) {
    if (heap == my_heap() || heap->shelf.stranded || heap->in_use.load(std::memory_order_relaxed)) continue;
    if (heap->claim.load(std::memory_order_relaxed) != Claim::kNone || tops_of(*heap) != heap->tops_when_seen) continue;
    claimed_[count_].heap = heap;
    claimed_[count_].fences.fill({});
    keep_order();
    ++count_;
    heap->claim.store(Claim::kWanted, std::memory_order_relaxed);
  }
  return heap;
}

// Acquire: what the heap's thread did when it used its heap happened before.
void Claims::let_go_of_those_in_use() noexcept {
  bool sure = barrier_everywhere();
  size_t kept = 0;
  for (size_t i = 0; i < count_; ++i) {
    ThreadHeap& heap = *claimed_[i].heap;
    bool mine = sure && !heap.in_use.load(std::memory_order_acquire) && !heap.handed_out;
    heap.claim.store(mine ? Claim::kClaimed : Claim::kNone, std::memory_order_relaxed);
    if (mine) claimed_[kept++].heap = &heap;
  }
  count_ = kept;
}

template <class Visit>
void Claims::for_each_cache(Visit visit) noexcept {
  for (size_t i = 0; i < count_; ++i)
    for (size_t c = 0; c < kClasses; ++c) visit(*claimed_[i].heap, claimed_[i].heap->caches[c], claimed_[i].fences[c]);
}

namespace {

// A fork that cuts this thread off in here loses the block.
void give_back_lowest(ThreadHeap& heap, BlockCache& cache, void* block) noexcept {
  cache.set_bottom(cache.bottom() + 1);
  keep_order();
  put(cache.bottom(), nullptr);
  keep_order();
  BlockRef ref = find_block(block);
  if (ref.sb.owner() != &heap.shelf) heap.cross_thread_frees.add(1);
  heap.shelf.made_free.add(ref.sb.block_size);
  give_back(ref.sb, ref.state);
}

}  // namespace

void Claims::take() noexcept {
  let_go_of_those_in_use();
  for_each_cache([](ThreadHeap&, BlockCache& cache, Fence&) { cache.close(); });
  bool sure = count_ > 0 && barrier_everywhere();
  if (sure) {
    for_each_cache([](ThreadHeap&, BlockCache& cache, Fence& fence) {
      void** below = cache.top() - 1;
      if (below <= cache.bottom()) return;
      fence.block = entry(below);
      keep_order();
      fence.slot = below;
      keep_order();
      put(below, nullptr);
    });
    sure = barrier_everywhere();
  }
  for_each_cache([&](ThreadHeap& heap, BlockCache& cache, Fence& fence) {
    if (fence.slot == nullptr) return;
    if (!sure || !is_above(cache, fence.slot)) return put(fence.slot, fence.block);
    while (cache.bottom() + 1 < fence.slot) give_back_lowest(heap, cache, entry(cache.bottom() + 1));
    give_back_lowest(heap, cache, fence.block);
  });
  for (size_t i = 0; i < count_; ++i) {
    ThreadHeap& heap = *claimed_[i].heap;
    for (size_t c = 0; c < kClasses; ++c) heap.release_superblocks(ClassIndex(c));
    heap.large.release_all();
    heap.claim.store(Claim::kEmptied, std::memory_order_release);  // whoever sees it sees all this
  }
  count_ = 0;
}

// The lock is free when no heap is claimed.
void Claims::settle(ThreadHeap& heap) noexcept {
  LockGuard guard(lock_);
  if (heap.claim.load(std::memory_order_relaxed) == Claim::kEmptied) heap.open_caches();
  heap.claim.store(Claim::kNone, std::memory_order_relaxed);
}

// One of these heaps may be that of the child's thread, which may be in the middle of an operation: as in step 4, a fence's
// block goes back where it was, unless it has been given back.  Before that, null lies below the lowest entry.
void Claims::repair(uint32_t before) noexcept {
  repair_after_fork(lock_, before, [this] {
    for_each_cache([](ThreadHeap& heap, BlockCache& cache, Fence& fence) {
      bool claimed = heap.claim.load(std::memory_order_relaxed) == Claim::kClaimed;
      if (!claimed || fence.slot <= cache.bottom()) return;
      put(cache.bottom(), nullptr);
      keep_order();
      put(fence.slot, fence.block);
    });
    for (size_t i = 0; i < count_; ++i) {
      ThreadHeap& heap = *claimed_[i].heap;
      Claim claim = heap.claim.load(std::memory_order_relaxed);
      if (claim == Claim::kWanted) heap.claim.store(Claim::kNone, std::memory_order_relaxed);
      if (claim != Claim::kClaimed) continue;
      heap.large.count_again();
      heap.claim.store(Claim::kEmptied, std::memory_order_relaxed);
    }
    count_ = 0;
  });
}

}  // namespace hm
