// An extent: whole chunks of 2 MB with one huge block at their start, or kept without one.  What the allocator knows of it
// is this descriptor, which lies elsewhere (extent_table.h): nothing of ours is in an extent, or next to it.
//
// Invariants
//  E1  An extent is a live block's, in the list of kept ones, or in the hands of the one thread that took it from there,
//      is about to map or unmap it, or frees or moves its block: its state says which.
//  E2  Kept neighbours of one mapping are one extent.
//  E3  Behind `dirty`, and behind its block, an extent has never been written to or was purged since: it reads as zero.
//  E4  What is written to behind a live block is in the list of slack, or has just been purged.
//  E5  A descriptor that is in use owns the bytes from start() to end().  At no instruction do two own the same byte:
//      whoever passes bytes on, to another descriptor or to the system, lets go of them first.  So a child that was forked
//      in the middle of an operation, and has not the thread that was in it, finds all there is to know here (huge_repair);
//      what was in that thread's hands is lost to it.
#pragma once
#include <atomic>

#include "base/address_map.h"
#include "base/intrusive_list.h"
#include "base/os_pages.h"

namespace hm {

enum class ExtentState : uint32_t {
  kUnused = 0,  // the descriptor is free: it owns nothing, whatever is in it
  kHeld,        // in the hands of one thread
  kKept,
  kLive,  // the program holds its block
};

// While its block lives, that thread alone uses it; what the lists need is under their lock.
struct Extent {
  size_t size = 0;         // asked for
  size_t dirty = 0;        // from the start
  uint64_t mapping = 0;    // extents are joined within one, for the system moves pages of one only
  size_t slack = 0;        // kept behind the block: it is in that list
  uint64_t since_ms = 0;   // in a list since
  Extent* next = nullptr;  // in its list, or of free descriptors
  Extent* previous = nullptr;

  // Relaxed, all three: who reads them has the lock, or holds the block, or asks about what is no block of its own.
  ExtentState state() const noexcept { return state_.load(std::memory_order_relaxed); }
  char* start() const noexcept { return start_.load(std::memory_order_relaxed); }
  size_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }  // whole chunks
  // Release, all three: what says who owns which bytes is written in the order of the program (E5).
  void set_state(ExtentState state) noexcept { state_.store(state, std::memory_order_release); }
  void set_start(char* start) noexcept { start_.store(start, std::memory_order_release); }
  void set_bytes(size_t bytes) noexcept { bytes_.store(bytes, std::memory_order_release); }

  char* end() const noexcept { return start() + bytes(); }
  bool is_live() const noexcept { return state() == ExtentState::kLive; }
  size_t taken() const noexcept { return align_up(size, os::page_size()); }  // by the block
  bool is_followed_by(const Extent* other) const noexcept {
    return other != nullptr && end() == other->start() && mapping == other->mapping;
  }
  void purge_behind() noexcept {
    if (os::purge(start() + taken(), bytes() - taken())) dirty = taken();
  }

 private:
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
  void forget() noexcept { first_ = nullptr; }  // whoever is in it

 private:
  Extent* first_ = nullptr;
};

}  // namespace hm
