// Sizes of blocks: "size classes that are a power of b apart" (section 3).
//
// Each class is the largest multiple of 16 that is at most b times the one before, and at least 16 more.  So a block is
// at most b times as large as the request, or 15 bytes larger.  The largest class is half of the room in a superblock:
// with one more byte, a superblock would hold only one block.
#pragma once
#include <array>

#include "baselines/hoard/options.h"

namespace hm::hoard {

inline constexpr size_t kMaxClasses = 128;  // enough for the largest S and the smallest b

struct SizeClass {
  uint32_t size;
  uint32_t blocks;  // in a superblock: S counted in blocks
};

class SizeClasses {
 public:
  constexpr SizeClasses() = default;
  void compute(size_t room, size_t base) noexcept;  // room: of a superblock, without its header; base: b in thousandths

  size_t count() const noexcept { return count_; }
  size_t largest() const noexcept { return classes_[count_ - 1].size; }
  const SizeClass& operator[](size_t c) const noexcept { return classes_[c]; }
  // The smallest class for a request of 1 to largest() bytes.
  size_t of(size_t size) const noexcept { return of_granules_[(size - 1) / kGranule]; }
  // The smallest class whose blocks are all aligned if the first of a superblock is; count() if there is none.
  size_t aligned(size_t size, size_t alignment) const noexcept;

 private:
  size_t count_ = 0;
  std::array<SizeClass, kMaxClasses> classes_{};
  std::array<uint8_t, kMaxSuperblock / 2 / kGranule> of_granules_{};
};

extern constinit SizeClasses classes;  // constant once computed

}  // namespace hm::hoard
