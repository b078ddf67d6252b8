// Guards among the slices of the hardened library: of each sixteen in a row one, drawn at random when their chunk is first
// opened, is inaccessible and nobody's.  So a write that runs on out of a superblock ends at the next slice in one case of
// sixteen, and 31 slices further on in any; and nobody knows how far.  A guard stays as long as its chunk is mapped.  Chunks that
// were never opened have none.
//
// Where the system refuses one, and beyond kMost, there are fewer.
#pragma once
#include "pages/options.h"
#include "pages/region.h"

namespace hm {

#if defined(HM_HARDENED)

struct SliceGuards {
  static constexpr size_t kEvery = 16;  // pages, where one is larger than a slice
  static constexpr size_t kRunInAnyChunk =
      8;  // slices in a row that each chunk has between its guards, a region's first too
  // Each may cost the process two of its mappings (vm.max_map_count: 65,530), beside those that os::kMaxGuards allows.  With so
  // many, 4 GB of slices are guarded.
  static constexpr size_t kMost = 8192;

  static bool are_on() noexcept { return options.slice_guards != 0; }
  // The caller is the one opener of the chunk, and nobody has been given a slice of it since it was mapped, or closed.
  static void make(Chunk& chunk) noexcept;
  static void unmapped(size_t slices) noexcept;  // that were guards
  static size_t count() noexcept;                // slices
};

#else

struct SliceGuards {
  static constexpr size_t kRunInAnyChunk = kSlicesInChunk;
  static constexpr bool are_on() noexcept { return false; }
  static void make(Chunk&) noexcept {}
  static void unmapped(size_t) noexcept {}
};

#endif

}  // namespace hm
