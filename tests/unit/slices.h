// What the tests of slices share.
#pragma once
#include <cstdio>
#include <fstream>

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

// Whether what the kernel was asked for there has this name.
inline bool has_advice(const void* address, const char* name) {
  std::ifstream maps("/proc/self/smaps");
  uintptr_t from = 0, to = 0;
  for (std::string line; std::getline(maps, line);) {
    if (sscanf(line.c_str(), "%lx-%lx ", &from, &to) == 2 && line.find('-') < line.find(' ')) continue;
    bool here = from <= address_of(address) && address_of(address) < to;
    if (here && line.rfind("VmFlags:", 0) == 0) return line.find(name) != std::string::npos;
  }
  return false;
}
inline bool has_huge_pages(const void* address) { return has_advice(address, " hg"); }
inline bool has_small_pages(const void* address) { return has_advice(address, " nh"); }

// With chunks of its own.
struct Pool {
  SlicePool pool;
  Pool() {
    options.thaw();
    options.retain_bytes = SIZE_MAX / 2;  // what goes back at once has tests of its own
  }
  SlicePool::Run take(size_t slices) {
    SlicePool::Run run = pool.allocate(slices, true);
    EXPECT_NE(run.first, nullptr);
    return run;
  }
  size_t purge() { return pool.purge(SlicePool::Purge::kAll); }
};

}  // namespace hm::test
