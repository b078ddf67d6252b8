// Which regions, and which chunks of them, are mapped.  All under the slice pool's lock.
#include <new>

#include "base/intrusive_list.h"
#include "base/os_pages.h"
#include "pages/slice_pool.h"

namespace hm {
namespace {

// Where the system has huge pages always, the first byte would make 2 MB resident, and nothing here would count them.  So
// there, too, only chunks that are asked for have them (huge_page_policy.h).
void use_small_pages(void* base, size_t bytes) noexcept { os::prefer_huge_pages(base, bytes, false); }

// So many of these chunks' slices are guards.
size_t guards_of(const Region& region, size_t from, size_t to) noexcept {
  size_t guards = 0;
  for (size_t i = from; kHardened && i < to; ++i) guards += slices_in(Chunk::of_region(region.start())[i].guards);
  return guards;
}

constexpr os::Access kAccess = kHardened ? os::Access::kTagged : os::Access::kReadWrite;

}  // namespace

// With its first chunks.
Region* SlicePool::map_region(size_t chunks) noexcept {
  auto map = kHardened ? os::map_somewhere : os::map;
  auto* base = static_cast<char*>(map(chunks * kChunk, kRegion, 0, kAccess));
  if (base == nullptr) return nullptr;
  if (regions_ == 0) use_small_pages(AddressMap::all().data(), AddressMap::all().size());
  use_small_pages(base, chunks * kChunk);
  for (size_t i = 0; i < kChunksInRegion; ++i) new (base + kDescriptors + i * sizeof(Chunk)) Chunk;
  auto* region = new (base + kRegionHeader) Region;
  region->absent = static_cast<uint8_t>(kAllChunks << chunks);
  for (size_t at : {size_t{0}, kSecondGuard}) region->guards += os::guard(base + at, kGuard);
  ++regions_;
  link_first(mapped_, *region, &Region::next_mapped, &Region::previous_mapped);
  link_first(with_ready_chunks_, *region, &Region::next, &Region::previous);
  return region;
}

// The other chunks of regions are tried one after another, unless the system refuses memory at any place.
Region* SlicePool::map_absent_chunk() noexcept {
  for (Region* region = mapped_; region != nullptr; region = region->next_mapped)
    for (unsigned left = region->absent; left != 0; left &= left - 1) {
      auto index = static_cast<size_t>(std::countr_zero(left));
      Chunk& chunk = Chunk::of_region(region->start())[index];
      os::Mapped mapped = os::map_there(slice_at(chunk, 0), kChunk, kAccess);
      if (mapped == os::Mapped::kRefused) return nullptr;
      if (mapped == os::Mapped::kTaken) continue;
      chunk.huge = false;
      if constexpr (kHardened) chunk.guards = 0;
      use_small_pages(slice_at(chunk, 0), kChunk);
      if (region->ready() == 0) link_first(with_ready_chunks_, *region, &Region::next, &Region::previous);
      region->absent &= static_cast<uint8_t>(~(1u << index));
      return region;
    }
  return nullptr;
}

// A region with a chunk that can be opened, for a run of n slices.
Region* SlicePool::room(size_t n) noexcept {
  if (with_ready_chunks_ != nullptr) return with_ready_chunks_;
  if (Region* whole = map_region(kChunksInRegion)) return whole;
  if (Region* another = map_absent_chunk()) return another;
  return map_region(n <= kSlicesInChunk - kMetaSlices ? 1 : 2);
}

// Closed chunks, in as few calls as possible, the first chunk last: it has the region's own metadata.  False: the system
// refused, and the others are still mapped.
bool SlicePool::unmap(Region& region, uint8_t chunks) noexcept {
  for (unsigned left = chunks; left != 0;) {
    auto end = static_cast<size_t>(std::bit_width(left));
    auto n = static_cast<size_t>(std::countl_one(static_cast<uint8_t>(left << (kChunksInRegion - end))));
    auto gone = static_cast<uint8_t>(((1u << n) - 1) << (end - n));
    bool first = end == n;
    size_t guards = guards_of(region, end - n, end);
    if (!first) region.absent |= gone;  // before others can map something there
    bool unmapped = os::unmap(reinterpret_cast<void*>(region.start() + (end - n) * kChunk), n * kChunk);
    if (!unmapped && !first) region.absent &= static_cast<uint8_t>(~gone);
    if (!unmapped) return false;
    SliceGuards::unmapped(guards);
    left &= ~unsigned{gone};
  }
  return true;
}

void SlicePool::unmap(Region& region) noexcept {
  unlink(with_ready_chunks_, region, &Region::next, &Region::previous);
  unlink(mapped_, region, &Region::next_mapped, &Region::previous_mapped);
  size_t guards = region.guards;
  if (unmap(region, region.ready())) {
    os::unguarded(guards);
    --regions_;
  } else {  // the system refused: the region stays in service
    link_first(mapped_, region, &Region::next_mapped, &Region::previous_mapped);
    link_first(with_ready_chunks_, region, &Region::next, &Region::previous);
  }
}

void SlicePool::unmap_closed() noexcept {
  LockGuard guard(lock_);
  for (Region* region = mapped_; region != nullptr; region = region->next_mapped) {
    bool was_ready = region->ready() != 0;
    unmap(*region, region->ready() & static_cast<uint8_t>(~1u));
    if (was_ready && region->ready() == 0) unlink(with_ready_chunks_, *region, &Region::next, &Region::previous);
  }
}

}  // namespace hm
