// Regions: how slices, chunks and their descriptors are laid out.
//
// A region is 16 MB: all metadata in front, then slices of 32 KB.  A superblock is one slice or four, with blocks of one
// class; a large run is any number of slices.  Each slice has a descriptor, found by two masks from any address within it.
// Memory is mapped and returned by chunks of 2 MB, so that one can be a huge page; a region's first chunk has the metadata.
// Where the system refuses a whole region, one is mapped chunk by chunk; and before a request is refused, chunks without
// memory are unmapped, except the first.
//
//   0         a guard: an overflow out of the mapping below ends here
//   0x010000  descriptors of slices, 128 bytes each; those of the metadata's slices hold the headers of chunks and region
//   0x020000  states of classes from 64 bytes up: 512 bytes for each slice
//   0x050000  states of the smaller classes: 2 KB for each slice.  The metadata's slices have no states; in their place lie
//             the last ones of the line above
//   0x150000  a guard: an underflow out of the first slice ends here
//   0x160000  slice 44, the first that holds blocks
#pragma once
#include <atomic>

#include "base/address_map.h"
#include "base/sizes.h"

namespace hm {

enum class SliceKind : uint8_t {
  kUnused = 0,  // free, or held by the allocator
  kBlocks,      // the first slice of a superblock
  kBlocksTail,  // one of its others
  kLarge,       // the first slice of a large run
  kLargeTail,   // one of its others, or was so when the slice was used last
};

inline constexpr size_t kRegion = 16 * kMiB;
inline constexpr size_t kChunksInRegion = kRegion / kChunk;
inline constexpr size_t kSlicesInRegion = kRegion / kSlice;
inline constexpr size_t kSlicesInChunk = kChunk / kSlice;
inline constexpr size_t kMetaSlices = 44;
inline constexpr size_t kDescriptors = 0x10000;
inline constexpr size_t kLineStates = 0x20000;
inline constexpr size_t kGranuleStates = 0x50000;
inline constexpr size_t kSecondGuard = 0x150000;
inline constexpr size_t kLineStatesArea = kSlice / kLine;        // one state for 64 bytes
inline constexpr size_t kGranuleStatesArea = kSlice / kGranule;  // one for 16

// The first fields that a free reads of any descriptor.  All zero: no block lies here, so the fast path is left.
struct DescriptorHead {
  uint32_t inverse = 0;       // of a superblock: ceil(2^32 / block size)
  uint16_t cache_offset = 0;  // of a superblock: its class's offset in a heap's array of block caches
  std::atomic<SliceKind> kind_{SliceKind::kUnused};
};

// The descriptor of a slice, whatever the slice is used for; a superblock's has more fields (core/superblock.h).
struct alignas(2 * kLine) Slice : DescriptorHead {
  uint32_t block_size = 0;  // of a superblock; of a large run: its length

  static Slice& of(uintptr_t address) noexcept { return *at(address); }
  uintptr_t region() const noexcept { return align_down(address_of(this), kRegion); }
  size_t slice() const noexcept { return (address_of(this) - region() - kDescriptors) / sizeof(Slice); }
  char* base() const noexcept { return reinterpret_cast<char*>(region() + slice() * kSlice); }
  // Statistics walk all descriptors: acquire and release order the other fields of a descriptor after its kind.
  SliceKind kind() const noexcept { return kind_.load(std::memory_order_acquire); }
  void set_kind(SliceKind kind) noexcept { kind_.store(kind, std::memory_order_release); }
  // Of a superblock.
  bool is_small() const noexcept { return kind() == SliceKind::kBlocks || kind() == SliceKind::kBlocksTail; }

 protected:
  static Slice* at(uintptr_t address) noexcept {
    return reinterpret_cast<Slice*>(align_down(address, kRegion) + kDescriptors +
                                    (address / kSlice % kSlicesInRegion) * sizeof(Slice));
  }
};
static_assert(sizeof(Slice) == 2 * kLine);

// Headers lie in place of the descriptors of the metadata slices, which hold no blocks: a free of an address in the
// metadata finds an unused slice.  Guarded by the slice pool's lock.
struct alignas(2 * kLine) Chunk {
  DescriptorHead never_a_block;
  // ---- changes with each slice that is taken or freed: one line
  uint64_t free = 0;          // bit i: slice i of the chunk is free
  uint64_t used = 0;          // bit i: slice i was used since its memory was last given back, so it may not read as zero
  uint64_t dirty = 0;         // free and resident since the last purge round
  uint64_t dirty_before = 0;  // since the round before it
  uint64_t refused = 0;       // the system refused these (locked pages): rounds try again, frees do not
  bool huge = false;          // huge pages were requested
  uint8_t step = 0;           // where the index of chunks has it (chunk_index.h)
  uint8_t surplus = 0;        // slices that are free and resident and may be given back at once
  uint64_t guards = 0;        // bit i: slice i is inaccessible, and nobody's (slice_guards.h)
  // ---- the lists of chunks
  alignas(kLine) Chunk* next = nullptr;  // all open chunks
  Chunk* previous = nullptr;
  Chunk* next_free = nullptr;  // those at the same step of the index (chunk_index.h)
  Chunk* previous_free = nullptr;
  Chunk* next_surplus = nullptr;  // those with a surplus
  Chunk* previous_surplus = nullptr;

  static Chunk* of_region(uintptr_t region) noexcept { return reinterpret_cast<Chunk*>(region + kDescriptors); }
  static Chunk& of(const Slice& slice) noexcept { return of_region(slice.region())[slice.slice() / kSlicesInChunk]; }
  uintptr_t region() const noexcept { return align_down(address_of(this), kRegion); }
  size_t index() const noexcept { return (address_of(this) - region() - kDescriptors) / sizeof(Chunk); }
  uintptr_t start() const noexcept { return region() + index() * kChunk; }
};
inline constexpr size_t kRegionHeader = kDescriptors + kChunksInRegion * sizeof(Chunk);
inline constexpr uint8_t kAllChunks = (1u << kChunksInRegion) - 1;
struct alignas(2 * kLine) Region {
  DescriptorHead never_a_block;
  Region* next = nullptr;  // the regions with chunks that can be opened
  Region* previous = nullptr;
  Region* next_mapped = nullptr;  // all regions
  Region* previous_mapped = nullptr;
  uint8_t closed = kAllChunks;  // bit i: chunk i is not open, nor about to be opened
  uint8_t absent = 0;           // bit i: chunk i is closed and not mapped; what lies there may be anybody's
  uint8_t guards = 0;           // how many of its two guards the system granted

  static Region& of(const Chunk& chunk) noexcept { return *reinterpret_cast<Region*>(chunk.region() + kRegionHeader); }
  uintptr_t start() const noexcept { return align_down(address_of(this), kRegion); }
  uint8_t ready() const noexcept { return closed & static_cast<uint8_t>(~absent); }  // chunks that can be opened
};
static_assert(sizeof(Chunk) == sizeof(Slice) && sizeof(Region) == sizeof(Slice) && kChunksInRegion < kMetaSlices);
static_assert(kDescriptors == kGuard && kDescriptors + kSlicesInRegion * sizeof(Slice) == kLineStates);
static_assert(kLineStates + kSlicesInRegion * kLineStatesArea <= kGranuleStates + kMetaSlices * kGranuleStatesArea);
static_assert(kGranuleStates + kSlicesInRegion * kGranuleStatesArea == kSecondGuard && kSecondGuard % kGuard == 0);
static_assert(kSecondGuard + kGuard == kMetaSlices * kSlice && kMetaSlices < kSlicesInChunk);

// Sets of a chunk's slices.
constexpr uint64_t mask_of(size_t slice, size_t n) { return (n == 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1) << slice; }
inline uint64_t guards_in(const Chunk& chunk) { return kHardened ? chunk.guards : 0; }
inline uint64_t all_slices(const Chunk& chunk) {  // that can be anybody's
  return (chunk.index() == 0 ? ~mask_of(0, kMetaSlices) : ~uint64_t{0}) & ~guards_in(chunk);
}
constexpr size_t slices_in(uint64_t mask) { return count_bits(mask); }
constexpr size_t bytes_in(uint64_t mask) { return slices_in(mask) * kSlice; }
inline char* slice_at(const Chunk& chunk, size_t slice) { return reinterpret_cast<char*>(chunk.start() + slice * kSlice); }

}  // namespace hm
