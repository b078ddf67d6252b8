// A thread's cache: "a fast path that requires no locks".  For each class up to 1024 bytes a list of free blocks, most
// recent first.
//
// An empty list is filled with a batch from the thread's arena: half of what a list holds.  A full one gives its older
// half to the arenas that the blocks came from, so what a thread frees is soon reused by it, whoever allocated it, and
// what it has too much of goes home.  How many a list holds is not in the article.
#pragma once
#include <atomic>

#include "baselines/ar_malloc/arena.h"

namespace hm::ar_malloc {

inline constexpr size_t kMaxCached = 1024;  // "the assumption that allocation requests are smaller than 1024 bytes"
inline constexpr size_t kCachedClasses = index_of(class_of(kMaxCached)) + 1;
inline constexpr uint32_t kMaxList = 64;   // blocks in a list, unless the option CACHE says otherwise
inline constexpr size_t kMaxLists = 4096;  // more it cannot say

class CacheList {
 public:
  constexpr CacheList() = default;
  FreeBlock* first() const noexcept { return first_; }
  // Any thread: relaxed, since it is a number and leads to nothing.
  uint32_t count() const noexcept { return count_.load(std::memory_order_relaxed); }

  // Its thread.
  void push(FreeBlock* block) noexcept {
    block->next = first_;
    first_ = block;
    set_count(count() + 1);
  }
  FreeBlock* pop() noexcept {
    FreeBlock* block = first_;
    if (HM_LIKELY(block != nullptr)) {
      first_ = block->next;
      set_count(count() - 1);
    }
    return block;
  }
  void fill(Blocks blocks) noexcept {
    first_ = blocks.first;
    set_count(blocks.count);
  }
  // All but the most recent ones.
  FreeBlock* cut_after(uint32_t kept) noexcept;

 private:
  void set_count(uint32_t n) noexcept { count_.store(n, std::memory_order_relaxed); }

  FreeBlock* first_ = nullptr;
  std::atomic<uint32_t> count_{0};
};

struct ThreadCache {
  Arena* arena = nullptr;  // the thread's, from its first call on
  uint32_t most = 0;       // blocks in a list: none before somebody watches for the thread's end, and none after it
  std::array<CacheList, kCachedClasses> lists{};
  ThreadCache* next = nullptr;  // of all caches in use
  ThreadCache* previous = nullptr;
};

extern constinit thread_local ThreadCache cache;

// When a list is empty: a block, and a batch less one in the list.
void* refill(ClassIndex c) noexcept;
// When a list may be full.  False: this thread has no cache.
bool make_room(CacheList& list, const char* function) noexcept;
// This thread's arena.
Arena& my_arena() noexcept;

// For threads to come.  Before: one arena, and lists of kMaxList.
void set_sizes(size_t arena_count, size_t max_list) noexcept;
size_t arenas_in_use() noexcept;
struct CacheTotals {
  size_t bytes, threads;  // in caches; bound to an arena so far
};
CacheTotals cache_totals() noexcept;
bool this_cache_is_valid() noexcept;

// Around a fork.
Lock& threads_lock() noexcept;
void forget_other_threads() noexcept;  // under threads_lock

}  // namespace hm::ar_malloc
