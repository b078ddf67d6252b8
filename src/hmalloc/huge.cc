#include "hmalloc/huge.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/address_map.h"
#include "base/os_pages.h"
#include "hmalloc/large.h"
#include "hmalloc/options.h"
#include "hmalloc/regret.h"

namespace hm {

// In the extent's second page.  While the block lives, its thread alone uses it; what the lists need is under the lock.
struct HugeHeader {
  uint64_t live;      // kLive while the program holds the block
  char* block;
  size_t size;        // asked for
  size_t extent;      // whole chunks
  size_t dirty;       // from the start of the extent; nobody has written behind
  uint64_t mapping;   // extents are joined within one, for the system moves pages of one only
  size_t slack;       // kept behind the block: in that list
  uint64_t since_ms;  // in a list since
  HugeHeader* next;
  HugeHeader* previous;
};

namespace {

constexpr uint64_t kLive = 0x6c69766520626c6b, kKept = 0x6b65707420626c6b;
constexpr size_t kHeaderAt = kDescriptors;

char* base_of(const HugeHeader& header) noexcept {
  return reinterpret_cast<char*>(align_down(address_of(&header), kChunk));
}
size_t lead_of(const HugeHeader& header) noexcept { return static_cast<size_t>(header.block - base_of(header)); }
// What the block takes of its extent.
size_t taken(const HugeHeader& header) noexcept { return align_up(lead_of(header) + header.size, os::page_size()); }

void insert(HugeHeader*& first, HugeHeader* before, HugeHeader& header) noexcept {
  HugeHeader*& link = before != nullptr ? before->next : first;
  header.previous = before;
  header.next = std::exchange(link, &header);
  if (header.next != nullptr) header.next->previous = &header;
}
void remove(HugeHeader*& first, HugeHeader& header) noexcept {
  (header.previous != nullptr ? header.previous->next : first) = header.next;
  if (header.next != nullptr) header.next->previous = header.previous;
}

struct HugeStore {
  Lock lock;
  HugeHeader* kept = nullptr;   // extents without a block, by address
  HugeHeader* slack = nullptr;  // extents that were written to behind their block, before it was there
  Regret regret;
  HugeGauges gauges{};
  std::atomic<size_t> bytes{0};     // these two without the lock: a hint
  std::atomic<uint64_t> mappings{0};  // and a name for each

  // For kept extents and slack: so that all is at most a quarter more than blocks took at any time.
  size_t room() const noexcept { return std::max(kKeepMost, gauges.most_active + gauges.most_active / 4 - gauges.active); }
  bool may_keep(size_t more) const noexcept { return gauges.kept + more <= std::min(regret.allowance(), room()); }
  void activate(size_t added) noexcept {
    gauges.active += added;
    gauges.most_active = std::max(gauges.most_active, gauges.active);
  }
  void publish() noexcept { bytes.store(gauges.active + gauges.kept, std::memory_order_relaxed); }
};
constinit HugeStore store;

void set_kinds(const HugeHeader& header, bool ours) noexcept {
  // An address in the gap before a far block is ours too, though no block starts there.
  AddressMap::set(base_of(header), ours ? ChunkKind::kHuge : ChunkKind::kForeign);
  if (lead_of(header) >= kChunk) AddressMap::set(header.block, ours ? ChunkKind::kHugeAligned : ChunkKind::kForeign);
}

HugeHeader* new_header(char* base, size_t extent, size_t dirty, uint64_t mapping) noexcept {
  auto* header = new (base + kHeaderAt) HugeHeader{kKept, base + kSlice, 0, extent, dirty, mapping, 0, 0, nullptr, nullptr};
  set_kinds(*header, true);
  return header;
}

uint64_t name_mapping() noexcept { return store.mappings.fetch_add(1, std::memory_order_relaxed); }

// ---- kept extents and slack: under the lock

void drop(HugeHeader& header) noexcept {
  remove(store.kept, header);
  store.gauges.kept -= header.extent;
}

// Takes so much of it out of the list; the rest stays.
HugeHeader* cut(HugeHeader& header, size_t extent) noexcept {
  HugeHeader* before = header.previous;
  drop(header);
  if (header.extent > extent) {
    size_t dirty = header.dirty > extent ? header.dirty - extent : 0;
    HugeHeader* rest = new_header(base_of(header) + extent, header.extent - extent, dirty, header.mapping);
    rest->since_ms = header.since_ms;
    insert(store.kept, before, *rest);
    store.gauges.kept += rest->extent;
    header.extent = extent;
    header.dirty = std::min(header.dirty, extent);
  }
  return &header;
}

// The smallest that is long enough; or else the longest.
HugeHeader* take_kept(size_t extent) noexcept {
  HugeHeader* best = store.kept;
  for (HugeHeader* each = best; each != nullptr; each = each->next)
    if (best->extent < extent ? each->extent > best->extent : extent <= each->extent && each->extent < best->extent) best = each;
  return best == nullptr ? nullptr : cut(*best, std::min(extent, best->extent));
}

bool are_neighbours(const HugeHeader& header, const HugeHeader* next) noexcept {
  return next != nullptr && base_of(header) + header.extent == base_of(*next) && header.mapping == next->mapping;
}

// next is in no list.
void join(HugeHeader& header, HugeHeader& next) noexcept {
  set_kinds(next, false);
  header.dirty = header.extent + std::max(next.dirty, kSlice);  // its header too
  header.extent += next.extent;
}

void join_with_next(HugeHeader& header) noexcept {
  HugeHeader* next = header.next;
  if (!are_neighbours(header, next)) return;
  remove(store.kept, *next);
  join(header, *next);
  header.since_ms = std::min(header.since_ms, next->since_ms);
}

void keep(HugeHeader& header) noexcept {
  if (lead_of(header) >= kChunk) AddressMap::set(std::exchange(header.block, base_of(header) + kSlice), ChunkKind::kForeign);
  header.since_ms = os::now_ms();
  HugeHeader* before = nullptr;
  for (HugeHeader* each = store.kept; each != nullptr && each < &header; each = each->next) before = each;
  insert(store.kept, before, header);
  store.gauges.kept += header.extent;
  join_with_next(header);
  if (before != nullptr) join_with_next(*before);
}

// Takes out the oldest ones until there is room for that much, if there can be.
HugeHeader* make_room(size_t bytes) noexcept {
  HugeHeader* dropped = nullptr;
  while (store.kept != nullptr && bytes <= store.regret.allowance() && !store.may_keep(bytes)) {
    HugeHeader* oldest = store.kept;
    for (HugeHeader* each = oldest; each != nullptr; each = each->next)
      if (each->since_ms < oldest->since_ms) oldest = each;
    drop(*oldest);
    store.regret.gave_back(oldest->extent);
    insert(dropped, nullptr, *oldest);
  }
  return dropped;
}

void purge_behind(HugeHeader& header) noexcept {
  size_t used = taken(header);
  if (os::purge(base_of(header) + used, header.extent - used)) header.dirty = used;
}

// False: there is too much of it to be kept.
bool note_slack(HugeHeader& header) noexcept {
  size_t used = taken(header);
  if (header.dirty <= used) return true;
  size_t slack = header.dirty - used;
  if (!store.may_keep(slack)) return false;
  store.gauges.kept += header.slack = slack;
  header.since_ms = os::now_ms();
  insert(store.slack, nullptr, header);
  return true;
}

void forget_slack(HugeHeader& header) noexcept {
  if (header.slack == 0) return;
  remove(store.slack, header);
  store.gauges.kept -= std::exchange(header.slack, 0);
}

// ---- the system: of an extent that is in no list, without the lock

HugeHeader* map_extent(size_t extent, size_t alignment) noexcept {
  size_t wide = alignment <= kChunk ? extent : extent + alignment;
  auto* start = static_cast<char*>(os::map(wide, kChunk));
  if (start == nullptr) return nullptr;
  char* base = start;
  if (wide != extent) {  // the block at a multiple of its alignment, its extent 2 MB before it
    base = reinterpret_cast<char*>(align_up(address_of(start) + kChunk, alignment) - kChunk);
    if (base > start) os::unmap(start, static_cast<size_t>(base - start));
    if (start + wide > base + extent) os::unmap(base + extent, static_cast<size_t>(start + wide - (base + extent)));
  }
  if (extent / 4 > options.huge_pages_after) os::prefer_huge_pages(base, extent);
  HugeHeader* header = new_header(base, extent, 0, name_mapping());
  LockGuard guard(store.lock);
  store.gauges.mapped += extent;
  return header;
}

// In place, or by moving its pages, block and all.  Null: unchanged.
HugeHeader* resize_extent(HugeHeader& header, size_t extent) noexcept {
  char* base = base_of(header);
  size_t before = header.extent, lead = lead_of(header);
  HugeHeader* result = &header;
  if (!os::resize(base, before, extent)) {
    char* target = static_cast<char*>(os::map(extent, kChunk));
    if (target == nullptr) return nullptr;
    set_kinds(header, false);
    if (!os::move(base, before, target, extent)) {
      set_kinds(header, true);
      return nullptr;  // target may be unmapped already, and somebody else's by now: its address space is let go
    }
    result = reinterpret_cast<HugeHeader*>(target + kHeaderAt);
    result->block = target + lead;
    result->mapping = name_mapping();
    set_kinds(*result, true);
  }
  result->extent = extent;
  result->dirty = std::min(result->dirty, extent);
  LockGuard guard(store.lock);
  store.gauges.mapped += extent - before;
  return result;
}

// Into the kept extent behind it.
bool grow_extent(HugeHeader& header, size_t extent) noexcept {
  LockGuard guard(store.lock);
  HugeHeader* next = store.kept;
  while (next != nullptr && !are_neighbours(header, next)) next = next->next;
  if (next == nullptr || extent <= header.extent || header.extent + next->extent < extent) return false;
  join(header, *cut(*next, extent - header.extent));
  return true;
}

// What the system does not take (vm.max_map_count) is kept, at least without its pages.
size_t unmap_extent(HugeHeader& header) noexcept {
  size_t extent = header.extent;
  set_kinds(header, false);
  bool gone = os::unmap(base_of(header), extent);
  if (!gone) {
    set_kinds(header, true);
    os::purge(base_of(header) + kSlice, extent - kSlice);
  }
  LockGuard guard(store.lock);
  if (gone) store.gauges.mapped -= extent;
  else keep(header);
  store.publish();
  return gone ? extent : 0;
}

size_t unmap_all(HugeHeader* list) noexcept {
  size_t bytes = 0;
  while (list != nullptr) bytes += unmap_extent(*std::exchange(list, list->next));
  return bytes;
}

// A kept extent, stretched if it is too short; or null.
HugeHeader* reuse_extent(size_t extent) noexcept {
  HugeHeader* header;
  {
    LockGuard guard(store.lock);
    header = take_kept(extent);
    if (header == nullptr || header->extent < extent) store.regret.mapped(extent, store.room());
  }
  if (header == nullptr || header->extent == extent) return header;
  if (HugeHeader* longer = resize_extent(*header, extent)) return longer;
  LockGuard guard(store.lock);
  keep(*header);
  return nullptr;
}

// A block has begun here, or was of another size before.
void settle(HugeHeader& header, size_t before) noexcept {
  bool fits;
  HugeHeader* dropped;
  {
    LockGuard guard(store.lock);
    store.gauges.blocks += before == 0;
    store.activate(taken(header) - before);
    fits = note_slack(header);
    dropped = make_room(0);
    store.publish();
  }
  if (!fits) purge_behind(header);
  unmap_all(dropped);
}

}  // namespace

FreshBlock allocate_huge(size_t size, size_t alignment) noexcept {
  size_t lead = alignment <= kSlice ? kSlice : std::min(alignment, kChunk);  // from the start of the extent to the block
  size_t extent = align_up(lead + size, kChunk);
  HugeHeader* header = alignment <= kChunk ? reuse_extent(extent) : nullptr;
  if (header == nullptr) header = map_extent(extent, alignment);
  if (header == nullptr) return {nullptr, 0};
  header->live = kLive;
  header->block = base_of(*header) + lead;
  header->size = size;
  set_kinds(*header, true);
  FreshBlock result{header->block, header->dirty > lead ? std::min(header->dirty - lead, size) : 0};
  settle(*header, 0);
  return result;
}

HugeHeader* huge_header(const void* block) noexcept {
  uintptr_t base = align_down(address_of(block), kChunk);
  if (AddressMap::kind(address_of(block)) == ChunkKind::kHugeAligned) base -= kChunk;
  auto* header = reinterpret_cast<HugeHeader*>(base + kHeaderAt);
  return header->block == block ? header : nullptr;
}

size_t huge_size(const HugeHeader& header) noexcept { return header.size; }
size_t huge_capacity(const HugeHeader& header) noexcept { return taken(header) - lead_of(header); }
bool huge_is_live(const HugeHeader& header) noexcept { return header.live == kLive; }

void free_huge(HugeHeader& header) noexcept {
  header.live = kKept;
  size_t used = taken(header);
  HugeHeader* dropped;
  {
    LockGuard guard(store.lock);
    forget_slack(header);
    header.dirty = std::max(header.dirty, used);
    --store.gauges.blocks;
    store.gauges.active -= used;
    dropped = make_room(header.extent);
    if (store.may_keep(header.extent)) {
      keep(header);
    } else {
      store.regret.gave_back(header.extent);
      insert(dropped, nullptr, header);
    }
    store.publish();
  }
  unmap_all(dropped);
}

void* resize_huge(HugeHeader& header, size_t size) noexcept {
  if (size > kMaxRequest / 2 || size <= kLargeMax || lead_of(header) != kSlice) return nullptr;
  size_t used = taken(header), extent = align_up(kSlice + size, kChunk);
  {
    LockGuard guard(store.lock);
    forget_slack(header);  // or others would purge what is going to be the block's
  }
  header.dirty = std::max(header.dirty, used);
  bool in_place = extent == header.extent || grow_extent(header, extent);
  HugeHeader* result = in_place ? &header : resize_extent(header, extent);
  if (result != nullptr) result->size = size;
  settle(result != nullptr ? *result : header, used);
  return result != nullptr ? result->block : nullptr;
}

namespace {

// One at a time, for its pages go back with the lock held.
size_t purge_slack(uint64_t before_ms) noexcept {
  for (size_t bytes = 0;;) {
    LockGuard guard(store.lock);
    HugeHeader* due = store.slack;
    while (due != nullptr && due->since_ms > before_ms) due = due->next;
    if (due == nullptr) return bytes;
    bytes += due->slack;
    store.regret.kept_in_vain(due->slack);
    forget_slack(*due);
    purge_behind(*due);
    store.publish();
  }
}

}  // namespace

size_t purge_huge_blocks(bool all) noexcept {
  uint64_t before_ms = all ? UINT64_MAX : os::now_ms() - options.decay_ms / 2;
  size_t bytes = purge_slack(before_ms);
  HugeHeader* due = nullptr;
  {
    LockGuard guard(store.lock);
    size_t kept = store.gauges.kept;
    for (HugeHeader *each = store.kept, *next; each != nullptr; each = next) {
      next = each->next;
      if (each->since_ms > before_ms) continue;
      drop(*each);
      insert(due, nullptr, *each);
    }
    store.regret.kept_in_vain(kept - store.gauges.kept);
    store.publish();
  }
  return bytes + unmap_all(due);
}

Lock& huge_lock() noexcept { return store.lock; }
size_t huge_bytes() noexcept { return store.bytes.load(std::memory_order_relaxed); }

HugeGauges huge_gauges() noexcept {
  LockGuard guard(store.lock);
  return store.gauges;
}

}  // namespace hm
