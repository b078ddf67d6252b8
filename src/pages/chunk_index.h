// The open chunks with free slices, by the length of their longest free run: exactly up to 32 slices, the most that is ever
// asked for; above in steps of eight, so that a chunk which is being filled seldom changes its place.  A request is served
// by a chunk with the shortest run that suffices (best fit): long runs stay whole for large blocks, and the search takes a
// few instructions however many chunks there are.
//
// Guarded by the slice pool's lock.
#pragma once
#include <array>
#include <bit>
#include <utility>

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

// Without a branch that depends on the bits.
constexpr size_t longest_run(uint64_t free) noexcept {
  uint64_t runs[6] = {free};  // bit i of the one at k: a run of 2^k starts at slice i
#pragma GCC unroll 5
  for (size_t k = 0; k < 5; ++k) runs[k + 1] = runs[k] & runs[k] >> (1u << k);
  uint64_t starts = ~uint64_t{0};  // of runs of `longest`
  size_t longest = 0;
#pragma GCC unroll 6
  for (size_t k = 6; k-- > 0;) {
    uint64_t longer = starts & runs[k] >> longest;
    starts = longer != 0 ? longer : starts;
    longest += size_t{longer != 0} << k;
  }
  return longest + (free == ~uint64_t{0});
}

class ChunkIndex {
 public:
  // Where a chunk belongs; 0: it has no free slice.
  static constexpr uint8_t step_of(size_t run) noexcept {
    return static_cast<uint8_t>(run <= kExact ? run : kExact + divide_up(run - kExact, kWidth));
  }
  // The chunk's free slices have changed.
  void update(Chunk& chunk) noexcept {
    uint8_t step = step_of(longest_run(chunk.free));
    if (step != chunk.step) move_to(chunk, step);
  }
  // The chunk is being closed.
  void remove(Chunk& chunk) noexcept { move_to(chunk, 0); }
  // Null: none has n free slices in a row.
  Chunk* find(size_t n) const noexcept {
    size_t step = step_of(n);
    if (n > shortest_run(step))
      for (Chunk* chunk = first_[step++]; chunk != nullptr; chunk = chunk->next_free)
        if (starts_of_runs(chunk->free, n) != 0) return chunk;
    uint64_t enough = steps_ >> step;
    return enough == 0 ? nullptr : first_[step + static_cast<size_t>(std::countr_zero(enough))];
  }
  // In the child of a fork: as if no chunk were in it.
  void clear() noexcept {
    first_ = {};
    steps_ = 0;
  }
  template <class Visit>
  void for_each(Visit visit) const noexcept {  // visit(chunk, the step that it is found at)
    for (size_t step = 1; step < first_.size(); ++step)
      for (Chunk* chunk = first_[step]; chunk != nullptr; chunk = chunk->next_free) visit(*chunk, step);
  }

 private:
  static constexpr size_t kExact = 32, kWidth = 8;
  static constexpr size_t kLastStep = kExact + (kSlicesInChunk - kExact) / kWidth;

  static constexpr size_t shortest_run(size_t step) noexcept {
    return step <= kExact ? step : kExact + kWidth * (step - kExact - 1) + 1;
  }
  void move_to(Chunk& chunk, uint8_t step) noexcept {
    size_t before = std::exchange(chunk.step, step);
    if (before != 0) {
      unlink(first_[before], chunk, &Chunk::next_free, &Chunk::previous_free);
      if (first_[before] == nullptr) steps_ &= ~(uint64_t{1} << before);
    }
    if (step == 0) return;
    link_first(first_[step], chunk, &Chunk::next_free, &Chunk::previous_free);
    steps_ |= uint64_t{1} << step;
  }
  uint64_t steps_ = 0;  // bit i: first_[i] is not null
  std::array<Chunk*, kLastStep + 1> first_{};
};

}  // namespace hm
