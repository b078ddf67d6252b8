// Large blocks with a mapping of their own.
#include <algorithm>
#include <new>

#include "base/os_pages.h"
#include "base/report.h"
#include "baselines/common/large_blocks.h"

namespace hm {
namespace {

constexpr size_t kLead = kLine;  // from the start of a mapping to its block, unless it is aligned to more
constexpr uint64_t kLive = 0x6c69766520626c6b;

}  // namespace

// At the start of a mapping; the block follows.
struct LargeBlocks::Mapping {
  uint64_t live;  // kLive while the mapping exists
  size_t mapped;
  char* block;
  bool fresh;     // never used before
  Mapping* next;  // while it is kept

  // Null if no block starts there.
  static Mapping* of(const void* block) noexcept {
    ChunkKind kind = AddressMap::kind(address_of(block));
    if (kind != ChunkKind::kHuge && kind != ChunkKind::kHugeAligned) return nullptr;
    uintptr_t base = align_down(address_of(block), kChunk) - (kind == ChunkKind::kHugeAligned ? kChunk : 0);
    auto* mapping = reinterpret_cast<Mapping*>(base);
    return mapping->live == kLive && mapping->block == block ? mapping : nullptr;
  }
  size_t lead() const noexcept { return static_cast<size_t>(block - reinterpret_cast<const char*>(this)); }
  void set_kinds(bool ours) noexcept {
    AddressMap::set(this, ours ? ChunkKind::kHuge : ChunkKind::kForeign);
    if (lead() >= kChunk) AddressMap::set(block, ours ? ChunkKind::kHugeAligned : ChunkKind::kForeign);
  }
};

// The link to the smallest kept mapping that fits and is less than twice as large, or null.  Under the lock.
LargeBlocks::Mapping** LargeBlocks::find_kept(size_t bytes) noexcept {
  Mapping** best = nullptr;
  for (Mapping** link = &kept_; *link != nullptr; link = &(*link)->next) {
    size_t mapped = (*link)->mapped;
    if (mapped >= bytes && mapped / 2 < bytes && (best == nullptr || mapped < (*best)->mapped)) best = link;
  }
  return best;
}

LargeBlocks::Mapping* LargeBlocks::take_kept(size_t bytes) noexcept {
  LockGuard guard(lock_);
  Mapping** best = find_kept(bytes);
  if (best == nullptr) return nullptr;
  Mapping* mapping = *best;
  *best = mapping->next;
  allocated_ += mapping->mapped;
  return mapping;
}

LargeBlocks::Mapping* LargeBlocks::map(size_t bytes, size_t lead, size_t alignment) noexcept {
  // A block of larger alignment lies 2 MB behind its header.
  auto* base = static_cast<char*>(os::map(bytes, std::max(alignment, kChunk), alignment > kChunk ? kChunk : 0));
  if (base == nullptr) return nullptr;
  LockGuard guard(lock_);
  mapped_ += bytes;
  allocated_ += bytes;
  return new (base) Mapping{kLive, bytes, base + lead, true, nullptr};
}

void* LargeBlocks::allocate_mapping(size_t size, size_t alignment) noexcept {
  size_t lead = alignment >= kChunk ? kChunk : alignment > kLead ? alignment : kLead;
  size_t bytes = align_up(lead + size, os::page_size());
  Mapping* mapping = lead == kLead ? take_kept(bytes) : nullptr;
  if (mapping == nullptr) mapping = map(bytes, lead, alignment);
  if (mapping == nullptr) return nullptr;
  mapping->set_kinds(true);
  return mapping->block;
}

bool LargeBlocks::free_mapping(void* block) noexcept {
  Mapping* mapping;
  {
    LockGuard guard(lock_);  // if two threads free the same block, one finds that it is none
    mapping = Mapping::of(block);
    if (mapping == nullptr) return false;
    mapping->set_kinds(false);
  }
  size_t bytes = mapping->mapped;
  bool keep = keep_ && mapping->lead() == kLead;
  bool gone = !keep && os::unmap(mapping, bytes);
  if (!keep && !gone) {  // the kernel's limit of mappings: give back the pages at least, except the header's
    size_t head = align_up(sizeof(Mapping), os::page_size());
    os::purge(reinterpret_cast<char*>(mapping) + head, bytes - head);
  }
  LockGuard guard(lock_);
  allocated_ -= bytes;
  if (gone) {
    mapped_ -= bytes;
  } else if (mapping->lead() == kLead) {
    mapping->fresh = false;
    mapping->next = kept_;
    kept_ = mapping;
  }
  return true;
}

size_t LargeBlocks::mapping_size(const void* block) const noexcept {
  const Mapping* mapping = Mapping::of(block);
  return mapping == nullptr ? 0 : mapping->mapped - mapping->lead();
}

bool LargeBlocks::is_fresh_mapping(const void* block) const noexcept {
  const Mapping* mapping = Mapping::of(block);
  return mapping != nullptr && mapping->fresh;
}

void* LargeBlocks::resize(void* block, size_t size) noexcept {
  Mapping* mapping = Mapping::of(block);
  if (mapping == nullptr || mapping->lead() >= kChunk || size <= kLargestRun || size > kMaxRequest / 2) return nullptr;
  size_t lead = mapping->lead(), old_bytes = mapping->mapped, new_bytes = align_up(lead + size, os::page_size());
  if (keep_ && new_bytes < old_bytes) return nullptr;
  {
    LockGuard guard(lock_);  // a kept mapping costs a copy, but growing would cost memory for good
    if (new_bytes > old_bytes && find_kept(new_bytes) != nullptr) return nullptr;
  }
  if (new_bytes != old_bytes && !os::resize(mapping, old_bytes, new_bytes)) {
    // A move that shrinks may fail half done, with the tail unmapped, so only moves that grow are made.
    void* target = new_bytes < old_bytes ? nullptr : os::map(new_bytes, kChunk);
    if (target == nullptr) return nullptr;
    mapping->set_kinds(false);
    if (!os::move(mapping, old_bytes, target, new_bytes)) {
      mapping->set_kinds(true);
      return nullptr;  // target may already be unmapped and somebody else's: we give up its address space
    }
    mapping = static_cast<Mapping*>(target);
    mapping->block = static_cast<char*>(target) + lead;
    mapping->set_kinds(true);
  }
  mapping->mapped = new_bytes;
  LockGuard guard(lock_);
  mapped_ += new_bytes - old_bytes;
  allocated_ += new_bytes - old_bytes;
  return mapping->block;
}

bool LargeBlocks::kept_are_valid(size_t& mapped) const noexcept {
  for (const Mapping* mapping = kept_; mapping != nullptr; mapping = mapping->next) {
    if (mapping->live != kLive || mapping->lead() != kLead || Mapping::of(mapping->block) != nullptr) return false;
    mapped += mapping->mapped;
  }
  return true;
}

}  // namespace hm
