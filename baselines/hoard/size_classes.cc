#include "baselines/hoard/size_classes.h"

namespace hm::hoard {

constinit SizeClasses classes;

void SizeClasses::compute(size_t room, size_t base) noexcept {
  size_t largest = align_down(room / 2, kGranule), size = 0;
  for (count_ = 0; size < largest; ++count_) {
    size_t before = size;
    size = align_down(before * base / kThousand, kGranule);
    if (size < before + kGranule) size = before + kGranule;
    if (size > largest || count_ + 1 == kMaxClasses) size = largest;
    classes_[count_] = {static_cast<uint32_t>(size), static_cast<uint32_t>(room / size)};
    for (size_t i = before / kGranule; i < size / kGranule; ++i) of_granules_[i] = static_cast<uint8_t>(count_);
  }
}

size_t SizeClasses::aligned(size_t size, size_t alignment) const noexcept {
  if (size > largest()) return count_;
  size_t c = of(size);
  while (c < count_ && classes_[c].size % alignment != 0) ++c;
  return c;
}

}  // namespace hm::hoard
