#include "baselines/common/regions.h"

#include "base/os_pages.h"

namespace hm {

void* Regions::take() noexcept {
  LockGuard guard(lock_);
  if (next_ == end_) {
    size_t mapped = bytes_ < kChunk ? kChunk : bytes_;
    auto* chunk = static_cast<char*>(os::map(mapped, mapped));
    if (chunk == nullptr) return nullptr;
    for (char* unit = chunk; unit != chunk + mapped; unit += kChunk)
      AddressMap::set(unit, bytes_ < kChunk ? ChunkKind::kRegions : ChunkKind::kWideRegions);
    next_ = chunk;
    end_ = chunk + mapped;
  }
  char* region = next_;
  next_ += bytes_;
  ++taken_;
  return region;
}

size_t Regions::taken() noexcept {
  LockGuard guard(lock_);
  return taken_;
}

}  // namespace hm
