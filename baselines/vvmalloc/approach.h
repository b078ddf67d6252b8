// Which of the report's four approaches this library is, and its parameters.
//
//   1   one heap behind one lock                                        global_lock.cc
//   2   a list of free blocks for each thread, arenas of 64 KB,
//       a central queue behind a mutex                                  thread_heaps.cc
//   3   the same; the central queue is lock-free                        ms_queue.h
//   4   the same; arenas of 256 KB
#pragma once
#include "base/sizes.h"

namespace hm::vvmalloc {

inline constexpr int kApproach = HM_VVMALLOC_APPROACH;
static_assert(kApproach >= 1 && kApproach <= 4);

inline constexpr size_t kArena = (kApproach == 4 ? 256 : 64) * kKiB;  // the minimum; for approaches 2 to 4

// Size steps, four to each doubling: step 0 holds 4 units, the next ones 5, 6, 7, 8 or 9, 10 or 11, 12, ...
constexpr size_t step_of(size_t units) {  // units >= 4: the last step that starts at or below
  size_t doublings = static_cast<size_t>(std::bit_width(units)) - 3;
  return 4 * doublings + (units >> doublings) - 4;
}
constexpr size_t start_of(size_t step) { return (4 + step % 4) << (step / 4); }
static_assert(step_of(4) == 0 && step_of(7) == 3 && step_of(8) == 4 && step_of(9) == 4 && step_of(23) == 9);
static_assert(start_of(0) == 4 && start_of(5) == 10 && start_of(step_of(28)) == 28);

}  // namespace hm::vvmalloc
