// Hashing for the tables of profiles.
#pragma once
#include <cstdint>

namespace hm {

constexpr uint64_t mix(uint64_t bits) noexcept {
  bits = (bits ^ bits >> 32) * 0xd6e8feb86659fd93;
  return bits ^ bits >> 32;
}

}  // namespace hm
