// How much freed memory stays resident, in bytes: nothing but a little, until the program asks again within the decay
// time for what had just gone back.  Then as much as it asked for again, as long as it goes on reusing what is kept and
// does not pause for longer than the decay time.  So a program that frees much and then sleeps has given it back before
// its last free returns, and one that breathes does not pay for page faults.
//
// Under its user's lock.
#pragma once
#include <algorithm>

#include "base/sizes.h"

namespace hm {

class Retention {
 public:
  // What may stay just now.
  size_t allowance(uint64_t now_ms, uint64_t decay_ms) const noexcept {
    return now_ms - used_ms_ <= decay_ms ? allowance_ : 0;
  }
  // So much went back because it was above the allowance.
  void on_purge(size_t bytes, uint64_t now_ms, uint64_t decay_ms) noexcept {
    if (now_ms - returned_ms_ > decay_ms) returned_ = 0;
    returned_ms_ = now_ms;
    returned_ += bytes;
  }
  bool has_given_back() const noexcept { return returned_ > 0; }
  // So much is needed that is not resident.
  void on_demand(size_t bytes, uint64_t now_ms, uint64_t decay_ms) noexcept {
    if (now_ms - returned_ms_ > decay_ms) returned_ = 0;
    bytes = std::min(bytes, returned_);
    if (bytes == 0) return;
    returned_ -= bytes;
    allowance_ = allowance(now_ms, decay_ms) + bytes;
    used_ms_ = now_ms;
  }
  // What was kept has been used again.
  void on_reuse(uint64_t now_ms) noexcept {
    if (allowance_ > 0) used_ms_ = now_ms;
  }
  // So much was kept for the decay time, and nobody asked.
  void on_expire(size_t bytes) noexcept { allowance_ -= std::min(allowance_, bytes); }

 private:
  size_t allowance_ = 0;
  uint64_t used_ms_ = 0;
  size_t returned_ = 0;
  uint64_t returned_ms_ = 0;
};

}  // namespace hm
