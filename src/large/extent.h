// An extent: whole chunks of 2 MB with one huge block at their start, or kept without one.  The last chunk lacks the pages
// behind the block if the system had no addresses for them, or they were given back before a request was refused.  All that the allocator knows of
// it is in this descriptor, which lies elsewhere (extent_table.h): no metadata lies in an extent or next to it.
//
// Invariants
//  E1  An extent belongs to a live block, or is in the list of kept ones, or is held by the one thread that took it from
//      there, is about to map or unmap it, or frees or resizes its block.  Its state says which.
//  E2  Kept neighbours of one mapping are one extent.
//  E3  Beyond `dirty`, and beyond its block, an extent was never written to or has been purged since: it reads as zero.
//  E4  If memory behind a live block was written to, the extent is in the list of slack, has been purged there, or the system
//      has refused that.
//  E5  A descriptor that is in use owns the bytes from start() to end().  At no instruction do two own the same byte:
//      whoever passes bytes on, to another descriptor or to the system, lets go of them first.  So a child forked in the
//      middle of an operation of a thread that it does not have finds all there is to know here (huge_repair); it loses
//      only what that thread held.
#pragma once
#include <atomic>

#include "base/address_map.h"
#include "base/intrusive_list.h"
#include "base/os_pages.h"
#include "large/own_link.h"

namespace hm {

enum class ExtentState : uint32_t {
  kUnused = 0,  // the descriptor is free: it owns nothing, whatever it contains
  kHeld,        // by one thread
  kKept,
  kLive,  // the program holds its block
};

// While the block lives, only the thread that holds the block uses this; what the lists need is under their lock.
struct Extent : OwnLink<Extent> {
  size_t size = 0;         // as requested
  size_t dirty = 0;        // bytes from the start that may be nonzero
  uint64_t mapping = 0;    // extents are joined only within one mapping, because the system moves pages of one mapping only
  size_t slack = 0;        // bytes kept behind the block; nonzero: in the list of slack
  uint64_t since_ms = 0;   // since when it is in a list
  uint32_t lead = 0;       // hardened library: bytes from the start to the block
  uint32_t guards = 0;     // the same: how many it has
  Extent* next = nullptr;  // in its list, or of the free descriptors
  Extent* previous = nullptr;

  // All three relaxed: the reader has the lock, or holds the block, or asks about an address that is no block of its own.
  ExtentState state() const noexcept { return state_.load(std::memory_order_relaxed); }
  char* start() const noexcept { return start_.load(std::memory_order_relaxed); }
  size_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }  // whole pages
  // All three release, so that what says who owns which bytes is written in program order (E5).
  void set_state(ExtentState state) noexcept { state_.store(state, std::memory_order_release); }
  void set_start(char* start) noexcept { start_.store(start, std::memory_order_release); }
  void set_bytes(size_t bytes) noexcept { bytes_.store(bytes, std::memory_order_release); }

  char* end() const noexcept { return start() + bytes(); }
  bool is_live() const noexcept { return state() == ExtentState::kLive; }
  size_t taken() const noexcept { return align_up(size, os::page_size()); }  // by the block, in whole pages
  // Whether a block of this size has the chunks that it would get, and enough of the last one.
  bool fits(size_t wanted) const noexcept {
    return align_up(wanted, kChunk) == align_up(bytes(), kChunk) && align_up(wanted, os::page_size()) <= bytes();
  }
  bool is_followed_by(const Extent* other) const noexcept {
    return other != nullptr && end() == other->start() && mapping == other->mapping;
  }
  void purge_behind() noexcept {
    if (os::purge(start() + taken(), bytes() - taken())) dirty = taken();
  }

 private:
  friend struct Layout;
  std::atomic<ExtentState> state_{ExtentState::kUnused};
  std::atomic<char*> start_{nullptr};
  std::atomic<size_t> bytes_{0};
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
  void forget() noexcept { first_ = nullptr; }  // whatever is in it

 private:
  Extent* first_ = nullptr;
};

}  // namespace hm
