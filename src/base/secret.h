// What the hardened library knows and an attacker should not: a key of the process, and random numbers.
//
// For any thread, without a lock.  The key lies in the library's data, out of the reach of blocks; the child of a fork has its
// parent's.  None of this is cryptography: whoever can read many edges of blocks can find the key.
#pragma once
#include <atomic>

#include "base/frozen.h"

namespace hm {

constexpr uint64_t mix_bits(uint64_t x) {  // every bit of the result depends on every bit of x; only 0 gives 0
  x = (x ^ x >> 32) * 0xd6e8feb86659fd93;
  x = (x ^ x >> 32) * 0xd6e8feb86659fd93;
  return x ^ x >> 32;
}

class Secret {
 public:
  // Never 0.  Relaxed: one word, and nothing else depends on it.
  uint64_t key() noexcept {
    uint64_t known = key_.load(std::memory_order_relaxed);
    return HM_LIKELY(known != 0) ? known : draw();
  }
  // What belongs to this address and these few bits, and to no others as far as one who lacks the key can tell.
  uint64_t sum(uintptr_t address, uint64_t bits) noexcept {
    uint64_t key = this->key(), x = (address ^ key) * 0x9e3779b97f4a7c15;
    x = ((x ^ x >> 29) + bits) * (std::rotl(key, 23) | 1);
    return x ^ x >> 31;
  }

 private:
  HM_COLD uint64_t draw() noexcept;
  std::atomic<uint64_t> key_{0};
};
extern Frozen<Secret> secret;

uint64_t next_random() noexcept;  // of the calling thread

}  // namespace hm
