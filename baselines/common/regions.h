// Memory from the system for the baselines: regions of one size, aligned to it.  No region is ever given back.
#pragma once
#include "base/address_map.h"
#include "base/lock.h"

namespace hm {

class Regions {
 public:
  // bytes: of a region; a power of two.  It may be smaller than a page: regions below 2 MB are cut from chunks of 2 MB.
  constexpr explicit Regions(size_t bytes) : bytes_(bytes) {}
  Regions(const Regions&) = delete;
  Regions& operator=(const Regions&) = delete;

  // Zeroed, aligned to its size.  Null if there is no memory.  For any thread.
  void* take() noexcept;
  size_t bytes() const noexcept { return bytes_; }
  size_t taken() noexcept;                 // regions so far
  Lock& lock() noexcept { return lock_; }  // for fork

  // The region that an address lies in; the caller knows from the address map that it is one of this size.
  template <class T>
  static T* of(const void* address, size_t bytes) noexcept {
    return reinterpret_cast<T*>(align_down(address_of(address), bytes));
  }

 private:
  Lock lock_;
  size_t bytes_;
  char* next_ = nullptr;  // within the chunk that was mapped last
  char* end_ = nullptr;
  size_t taken_ = 0;
};

}  // namespace hm
