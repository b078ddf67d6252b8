// A number that one thread counts and any may read.
#pragma once
#include <atomic>

#include "base/sizes.h"

namespace hm::hmalloc_paper {

class Count {
 public:
  // The owner of the heap that it lies in.  Relaxed throughout: nothing depends on it.
  void add(uint64_t n) noexcept { value_.store(read() + n, std::memory_order_relaxed); }
  uint64_t read() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_;
};

}  // namespace hm::hmalloc_paper
