// A number that one thread changes and any may read: no locked instruction.
#pragma once
#include <atomic>

#include "base/sizes.h"

namespace hm::vvmalloc {

class Count {
 public:
  constexpr Count() = default;
  // Both relaxed: statistics order nothing.
  void add(uint64_t n) noexcept { n_.store(n_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed); }
  void take(uint64_t n) noexcept { add(0 - n); }
  uint64_t get() const noexcept { return n_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> n_{0};
};

}  // namespace hm::vvmalloc
