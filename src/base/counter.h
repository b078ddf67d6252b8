// A counter that one thread at a time writes and others read.
#pragma once
#include <atomic>
#include <cstdint>

namespace hm {

class Counter {
 public:
  void add(uint64_t n) noexcept { value_.store(get() + n, std::memory_order_relaxed); }
  uint64_t get() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};  // relaxed: it says nothing about other memory
};

}  // namespace hm
