// Guarded blocks (HMALLOC_GUARD): now and then a small block of the program's lies alone at the end of a page, between two that
// are inaccessible, and becomes inaccessible itself when it is freed.  So an access behind it, or after its free, is a fault, at
// the instruction that is wrong; guard/faults.h says what it hit.  After GWP-ASan (Serebryany and others, "GWP-ASan:
// Sampling-based detection of memory-safety bugs in production", 2023).
//
// They are samples (profile/sampler.h): so each byte that is allocated is as likely as any other to be the one that has its block
// guarded, but there is at most one of them in kPauseMs, and few at a time.  While allocations are counted no block is taken for
// one of a cache by its size alone; so this starts at load, before the program can have a handle of a cache.
//
// No lock: a place belongs to whoever has made it kBusy, and such a thread may be interrupted, or cut off by a fork, anywhere:
// then the place is lost to the process, and nothing else.
#pragma once
#include "base/address_map.h"
#include "guard/guarded_place.h"

namespace hm {

class GuardedBlocks {
 public:
  static constexpr size_t kMostPlaces = 255;
  static constexpr uint64_t kPauseMs = 10;

  // What an address is to the nearest place.
  struct Found {
    const GuardedPlace* place = nullptr;  // null: no block was ever near
    bool freed = false;                   // or it was, when the address was used: live pages are accessible
  };

  // Once, before there are other threads.  False: no memory, or no stacks can be taken.
  bool start(uint64_t pause_ms = kPauseMs) noexcept;
  // For a sampled request, by a call from `caller`.  Null: this one is not to be guarded.
  void* allocate(size_t size, const void* caller) noexcept;
  // Each of these ends the program unless a live block starts there.
  void free(void* block, const char* function, const void* caller) noexcept;
  size_t usable_size(const void* block, const char* function) noexcept;

  size_t mapped() const noexcept { return places_ == 0 ? 0 : kChunk; }

  // For any thread, also in a signal handler.
  bool covers(uintptr_t address) const noexcept { return address - base_ < kChunk && base_ != 0; }
  Found find(uintptr_t address) const noexcept;
  size_t live() const noexcept { return live_.load(std::memory_order_relaxed); }    // blocks; a hint
  size_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }  // that the program holds in them; a hint

 private:
  bool is_due() noexcept;
  GuardedPlace* place_at(uintptr_t address) noexcept;  // null: a guard, or behind the last place
  char* page_of(const GuardedPlace& place) const noexcept;
  GuardedPlace* take() noexcept;  // kBusy; null: all are live
  GuardedPlace& live_place(const void* block, const char* function) noexcept;
  [[noreturn]] void die(const char* function, const void* block, const char* reason, const GuardedPlace& place) noexcept;

  uintptr_t base_ = 0;
  uint64_t pause_ms_ = kPauseMs;
  size_t places_ = 0;  // pages 1, 3, 5 ... of the chunk; 0: not started
  GuardedPlace* all_ = nullptr;
  std::atomic<uint64_t> last_ms_{0};  // when one was made last
  std::atomic<uint32_t> cursor_{0};   // places are taken in turn, so that freed ones wait as long as possible
  std::atomic<size_t> live_{0}, bytes_{0};
};
extern constinit GuardedBlocks guarded_blocks;

}  // namespace hm
