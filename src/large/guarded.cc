// Blocks above 32 KB in the hardened library, in place of huge.cc: each in a mapping of its own, at a random place.
//
//   guard | canary, block, canary | guard
//
// A block ends where its last page does, as far as its alignment allows; what is left of its pages are canaries.  A block that
// is freed waits: one of a few pages cleared, a larger one without its pages and inaccessible.  A cleared one serves again
// after at least kFewestBetween others were freed; what has waited longest goes back to the system when too much waits, or after
// half of the decay time.  So no two threads, nor a program that writes to what it has freed, share a block unnoticed.
//
// Of an extent's invariants E1 and E5 hold.  Here its chunks include the guards, `mapping` numbers the frees, and `slack` is what
// a cleared block keeps.
#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "base/process.h"
#include "base/report.h"
#include "base/secret.h"
#include "base/zeros.h"
#include "core/description.h"
#include "large/description.h"
#include "large/huge.h"
#include "large/huge_store.h"
#include "pages/options.h"

namespace hm {

constinit HugeStore huge_store;

namespace {

constexpr size_t kMostWaiting = 64;
constexpr size_t kFewestBetween = 16;
constexpr size_t kMostToClear = 128 * kKiB;  // of one block
constexpr size_t kMostCleared = 4 * kMiB;    // of all that wait

HugeStore& store = huge_store;

// ---- where a block lies in its extent

size_t whole_pages(size_t bytes) noexcept { return align_up(bytes, os::page_size()); }

struct Place {
  Place(size_t size, size_t alignment) noexcept {
    size_t page = os::page_size(), pages = whole_pages(size);
    // A block that is aligned to chunks starts one, and has no guard of its own in front.
    size_t front = alignment >= kChunk ? 0 : std::max(page, alignment);
    lead = static_cast<uint32_t>(front + (alignment > page ? 0 : pages - align_up(size, std::max(alignment, kGranule))));
    bytes = align_up(front + pages + page, kChunk);
  }
  uint32_t lead;
  size_t bytes;
};

char* block_of(const Extent& extent) noexcept { return extent.start() + extent.lead; }
// Its pages.
char* first_page(const Extent& extent) noexcept { return extent.start() + align_down(extent.lead, os::page_size()); }
char* last_page_end(const Extent& extent) noexcept { return extent.start() + whole_pages(extent.lead + extent.size); }
size_t pages_of(const Extent& extent) noexcept { return static_cast<size_t>(last_page_end(extent) - first_page(extent)); }

// What is in none of the block's bytes but in its pages.  No byte of a canary is zero.
uint8_t canary_at(uint64_t pattern, const char* at) noexcept {
  return static_cast<uint8_t>(pattern >> address_of(at) % 8 * 8) | 1;
}
template <class Visit>
bool each_of(const char* from, const char* to, Visit visit) noexcept {
  for (; from < to; ++from)
    if (!visit(from)) return false;
  return true;
}
void write_canaries(const Extent& extent) noexcept {
  uint64_t pattern = secret.sum(address_of(block_of(extent)), extent.size);
  auto write = [pattern](const char* at) {
    return *const_cast<char*>(at) = static_cast<char>(canary_at(pattern, at)), true;
  };
  each_of(first_page(extent), block_of(extent), write);
  each_of(block_of(extent) + extent.size, last_page_end(extent), write);
}
// What is wrong with them, or null.
const char* fault_of_canaries(const Extent& extent) noexcept {
  uint64_t pattern = secret.sum(address_of(block_of(extent)), extent.size);
  auto is_there = [pattern](const char* at) { return static_cast<uint8_t>(*at) == canary_at(pattern, at); };
  if (!each_of(block_of(extent) + extent.size, last_page_end(extent), is_there)) return "written to behind its end";
  if (!each_of(first_page(extent), block_of(extent), is_there)) return "written to in front of its start";
  return nullptr;
}
void require_canaries(const Extent& extent) noexcept {
  const char* fault = fault_of_canaries(extent);
  if (fault != nullptr) die_on_misuse("free", block_of(extent), fault, describe_held);
}
bool is_clear(const Extent& extent) noexcept { return extent.slack == 0 || is_all_zero(first_page(extent), extent.slack); }
void require_clear(const Extent& extent) noexcept {
  if (!is_clear(extent)) die_on_misuse("free", block_of(extent), kWrittenAfterFree, describe_freed);
}

// ---- what waits: the newest first.  Under the lock

struct Waiting {
  ExtentList list;
  size_t count = 0, cleared = 0;  // blocks, and bytes
  uint64_t frees = 0;
  uint64_t frees_at_next_try = 0;  // after the system has refused to unmap one; until then frees do not ask it

  void push(Extent& extent) noexcept {
    extent.mapping = ++frees;
    extent.since_ms = os::now_ms();
    put_back(extent);
  }
  void put_back(Extent& extent) noexcept {
    list.push(extent);
    ++count;
    cleared += extent.slack;
    extent.set_state(ExtentState::kKept);
  }
  Extent* take(Extent* extent) noexcept {
    if (extent == nullptr) return nullptr;
    extent->set_state(ExtentState::kHeld);
    list.remove(*extent);
    --count;
    cleared -= extent->slack;
    return extent;
  }
  template <class Condition>
  Extent* take_oldest(Condition condition) noexcept {
    Extent* oldest = nullptr;
    for (Extent* each = list.first(); each != nullptr; each = each->next)
      if (condition(*each) && (oldest == nullptr || each->mapping < oldest->mapping)) oldest = each;
    return take(oldest);
  }
};
constinit Waiting waiting;

void publish() noexcept { footprint.set_huge(store.active + waiting.cleared); }

void deactivate(size_t bytes) noexcept { store.active -= std::min(store.active, bytes); }  // a child may have counted anew

// ---- mapping and unmapping, without the lock

// What is inaccessible from the start neither counts as memory that the system has to promise, nor is it locked in memory.
// Where there are too many guards, or the system refuses them, all of it is accessible.  Where it refuses even that, and not
// for want of memory, it is seldom asked again: what it does not open it may not unmap either.
char* map_between_guards(const Place& place, size_t size, size_t alignment, uint32_t& guards) noexcept {
  constexpr uint32_t kSeldom = 1024;
  static constinit std::atomic<uint32_t> unguarded_to_come{0};  // relaxed: a hint
  alignment = std::max(alignment, kChunk);
  auto map = [&](os::Access access) { return static_cast<char*>(os::map_somewhere(place.bytes, alignment, 0, access)); };
  uint32_t to_come = unguarded_to_come.load(std::memory_order_relaxed);
  if (to_come > 0) {
    unguarded_to_come.store(to_come - 1, std::memory_order_relaxed);
    return map(os::Access::kReadWrite);
  }
  char* start = map(os::Access::kNone);
  if (start == nullptr) return nullptr;
  char* first = start + align_down(place.lead, os::page_size());
  guards = first > start ? 2 : 1;
  if (os::open_between_guards(first, whole_pages(size), guards)) return start;
  guards = 0;
  if (os::open(start, place.bytes)) return start;
  os::unmap(start, place.bytes);
  start = map(os::Access::kReadWrite);
  if (start != nullptr) unguarded_to_come.store(kSeldom, std::memory_order_relaxed);
  return start;
}

Extent* map_extent(const Place& place, size_t size, size_t alignment) noexcept {
  uint32_t guards = 0;
  char* start = map_between_guards(place, size, alignment, guards);
  if (start == nullptr) return nullptr;
  Extent* extent;
  {
    LockGuard guard(store.lock);
    extent = extent_table.create(start);
  }
  if (extent == nullptr) {
    if (os::unmap(start, place.bytes)) os::unguarded(guards);
    return nullptr;
  }
  extent->size = size;
  extent->lead = place.lead;
  extent->guards = guards;
  extent->set_bytes(place.bytes);
  return extent;
}

// One that the system refuses is made inaccessible, and waits on.
bool unmap_freed(Extent& extent) noexcept {
  require_clear(extent);
  size_t bytes = extent.bytes();
  extent_table.leave(extent);
  extent.set_bytes(0);  // E5
  bool gone = os::unmap(extent.start(), bytes);
  if (gone) os::unguarded(extent.guards);
  if (!gone && os::purge(first_page(extent), pages_of(extent))) {
    os::seal(first_page(extent), pages_of(extent));
    extent.slack = 0;
  }
  LockGuard guard(store.lock);
  if (gone) {
    extent_table.release(extent);
  } else {
    extent.set_bytes(bytes);
    extent_table.enter(extent);
    waiting.push(extent);
    waiting.frees_at_next_try = waiting.frees + kMostWaiting;
  }
  publish();
  return gone;
}

// All that may go, the oldest first, one at a time: the child of a fork loses what is held.  What was refused is not tried again.
template <class Condition>
size_t unmap_those(Condition condition) noexcept {
  uint64_t last;
  {
    LockGuard guard(store.lock);
    last = waiting.frees;
  }
  for (size_t bytes = 0;;) {
    Extent* due;
    {
      LockGuard guard(store.lock);
      due = waiting.take_oldest([=](const Extent& extent) { return extent.mapping <= last && condition(extent); });
    }
    if (due == nullptr) return bytes;
    size_t had = due->slack;
    bytes += unmap_freed(*due) ? had : 0;
  }
}

// One of as many pages in the same place, that enough others were freed after.
Extent* take_cleared(const Place& place, size_t size, size_t alignment) noexcept {
  LockGuard guard(store.lock);
  return waiting.take_oldest([&](const Extent& extent) {
    return extent.slack == whole_pages(size) && extent.bytes() == place.bytes &&
           address_of(extent.start()) % alignment == 0 &&
           align_down(extent.lead, os::page_size()) == align_down(place.lead, os::page_size()) &&
           extent.mapping + kFewestBetween <= waiting.frees;
  });
}

// Makes it all zero and keeps it, or gives its pages back and makes it inaccessible.
void clear(Extent& extent) noexcept {
  size_t pages = pages_of(extent);
  bool purged = pages > kMostToClear && os::purge(first_page(extent), pages);
  if (purged) footprint.count_purged(pages);
  if (!purged) memset(first_page(extent), 0, pages);  // the system refuses to purge what is locked
  extent.slack = purged && os::seal(first_page(extent), pages) ? 0 : pages;
}

}  // namespace

FreshBlock allocate_huge(size_t size, size_t alignment, bool map) noexcept {
  Place place(size, alignment);
  size_t taken = whole_pages(size);
  {
    LockGuard guard(store.lock);
    if (!limit_admits(taken, false)) return {nullptr, 0};
    store.active += taken;
    publish();
  }
  Extent* extent = map ? map_extent(place, size, alignment) : take_cleared(place, size, alignment);
  if (extent == nullptr) {
    LockGuard guard(store.lock);
    deactivate(taken);
    publish();
    return {nullptr, 0};
  }
  require_clear(*extent);
  extent->slack = 0;
  extent->size = size;
  extent->lead = place.lead;
  write_canaries(*extent);
  extent_table.enter(*extent);
  LockGuard guard(store.lock);
  extent->set_state(ExtentState::kLive);
  ++store.blocks;
  store.activate(0);
  return {block_of(*extent), 0};
}

Extent* huge_extent(const void* block) noexcept {
  Extent* extent = extent_table.find(address_of(block));
  return extent != nullptr && block_of(*extent) == block ? extent : nullptr;
}

size_t huge_size(const Extent& extent) noexcept { return extent.size; }
size_t huge_capacity(const Extent& extent) noexcept { return extent.size; }  // no byte more may be written
bool huge_is_live(const Extent& extent) noexcept { return extent.is_live(); }

bool free_huge(Extent& extent) noexcept {
  {
    LockGuard guard(store.lock);
    if (!extent.is_live()) return false;
    extent.set_state(ExtentState::kHeld);
    --store.blocks;
  }
  require_canaries(extent);
  clear(extent);
  {
    LockGuard guard(store.lock);
    deactivate(pages_of(extent));
    waiting.push(extent);
    publish();
  }
  auto too_much = [](const Extent&) {
    if (waiting.frees < waiting.frees_at_next_try) return false;
    return waiting.count > kMostWaiting || waiting.cleared > kMostCleared || (waiting.cleared > 0 && is_above_soft_limit());
  };
  unmap_those(too_much);
  return true;
}

// Shrinks it where it is, for who has found no memory to move it to: then it does not end where its last page does.  What is
// behind that becomes inaccessible, if the system does that.
void* resize_huge(Extent& extent, size_t size) noexcept {
  if (size == 0 || size > extent.size) return nullptr;
  require_canaries(extent);
  char* end = last_page_end(extent);
  {
    LockGuard guard(store.lock);
    extent.set_state(ExtentState::kHeld);  // who looks at canaries, in the child of a fork too, does not look at these
    keep_order();
    extent.size = size;
    write_canaries(extent);
    keep_order();
    extent.set_state(ExtentState::kLive);
  }
  size_t behind = static_cast<size_t>(end - last_page_end(extent));
  if (behind == 0) return block_of(extent);
  os::purge(last_page_end(extent), behind);
  os::seal(last_page_end(extent), behind);
  LockGuard guard(store.lock);
  deactivate(behind);
  publish();
  return block_of(extent);
}

size_t purge_huge_blocks(bool all) noexcept {
  uint64_t now = os::now_ms(), before_ms = all ? now : now - options.decay_ms / 2;
  return unmap_those([=](const Extent& extent) { return extent.since_ms <= before_ms; });
}

void unmap_behind_huge_blocks() noexcept {}  // there are guards

namespace {

// What other threads had begun is lost.  One that this thread has in hand, whose signal handler has forked, is not counted.
void count_again() noexcept {
  waiting.list.forget();
  waiting.count = waiting.cleared = 0;
  store.blocks = store.active = 0;
  extent_table.for_each([](Extent& extent) {
    if (extent.state() == ExtentState::kKept) waiting.put_back(extent);
    if (!extent.is_live()) return;
    ++store.blocks;
    store.activate(pages_of(extent));
  });
  publish();
}

}  // namespace

void huge_repair() noexcept {
  extent_table.repair();
  count_again();
}

// Not while this thread is changing what is counted, and its signal handler has forked.
void huge_forget_promises() noexcept {
  TryLockGuard guard(store.lock);
  if (guard.holds()) count_again();
}

Lock& huge_lock() noexcept { return store.lock; }

bool huge_is_valid() noexcept {
  LockGuard guard(store.lock);
  size_t count = 0, cleared = 0;
  for (Extent* each = waiting.list.first(); each != nullptr; each = each->next) {
    if (each->state() != ExtentState::kKept) return false;
    ++count;
    cleared += each->slack;
  }
  return count == waiting.count && cleared == waiting.cleared && store.active <= store.max_active;
}

void check_freed_huge_blocks() noexcept {
  const Extent* written = nullptr;
  {
    LockGuard guard(store.lock);
    for (Extent* each = waiting.list.first(); each != nullptr && written == nullptr; each = each->next)
      if (!is_clear(*each)) written = each;
  }
  if (written != nullptr) require_clear(*written);
}

size_t check_live_huge_blocks(const char* function) noexcept {
  const char* fault = nullptr;
  const void* block = nullptr;
  size_t live = 0;
  {
    LockGuard guard(store.lock);
    extent_table.for_each([&](const Extent& extent) {
      if (!extent.is_live()) return;
      ++live;
      if (fault != nullptr) return;
      fault = fault_of_canaries(extent);
      block = block_of(extent);
    });
  }
  if (fault != nullptr) die_on_misuse(function, block, fault, describe_held);
  return live;
}

HugeGauges huge_gauges() noexcept {
  LockGuard guard(store.lock);
  return {store.blocks,        store.active + waiting.cleared, waiting.cleared, store.active, store.max_active,
          extent_table.bytes()};
}

}  // namespace hm
