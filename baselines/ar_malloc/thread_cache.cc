#include "baselines/ar_malloc/thread_cache.h"

#include "base/thread_exit.h"

namespace hm::ar_malloc {

constinit thread_local ThreadCache cache;

namespace {

void end_thread(void*) noexcept;
constinit ThreadExit thread_exit(end_thread);

struct Threads {
  Lock lock;
  size_t arenas = 1;
  uint32_t max_list = kGlobalLock ? 0 : kMaxList;
  size_t bound = 0;               // threads so far
  ThreadCache* caches = nullptr;  // in use
};
constinit Threads threads;

void enter(ThreadCache& mine) noexcept {
  LockGuard guard(threads.lock);
  mine.previous = nullptr;
  mine.next = threads.caches;
  if (threads.caches != nullptr) threads.caches->previous = &mine;
  threads.caches = &mine;
}

void leave(ThreadCache& mine) noexcept {
  LockGuard guard(threads.lock);
  (mine.previous == nullptr ? threads.caches : mine.previous->next) = mine.next;
  if (mine.next != nullptr) mine.next->previous = mine.previous;
}

// Threads get arenas round robin, and then a cache, unless no hook for the end of the thread can be had.  Setting the
// hook may allocate: the thread has its arena by then, but no cache yet.
HM_COLD void bind() noexcept {
  uint32_t most;
  {
    LockGuard guard(threads.lock);
    cache.arena = &arenas[threads.bound++ % threads.arenas];
    most = threads.max_list;
  }
  if (most == 0 || !thread_exit.watch(&cache)) return;
  enter(cache);
  cache.most = most;
}

// Runs among the destructors of thread-specific data.  Destructors that run later find a thread without a cache.
void end_thread(void*) noexcept {
  cache.most = 0;
  for (CacheList& list : cache.lists) give_back(list.cut_after(0), cache.arena, "free");
  leave(cache);
}

}  // namespace

FreeBlock* CacheList::cut_after(uint32_t kept) noexcept {
  FreeBlock** link = &first_;
  for (uint32_t i = 0; i < kept; ++i) link = &(*link)->next;
  FreeBlock* rest = *link;
  *link = nullptr;
  set_count(kept);
  return rest;
}

Arena& my_arena() noexcept {
  if (HM_UNLIKELY(cache.arena == nullptr)) bind();
  return *cache.arena;
}

void* refill(ClassIndex c) noexcept {
  Arena& arena = my_arena();
  Blocks blocks = arena.take(c, cache.most == 0 ? 1 : cache.most / 2);
  if (blocks.first == nullptr) return nullptr;
  cache.lists[index_of(c)].fill({blocks.first->next, blocks.count - 1});
  return blocks.first;
}

bool make_room(CacheList& list, const char* function) noexcept {
  Arena& arena = my_arena();
  if (cache.most == 0) return false;
  if (list.count() >= cache.most) give_back(list.cut_after(cache.most / 2), &arena, function);
  return true;
}

void set_sizes(size_t arena_count, size_t max_list) noexcept {
  if (kGlobalLock) return;
  LockGuard guard(threads.lock);
  threads.arenas = arena_count < kMaxArenas ? arena_count : kMaxArenas;
  threads.max_list = max_list < 2 ? 0 : static_cast<uint32_t>(max_list < kMaxLists ? max_list : kMaxLists);
}

size_t arenas_in_use() noexcept {
  LockGuard guard(threads.lock);
  return threads.arenas;
}

CacheTotals cache_totals() noexcept {
  LockGuard guard(threads.lock);
  CacheTotals totals{0, threads.bound};
  for (const ThreadCache* one = threads.caches; one != nullptr; one = one->next)
    for (size_t c = 0; c < kCachedClasses; ++c) totals.bytes += one->lists[c].count() * size_of(ClassIndex(c));
  return totals;
}

bool this_cache_is_valid() noexcept {
  for (size_t c = 0; c < kCachedClasses; ++c) {
    uint32_t length = 0;
    for (const FreeBlock* block = cache.lists[c].first(); block != nullptr; block = block->next) {
      const Slab& slab = Slab::of(block);
      if (++length > cache.most || index_of(slab.size_class) != c || !slab.starts_block(block) || slab.has_free(block))
        return false;
    }
    if (length != cache.lists[c].count()) return false;
  }
  return true;
}

Lock& threads_lock() noexcept { return threads.lock; }

// Their caches lie in memory that the C library reuses, and their lists may be half changed: the child loses the blocks
// in them.
void forget_other_threads() noexcept {
  cache.next = cache.previous = nullptr;
  threads.caches = cache.most == 0 ? nullptr : &cache;
}

}  // namespace hm::ar_malloc
