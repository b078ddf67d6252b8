#include "hmalloc/large.h"

#include <algorithm>
#include <array>
#include <new>

#include "hmalloc/options.h"
#include "base/os_pages.h"
#include "hmalloc/slice_pool.h"

namespace hm {

struct HugeHeader {
  uint64_t live;      // kLive while the program holds the block
  size_t size;        // asked for
  size_t mapped;      // bytes of the mapping
  uint64_t freed_ms;  // when kept
  char* block;
  HugeHeader* next;   // kept mappings; under the lock
  bool recurs;        // the program asks for this size again and again: worth keeping
};

namespace {

constexpr uint64_t kLive = 0x6c69766520626c6b, kKept = 0x6b65707420626c6b;
constexpr size_t kHeaderAt = kDescriptors;

// A quarter of a kept mapping may be wasted.
bool serves(size_t mapped, size_t bytes) { return bytes <= mapped && mapped <= bytes + bytes / 4; }

struct HugeStore {
  Lock lock;
  HugeHeader* kept = nullptr;
  size_t kept_bytes = 0;
  std::atomic<size_t> bytes{0};  // read without the lock, as a hint
  size_t mappings = 0, active_bytes = 0, most_active_bytes = 0;
  std::array<size_t, 8> returned{};  // bytes of mappings that went back to the system last, not asked for since
  size_t returns = 0;
  void note_return(size_t mapped) noexcept { returned[returns++ % returned.size()] = mapped; }
  // Was one of these given back too early?
  bool recall(size_t wanted) noexcept {
    auto found = std::find_if(returned.begin(), returned.end(), [=](size_t mapped) { return serves(mapped, wanted); });
    if (found == returned.end()) return false;
    *found = 0;
    return true;
  }
  void add(size_t more) noexcept { bytes.store(bytes.load(std::memory_order_relaxed) + more, std::memory_order_relaxed); }
  void activate(size_t added) noexcept {
    active_bytes += added;
    if (active_bytes > most_active_bytes) most_active_bytes = active_bytes;
  }
};
constinit HugeStore store;

char* base_of(const HugeHeader& header) noexcept {
  return reinterpret_cast<char*>(align_down(address_of(&header), kChunk));
}

void set_kinds(const HugeHeader& header, bool ours) noexcept {
  bool far = align_down(address_of(header.block), kChunk) != address_of(base_of(header));
  ChunkKind kind = far ? ChunkKind::kHugeAligned : ChunkKind::kHuge;
  AddressMap::set(header.block, ours ? kind : ChunkKind::kForeign);
  // An address in the gap before a far block is ours too, though no block starts there.
  if (far) AddressMap::set(base_of(header), ours ? ChunkKind::kHuge : ChunkKind::kForeign);
}

HugeHeader* take_kept(size_t bytes) noexcept {
  LockGuard guard(store.lock);
  for (HugeHeader** link = &store.kept; *link != nullptr; link = &(*link)->next) {
    HugeHeader* header = *link;
    // More is wasted only if the system refuses to take mappings back.
    if (!serves(header->mapped, bytes) && (header->mapped < bytes || store.kept_bytes <= kKeepMost)) continue;
    *link = header->next;
    store.kept_bytes -= header->mapped;
    store.activate(header->mapped);
    return header;
  }
  return nullptr;
}

HugeHeader* map_huge(size_t size, size_t alignment) noexcept {
  size_t lead = alignment <= kSlice ? kSlice : alignment;  // from the base of the mapping to the block
  size_t bytes = align_up(lead + size, os::page_size());
  // The base keeps a multiple of 2 MB; for larger alignments it lies 2 MB before an aligned address.
  char* base;
  if (alignment <= kChunk) {
    base = static_cast<char*>(os::map(bytes, kChunk));
  } else {
    bytes = align_up(kChunk + size, os::page_size());
    lead = kChunk;
    size_t wide = bytes + alignment;
    auto* start = static_cast<char*>(os::map(wide, kChunk));
    if (start == nullptr) return nullptr;
    base = reinterpret_cast<char*>(align_up(address_of(start) + kChunk, alignment) - kChunk);
    if (base > start) os::unmap(start, static_cast<size_t>(base - start));
    if (start + wide > base + bytes) os::unmap(base + bytes, static_cast<size_t>(start + wide - (base + bytes)));
  }
  if (base == nullptr) return nullptr;
  if (bytes / 4 > options.huge_pages_after) os::prefer_huge_pages(base, bytes);
  auto* header = new (base + kHeaderAt) HugeHeader{kLive, size, bytes, 0, base + lead, nullptr, false};
  set_kinds(*header, true);
  LockGuard guard(store.lock);
  header->recurs = store.recall(bytes);
  ++store.mappings;
  store.add(bytes);
  store.activate(bytes);
  return header;
}

bool unmap_huge(HugeHeader& header) noexcept {
  size_t bytes = header.mapped;
  set_kinds(header, false);
  if (!os::unmap(base_of(header), bytes)) {
    set_kinds(header, true);
    return false;
  }
  LockGuard guard(store.lock);
  --store.mappings;
  store.add(-bytes);
  return true;
}

LargeBlock allocate_huge(size_t size, size_t alignment) noexcept {
  if (alignment <= kSlice)
    if (HugeHeader* header = take_kept(align_up(kSlice + size, os::page_size()))) {
      header->live = kLive;
      header->size = size;
      return {header->block, false};
    }
  HugeHeader* header = map_huge(size, alignment);
  if (header == nullptr) return {nullptr, false};
  return {header->block, true};
}

LargeBlock allocate_run(size_t size) noexcept {
  SlicePool::Run run = slice_pool.allocate(divide_up(size, kSlice), true);
  if (run.first == nullptr) return {nullptr, false};
  size_t slices = divide_up(size, kSlice);
  run.first->block_size = static_cast<uint32_t>(slices * kSlice);
  for (size_t i = 1; i < slices; ++i) run.first[i].set_kind(SliceKind::kLargeTail);
  run.first->set_kind(SliceKind::kLarge);
  return {run.first->base(), run.zeroed};
}

size_t slices_in(const Superblock& sb) { return sb.block_size / kSlice; }

}  // namespace

LargeBlock allocate_large(size_t size, size_t alignment) noexcept {
  if (size > kMaxRequest - 2 * kChunk || alignment > kMaxRequest / 4 || size + alignment > kMaxRequest / 2)
    return {nullptr, false};
  return size <= kLargeMax && alignment <= kSlice ? allocate_run(size == 0 ? 1 : size) : allocate_huge(size, alignment);
}

// Statistics ask too, while the owner may be resizing.
size_t large_capacity(const Superblock& sb) noexcept {
  return std::atomic_ref(const_cast<uint32_t&>(sb.block_size)).load(std::memory_order_relaxed);
}

void free_large(Superblock& sb) noexcept {
  size_t slices = slices_in(sb);
  for (size_t i = 0; i < slices; ++i) (&sb)[i].set_kind(SliceKind::kUnused);
  slice_pool.release(sb, slices);
}

bool resize_large(Superblock& sb, size_t size) noexcept {
  size_t old_slices = slices_in(sb), new_slices = divide_up(size, kSlice);
  if (size <= kSmallMax || new_slices > SlicePool::kMaxRun) return false;
  if (new_slices > old_slices && !slice_pool.extend(sb, old_slices, new_slices)) return false;
  for (size_t i = old_slices; i < new_slices; ++i) (&sb)[i].set_kind(SliceKind::kLargeTail);
  for (size_t i = new_slices; i < old_slices; ++i) (&sb)[i].set_kind(SliceKind::kUnused);
  if (new_slices < old_slices) slice_pool.release((&sb)[new_slices], old_slices - new_slices);
  std::atomic_ref(sb.block_size).store(static_cast<uint32_t>(new_slices * kSlice), std::memory_order_relaxed);
  return true;
}

LargeBlock LargeCache::take(size_t size) noexcept {
  if (count_ == 0 || size > kLargeMax) return {nullptr, false};
  size_t length = align_up(size, kSlice);
  for (size_t i = count_; i-- > 0;) {
    Superblock& run = *runs_[i];
    if (run.block_size != length) continue;
    remove(i);
    run.set_kind(SliceKind::kLarge);
    return {run.base(), false};
  }
  return {nullptr, false};
}

// To whoever looks at it, its first slice is unused; the others stay as they are, for the next use.
bool LargeCache::keep(Superblock& run) noexcept {
  if (count_ == runs_.size() || bytes() + run.block_size > kMostBytes) return false;
  run.set_kind(SliceKind::kUnused);
  runs_[count_++] = &run;
  bytes_.store(bytes() + run.block_size, std::memory_order_relaxed);
  used_ = true;
  return true;
}

void LargeCache::remove(size_t i) noexcept {
  bytes_.store(bytes() - runs_[i]->block_size, std::memory_order_relaxed);
  for (--count_; i < count_; ++i) runs_[i] = runs_[i + 1];
}

void LargeCache::tick() noexcept {
  if (!used_) release_all();
  used_ = false;
}

void LargeCache::release_all() noexcept {
  while (count_ > 0) {
    Superblock& run = *runs_[count_ - 1];
    remove(count_ - 1);
    free_large(run);
  }
}

HugeHeader* huge_header(const void* block) noexcept {
  uintptr_t base = align_down(address_of(block), kChunk);
  if (AddressMap::kind(address_of(block)) == ChunkKind::kHugeAligned) base -= kChunk;
  auto* header = reinterpret_cast<HugeHeader*>(base + kHeaderAt);
  return header->block == block ? header : nullptr;
}

size_t huge_size(const HugeHeader& header) noexcept { return header.size; }
size_t huge_capacity(const HugeHeader& header) noexcept {
  return header.mapped - static_cast<size_t>(header.block - base_of(header));
}

bool huge_is_live(const HugeHeader& header) noexcept { return header.live == kLive; }

// A size is kept from its second time on.  What grows by doubling never asks for a size again, and what it leaves behind
// would be as much as it holds.
void free_huge(HugeHeader& header) noexcept {
  header.live = kKept;
  bool keep = false;
  {
    LockGuard guard(store.lock);
    store.active_bytes -= header.mapped;
    if (!header.recurs) {
      store.note_return(header.mapped);
    } else if (header.block == base_of(header) + kSlice && store.kept_bytes + header.mapped <= kKeepMost) {
      header.freed_ms = os::now_ms();
      header.next = store.kept;
      store.kept = &header;
      store.kept_bytes += header.mapped;
      keep = true;
    }
  }
  if (keep || unmap_huge(header)) return;
  // The system would not take it (vm.max_map_count): keep it, at least without its pages.
  os::purge(header.block, huge_capacity(header));
  LockGuard guard(store.lock);
  header.next = store.kept;
  store.kept = &header;
  store.kept_bytes += header.mapped;
}

void* resize_huge(HugeHeader& header, size_t size) noexcept {
  char* base = base_of(header);
  auto lead = static_cast<size_t>(header.block - base);
  if (size > kMaxRequest / 2 || size <= kLargeMax || lead != kSlice) return nullptr;
  size_t old_bytes = header.mapped, new_bytes = align_up(lead + size, os::page_size());
  HugeHeader* result = &header;
  if (new_bytes != old_bytes && !os::resize(base, old_bytes, new_bytes)) {
    char* target = static_cast<char*>(os::map(new_bytes, kChunk));
    if (target == nullptr) return nullptr;
    set_kinds(header, false);
    if (!os::move(base, old_bytes, target, new_bytes)) {
      set_kinds(header, true);
      return nullptr;  // target may be unmapped already, and somebody else's by now: its address space is let go
    }
    result = reinterpret_cast<HugeHeader*>(target + kHeaderAt);
    result->block = target + lead;
    set_kinds(*result, true);
  }
  LockGuard guard(store.lock);
  store.add(new_bytes - old_bytes);
  store.activate(new_bytes - old_bytes);
  result->mapped = new_bytes;
  result->size = size;
  return result->block;
}

size_t purge_huge_blocks(bool all) noexcept {
  HugeHeader* due = nullptr;
  uint64_t now = os::now_ms();
  {
    LockGuard guard(store.lock);
    for (HugeHeader** link = &store.kept; *link != nullptr;) {
      HugeHeader* header = *link;
      if (!all && now - header->freed_ms < options.decay_ms / 2) {
        link = &header->next;
        continue;
      }
      *link = header->next;
      store.kept_bytes -= header->mapped;
      header->next = due;
      due = header;
    }
  }
  size_t bytes = 0;
  while (due != nullptr) {
    HugeHeader* header = due;
    due = header->next;
    size_t mapped = header->mapped;
    if (unmap_huge(*header)) {
      bytes += mapped;
      continue;
    }
    LockGuard guard(store.lock);
    header->next = store.kept;
    store.kept = header;
    store.kept_bytes += mapped;
  }
  return bytes;
}

Lock& huge_lock() noexcept { return store.lock; }
size_t huge_bytes() noexcept { return store.bytes.load(std::memory_order_relaxed); }

HugeGauges huge_gauges() noexcept {
  LockGuard guard(store.lock);
  return {store.mappings, huge_bytes(), store.active_bytes, store.most_active_bytes};
}

}  // namespace hm
