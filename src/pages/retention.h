// How many bytes of freed memory stay resident.  At first only a little, until the program asks within the decay time
// for memory that has just been given back; then as much as it asked for, as long as it keeps reusing retained memory
// and does not pause for longer than the decay time.  So a program that frees much and then sleeps has returned it
// before its last free returns, and one whose footprint goes up and down does not pay for page faults.
//
// Guarded by its user's lock.
#pragma once
#include <algorithm>

#include "base/sizes.h"

namespace hm {

class Retention {
 public:
  // What may stay resident at this time.
  size_t allowance(uint64_t now_ms, uint64_t decay_ms) const noexcept {
    return now_ms - used_ms_ <= decay_ms ? allowance_ : 0;
  }
  // `bytes` were given back because they exceeded the allowance.
  void on_purge(size_t bytes, uint64_t now_ms, uint64_t decay_ms) noexcept {
    if (now_ms - returned_ms_ > decay_ms) returned_ = 0;
    returned_ms_ = now_ms;
    returned_ += bytes;
  }
  bool has_given_back() const noexcept { return returned_ > 0; }
  // `bytes` are needed that are not resident.
  void on_demand(size_t bytes, uint64_t now_ms, uint64_t decay_ms) noexcept {
    if (now_ms - returned_ms_ > decay_ms) returned_ = 0;
    bytes = std::min(bytes, returned_);
    if (bytes == 0) return;
    returned_ -= bytes;
    allowance_ = allowance(now_ms, decay_ms) + bytes;
    used_ms_ = now_ms;
  }
  // Retained memory was used again.
  void on_reuse(uint64_t now_ms) noexcept {
    if (allowance_ > 0) used_ms_ = now_ms;
  }
  // `bytes` were retained for the decay time and nobody asked for them.
  void on_expire(size_t bytes) noexcept { allowance_ -= std::min(allowance_, bytes); }

 private:
  size_t allowance_ = 0;
  uint64_t used_ms_ = 0;
  size_t returned_ = 0;
  uint64_t returned_ms_ = 0;
};

}  // namespace hm
