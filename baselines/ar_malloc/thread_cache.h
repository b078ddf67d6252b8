// A thread's cache: "a fast path that requires no locks".  It has a list of free blocks for each class up to 1024
// bytes, most recent first.
//
// An empty list is filled with a batch from the thread's arena, half of what a list holds.  A full one returns its
// older half to the arenas that the blocks came from.  So a thread soon reuses what it frees, whoever allocated it, and
// its surplus goes home.  The article does not say how many blocks a list holds.
#pragma once
#include <atomic>

#include "baselines/ar_malloc/arena.h"

namespace hm::ar_malloc {

inline constexpr size_t kMaxCached = 1024;  // "the assumption that allocation requests are smaller than 1024 bytes"
inline constexpr size_t kCachedClasses = index_of(class_of(kMaxCached)) + 1;
inline constexpr uint32_t kMaxList = 64;   // blocks in a list, unless the option CACHE says otherwise
inline constexpr size_t kMaxLists = 4096;  // the option's limit

class CacheList {
 public:
  constexpr CacheList() = default;
  FreeBlock* first() const noexcept { return first_; }
  // For any thread; relaxed: a number that leads to nothing.
  uint32_t count() const noexcept { return count_.load(std::memory_order_relaxed); }

  // For its thread.
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
  // Cuts off all but the most recent ones.
  FreeBlock* cut_after(uint32_t kept) noexcept;

 private:
  void set_count(uint32_t n) noexcept { count_.store(n, std::memory_order_relaxed); }

  FreeBlock* first_ = nullptr;
  std::atomic<uint32_t> count_{0};
};

struct ThreadCache {
  Arena* arena = nullptr;  // the thread's, from its first call on
  uint32_t most = 0;       // blocks in a list; 0 before the hook for the thread's end is set, and after that end
  std::array<CacheList, kCachedClasses> lists{};
  ThreadCache* next = nullptr;  // of all caches in use
  ThreadCache* previous = nullptr;
};

extern constinit thread_local ThreadCache cache;

// For an empty list: returns a block and puts the rest of a batch into the list.
void* refill(ClassIndex c) noexcept;
// For a list that may be full.  False: this thread has no cache.
bool make_room(CacheList& list, const char* function) noexcept;
// This thread's arena.
Arena& my_arena() noexcept;

// For future threads.  Before the call: one arena, and lists of kMaxList.
void set_sizes(size_t arena_count, size_t max_list) noexcept;
size_t arenas_in_use() noexcept;
struct CacheTotals {
  size_t bytes, threads;  // in caches; bound to an arena so far
};
CacheTotals cache_totals() noexcept;
bool this_cache_is_valid() noexcept;

// For forks.
Lock& threads_lock() noexcept;
void forget_other_threads() noexcept;  // under threads_lock

}  // namespace hm::ar_malloc
