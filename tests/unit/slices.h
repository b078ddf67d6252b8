// What the tests of slices share.
#pragma once
#include "pages/options.h"
#include "support.h"

namespace hm::test {

inline constexpr size_t kFirstRun = kSlicesInChunk - kMetaSlices;  // all of a region's first chunk
// All slices that these many chunks, the first ones of a region, can hold.
constexpr size_t slices_of_chunks(size_t chunks) {
  return chunks * kSlicesInChunk - divide_up(chunks, kChunksInRegion) * kMetaSlices;
}

inline char* base(const SlicePool::Run& run) { return run.first->base(); }
// Every page of so many slices.
inline void fill_slices(char* start, size_t slices, char with) {
  for (size_t at = 0; at < slices * kSlice; at += 4096) start[at] = with;
}
inline bool is_filled(const char* start, size_t slices, char with) {
  for (size_t at = 0; at < slices * kSlice; at += 4096)
    if (start[at] != with) return false;
  return true;
}

// With chunks of its own.
struct Pool {
  SlicePool pool;
  Pool() { options.retain_bytes = SIZE_MAX / 2; }  // what goes back at once has tests of its own
  SlicePool::Run take(size_t slices) {
    SlicePool::Run run = pool.allocate(slices, true);
    EXPECT_NE(run.first, nullptr);
    return run;
  }
  size_t purge() { return pool.purge(SlicePool::Purge::kAll); }
};

}  // namespace hm::test
