// An extent: whole chunks of 2 MB with one huge block, or kept without one.  This header is in its second page; the block
// begins one slice after the start, or at the next multiple of a larger alignment.
//
// Invariants
//  E1  An extent is a live block's, in the list of kept ones, or in the hands of the one thread that took it from there,
//      is about to map or unmap it, or frees its block.
//  E2  Kept neighbours of one mapping are one extent.
//  E3  Behind `dirty`, and behind its block, an extent has never been written to or was purged since: it reads as zero.
//      (The first slice, where its header is, is no block's and counts as dirty when extents are joined.)
//  E4  What is written to behind a live block is in the list of slack, or has just been purged.
#pragma once
#include <algorithm>
#include <new>

#include "base/address_map.h"
#include "base/links.h"
#include "base/os_pages.h"
#include "hmalloc/superblock.h"

namespace hm {

// While its block lives, that thread alone uses it; what the lists need is under their lock.
struct Extent {
  static constexpr uint64_t kLive = 0x6c69766520626c6b, kKept = 0x6b65707420626c6b;

  uint64_t live;      // kLive while the program holds the block
  char* block;
  size_t size;        // asked for
  size_t bytes;       // whole chunks
  size_t dirty;       // from the start
  uint64_t mapping;   // extents are joined within one, for the system moves pages of one only
  size_t slack;       // kept behind the block: it is in that list
  uint64_t since_ms;  // in a list since
  Extent* next;
  Extent* previous;

  static Extent* at(char* start) noexcept { return reinterpret_cast<Extent*>(start + kDescriptors); }
  static Extent* create(char* start, size_t bytes, size_t dirty, uint64_t mapping) noexcept {
    auto* extent = new (at(start)) Extent{kKept, start + kSlice, 0, bytes, dirty, mapping, 0, 0, nullptr, nullptr};
    extent->set_kinds(true);
    return extent;
  }

  char* start() const noexcept { return reinterpret_cast<char*>(align_down(address_of(this), kChunk)); }
  char* end() const noexcept { return start() + bytes; }
  size_t lead() const noexcept { return static_cast<size_t>(block - start()); }
  size_t taken() const noexcept { return align_up(lead() + size, os::page_size()); }  // by the block, from the start
  bool is_followed_by(const Extent* other) const noexcept {
    return other != nullptr && end() == other->start() && mapping == other->mapping;
  }

  void set_kinds(bool ours) const noexcept {
    // An address in the gap before a far block is ours too, though no block starts there.
    AddressMap::set(start(), ours ? ChunkKind::kHuge : ChunkKind::kForeign);
    if (lead() >= kChunk) AddressMap::set(block, ours ? ChunkKind::kHugeAligned : ChunkKind::kForeign);
  }
  void leave_block() noexcept {
    if (lead() < kChunk) return;  // still known as a block's start, should it be freed again
    AddressMap::set(block, ChunkKind::kForeign);
    block = start() + kSlice;
  }
  // The one that follows, which is in no list.
  void absorb(const Extent& other) noexcept {
    other.set_kinds(false);
    dirty = bytes + std::max(other.dirty, kSlice);  // its header too
    bytes += other.bytes;
  }
  void purge_behind() noexcept {
    if (os::purge(start() + taken(), bytes - taken())) dirty = taken();
  }
};

class ExtentList {
 public:
  Extent* first() const noexcept { return first_; }
  void insert(Extent* before, Extent& extent) noexcept {  // null: at the front
    link_behind(first_, before, extent, &Extent::next, &Extent::previous);
  }
  void push(Extent& extent) noexcept { insert(nullptr, extent); }
  void remove(Extent& extent) noexcept { unlink(first_, extent, &Extent::next, &Extent::previous); }
  Extent* pop() noexcept {
    Extent* extent = first_;
    if (extent != nullptr) remove(*extent);
    return extent;
  }

 private:
  Extent* first_ = nullptr;
};

}  // namespace hm
