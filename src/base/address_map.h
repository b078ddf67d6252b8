// One byte for each 2 MB of address space: is it ours, and of which kind?  Any pointer can be looked up without
// touching the memory that it points to, so a wild free ends in a message and not in a crash.
//
// The map is 2^26 bytes of zero pages on x86-64 and 2^27 on AArch64; one page of 4 KB covers 8 GB.  A byte is written
// before any pointer into its 2 MB leaves the allocator, and cleared before these go back to the system.
//
// Wider addresses exist (57 bits on x86-64, 52 on AArch64), but the system gives them only to callers that ask for one
// by a hint.  We never do: os::map returns none, and a free of one is reported as no block of ours.
#pragma once
#include <array>
#include <span>

#include "base/codegen.h"
#include "base/sizes.h"

namespace hm {

enum class ChunkKind : uint8_t {
  kForeign = 0,  // not ours
  kSlices,       // superblocks and large runs
  kHuge,         // the start of a block with a mapping of its own
  kHugeAligned,  // of a baseline: such a block aligned to 2 MB or more; its header lies in the 2 MB before
  kRegions,      // of a baseline: superblocks, slabs or arenas (baselines/common/regions.h)
  kWideRegions,  // the same, of 2 MB or more each
  kRuns,         // of a baseline: runs of pages (baselines/common/large_blocks.h)
  kGuarded,      // blocks that lie alone (guard/guarded_blocks.h)
  kOwnHeaps,     // heaps of the program's own themselves, not their blocks (threads/own_heaps.h)
  kGone,         // hmalloc's blocks were here; their memory has gone back to the system, or to another block
};

// The width of the addresses that the system returns unless it is asked for a wider one.
#if defined(__x86_64__)
inline constexpr int kAddressBits = 47;
#else
inline constexpr int kAddressBits = 48;  // AArch64; no other architecture that Linux runs on returns wider ones by default
#endif

class AddressMap {
 public:
  static constexpr size_t kUnits = size_t{1} << (kAddressBits - std::countr_zero(kChunk));

  // Whether the map covers all of it.
  static constexpr bool covers(uintptr_t start, size_t bytes) noexcept {
    constexpr uintptr_t kEnd = uintptr_t{kUnits} * kChunk;
    return start < kEnd && bytes <= kEnd - start;
  }

  // Any pointer, canonical or not.
  static ChunkKind kind(uintptr_t address) noexcept {
    uintptr_t unit = hide_from_optimizer(address / kChunk);
    if (HM_UNLIKELY(!is_covered(unit))) return ChunkKind::kForeign;
    return ChunkKind{kThreadSanitizer ? __atomic_load_n(&units_[unit], __ATOMIC_RELAXED) : units_[unit]};
  }
  // Called before any pointer into the chunk is handed out, and after the last was freed.  So a thread that asks about a
  // block that it holds reads a byte that nobody writes: no atomic is needed.  About anything else either answer will do.
  // Release: for the child of a fork, which takes a chunk for open if the map says so.
  static void set(const void* chunk, ChunkKind kind) noexcept {
    __atomic_store_n(&units_[address_of(chunk) / kChunk], static_cast<uint8_t>(kind), __ATOMIC_RELEASE);
  }
  // The map itself.
  static std::span<uint8_t> all() noexcept { return units_; }

 private:
  friend struct Layout;
  static constexpr bool is_covered(uintptr_t unit) noexcept {
#if defined(__x86_64__)
    return unit < kUnits;
#else
    return unit >> std::countr_zero(kUnits) == 0;  // AArch64 compares with a shifted register, not with that constant
#endif
  }
  HM_HIDDEN static std::array<uint8_t, kUnits> units_;  // of ChunkKind
};

}  // namespace hm
