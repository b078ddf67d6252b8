#include "baselines/ar_malloc/ar_malloc.h"

#include <sched.h>

#include <cerrno>
#include <iterator>

#include "base/option_parser.h"
#include "baselines/ar_malloc/thread_cache.h"
#include "baselines/common/fork_locks.h"
#include "baselines/common/large_blocks.h"

namespace hm::ar_malloc {
namespace {

constinit LargeBlocks large(true);
constinit ForkLocks<kMaxArenas + 4> held_for_fork;
constinit bool started = false;

[[noreturn]] HM_COLD void no_block(const char* function, const void* block) noexcept {
  die_on_misuse(function, block, "not a block of " HM_LIBRARY_NAME);
}

// In the variant, the one lock is held around these as well.
template <class Call>
auto on_large(Call call) noexcept {
  if constexpr (kGlobalLock) {
    LockGuard guard(arenas[0].lock());
    return call();
  } else {
    return call();
  }
}

HM_NOINLINE void* allocate_large(size_t size, size_t alignment) noexcept {
  return on_large([=] { return large.allocate(size, alignment); });
}

HM_NOINLINE void free_large(void* block, const char* function) noexcept {
  if (!LargeBlocks::holds(block)) no_block(function, block);
  on_large([=] { large.free(block, function); });
}

HM_NOINLINE void* allocate_uncached(ClassIndex c) noexcept { return my_arena().take(c, 1).first; }

HM_NOINLINE void free_uncached(FreeBlock* block, const char* function) noexcept {
  block->next = nullptr;
  give_back(block, &my_arena(), function);
}

inline void* allocate_cached(ClassIndex c) noexcept {
  FreeBlock* block = cache.lists[index_of(c)].pop();
  return HM_LIKELY(block != nullptr) ? block : refill(c);
}

// The block's slab; ends the program if the address cannot be a block's.
inline Slab& checked_slab_of(const void* block, const char* function) noexcept {
  Slab& slab = Slab::of(block);
  if (HM_UNLIKELY(!slab.starts_block(block))) no_block(function, block);
  return slab;
}

bool in_slab(const void* block) noexcept { return AddressMap::kind(address_of(block)) == ChunkKind::kRegions; }

}  // namespace

void* allocate(size_t size) noexcept {
  if (HM_LIKELY(size <= kMaxCached)) return allocate_cached(class_of(size));
  return size <= kInSlabs ? allocate_uncached(class_of(size)) : allocate_large(size, kGranule);
}

void* allocate_aligned(size_t alignment, size_t size) noexcept {
  size_t c = aligned_class(size, alignment);
  if (c < kCachedClasses) return allocate_cached(ClassIndex(c));
  return c < kSlabClasses ? allocate_uncached(ClassIndex(c)) : allocate_large(size, alignment);
}

void deallocate(void* block, const char* function) noexcept {
  if (HM_UNLIKELY(!in_slab(block))) return free_large(block, function);
  auto* freed = static_cast<FreeBlock*>(block);
  size_t c = index_of(checked_slab_of(block, function).size_class);
  if (c >= kCachedClasses) return free_uncached(freed, function);
  CacheList& list = cache.lists[c];
  if (HM_UNLIKELY(list.first() == freed)) die_on_misuse(function, block, "freed already");
  if (HM_UNLIKELY(list.count() >= cache.most) && !make_room(list, function)) return free_uncached(freed, function);
  list.push(freed);
}

size_t usable_size(const void* block, const char* function) noexcept {
  if (in_slab(block)) return checked_slab_of(block, function).block_size;
  if (!LargeBlocks::holds(block)) no_block(function, block);
  return large.usable_size(block, function);
}

bool comes_zeroed(const void* block) noexcept { return LargeBlocks::holds(block) && large.comes_zeroed(block); }

void* resize(void* block, size_t size) noexcept {
  if (!LargeBlocks::holds(block)) return nullptr;
  return on_large([=] { return large.resize(block, size); });
}

namespace {

size_t processors() noexcept {
  int saved = errno;
  cpu_set_t set;
  bool known = sched_getaffinity(0, sizeof set, &set) == 0;
  errno = saved;
  return known ? static_cast<size_t>(CPU_COUNT(&set)) : 1;
}

Arena::Counters all_arenas() noexcept {
  Arena::Counters sum;
  for (Arena& arena : arenas) sum.add(arena.counters());
  return sum;
}

}  // namespace

Usage usage() noexcept {
  size_t cached = cache_totals().bytes;
  Arena::Counters sum = all_arenas();
  size_t from_slabs = sum.bytes_out > cached ? sum.bytes_out - cached : 0;  // other threads may change it
  size_t mapped = sum.slabs * kSlab + large.mapped(), allocated = from_slabs + large.allocated();
  return {.mapped = mapped,
          .resident = mapped,
          .active = mapped,
          .allocated = allocated,
          .cached = cached,
          .retained = mapped - allocated - cached};
}

void write_counters(FdWriter& text) noexcept {
  Arena::Counters sum = all_arenas();
  text << ",\"arenas\":" << uint64_t{arenas_in_use()} << ",\"threads\":" << uint64_t{cache_totals().threads}
       << ",\"slabs\":" << sum.slabs << ",\"slab_cuts\":" << sum.cuts << ",\"arena_locks\":" << sum.locks
       << ",\"blocks_out\":" << sum.out << ",\"blocks_back\":" << sum.back << ",\"blocks_foreign\":" << sum.foreign;
}

bool is_valid() noexcept {
  for (Arena& arena : arenas)
    if (!arena.is_valid()) return false;
  return this_cache_is_valid() && large.is_valid();
}

// By default as many arenas as processors that this process may run on.
void start() noexcept {
  if (started) return;
  started = true;
  size_t count = 0, max_list = kMaxList;
  const OptionRow rows[] = {{"ARENAS", OptionKind::kNumber, &count}, {"CACHE", OptionKind::kNumber, &max_list}};
  read_options({.prefix = HM_BASELINE_PREFIX, .rows = rows, .count = std::size(rows)});
  if (count == 0) count = processors();
  set_sizes(count, max_list);
}

namespace {

// The order matters.  The threads' lock comes first: while it is held, the number of arenas stays.
template <class Visit>
void for_each_lock(Visit visit) noexcept {
  visit(threads_lock());
  for (Arena& arena : arenas) visit(arena.lock());
  visit(slab_memory.lock());
  visit(large.lock());
}

}  // namespace

void before_fork() noexcept {
  for_each_lock([](Lock& lock) { held_for_fork.take(lock); });
}

void after_fork_in_parent() noexcept { held_for_fork.release(); }

// The thread has a new id in the child; the locks that it holds must name that.
void after_fork_in_child() noexcept {
  uint32_t before = rename_thread();
  for_each_lock([before](Lock& lock) { lock.adopt_after_fork(before); });
  forget_other_threads();
  held_for_fork.release();
}

}  // namespace hm::ar_malloc
