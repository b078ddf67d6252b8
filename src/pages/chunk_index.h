// The open chunks with free slices, by the length of their longest free run.  A request is served by the chunk whose
// longest run is the shortest that suffices (best fit): long runs stay whole for large blocks, and the search takes a few
// instructions however many chunks there are.
//
// Guarded by the slice pool's lock.
#pragma once
#include <array>
#include <bit>

#include "base/intrusive_list.h"
#include "pages/region.h"

namespace hm {

// Bit i of the result: slices i to i+n-1 are all in `free`.
constexpr uint64_t starts_of_runs(uint64_t free, size_t n) noexcept {
  for (size_t have = 1; have < n && free != 0;) {
    size_t step = n - have < have ? n - have : have;
    free &= free >> step;
    have += step;
  }
  return free;
}

constexpr size_t longest_run(uint64_t free) noexcept {
  size_t longest = 0;  // of whose starts `free` has the bits, less one
  for (size_t step = 32; step > 0 && free != 0; step /= 2)
    if (uint64_t starts = starts_of_runs(free, step + 1)) {
      free = starts;
      longest += step;
    }
  return free == 0 ? 0 : longest + 1;
}

class ChunkIndex {
 public:
  // The chunk's free slices have changed.
  void update(Chunk& chunk) noexcept { move_to(chunk, longest_run(chunk.free)); }
  // The chunk is being closed.
  void remove(Chunk& chunk) noexcept { move_to(chunk, 0); }
  // Null: none has n free slices in a row.
  Chunk* find(size_t n) const noexcept {
    uint64_t enough = lengths_ >> (n - 1);
    return enough == 0 ? nullptr : first_[n - 1 + static_cast<size_t>(std::countr_zero(enough))];
  }
  // In the child of a fork: as if no chunk were in it.
  void clear() noexcept {
    first_ = {};
    lengths_ = 0;
  }
  template <class Visit>
  void for_each(Visit visit) const noexcept {  // visit(chunk, length of its longest run)
    for (size_t i = 0; i < first_.size(); ++i)
      for (Chunk* chunk = first_[i]; chunk != nullptr; chunk = chunk->next_free) visit(*chunk, i + 1);
  }

 private:
  void move_to(Chunk& chunk, size_t length) noexcept {
    size_t before = chunk.longest_run;
    if (length == before) return;
    if (before != 0) {
      unlink(first_[before - 1], chunk, &Chunk::next_free, &Chunk::previous_free);
      if (first_[before - 1] == nullptr) lengths_ &= ~(uint64_t{1} << (before - 1));
    }
    chunk.longest_run = static_cast<uint8_t>(length);
    if (length == 0) return;
    link_first(first_[length - 1], chunk, &Chunk::next_free, &Chunk::previous_free);
    lengths_ |= uint64_t{1} << (length - 1);
  }
  std::array<Chunk*, kSlicesInChunk> first_{};
  uint64_t lengths_ = 0;  // bit i: first_[i] is not null
};

}  // namespace hm
