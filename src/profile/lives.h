// How the lives of sampled blocks ended: who had allocated them and where, who freed them and where, and how old they were.
//
// For whoever has the lock of the samples.
#pragma once
#include "profile/numbered_rows.h"

namespace hm {

inline constexpr uint32_t kAges = 11;  // classes of ages: below 1 us, 10 us, 100 us ... 1000 s, and above

// The least age of the class, in nanoseconds.
constexpr uint64_t least_age(uint32_t age_class) noexcept {
  uint64_t least = age_class == 0 ? 0 : 1000;
  for (uint32_t i = 1; i < age_class; ++i) least *= 10;
  return least;
}
constexpr uint32_t age_class(uint64_t ns) noexcept {
  uint32_t c = 0;
  while (c + 1 < kAges && ns >= least_age(c + 1)) ++c;
  return c;
}

// Blocks that were alike in all of this.
struct Life {
  uint64_t hash;
  uint32_t allocated_at, freed_at;  // stacks; freed_at 0: it was not taken
  uint32_t allocated_by, freed_by;  // rows of threads; 0: there was no room for one
  uint32_t age;                     // a class
  uint32_t samples;
  double objects, bytes;  // estimated from samples
};

// A thread that has allocated or freed a sampled block.  The system gives the number of one that has ended to another: they
// share a row, with the name of the last.  A program may start thousands a second: all but the first share rows by their
// names, with the number 0.
struct SampledThread {
  static constexpr size_t kMostName = 16;
  uint64_t hash;
  uint32_t id;
  bool is_another;  // of those that share a row: not the one that had allocated
  char name[kMostName];
};
inline constexpr uint32_t kThreadsByNumber = 256;
// The calling thread's; its name is asked of the system.
SampledThread this_thread() noexcept;

class Lives {
 public:
  // False: there is no room for it.
  bool add(const Life& life) noexcept;
  // Its row; 0: there is no room.
  uint32_t meet(const SampledThread& thread) noexcept;
  // Where it shares a row with another thread, whose blocks it frees.
  uint32_t meet_another(const SampledThread& thread) noexcept { return share(thread, true); }
  const NumberedRows<Life>& all() const noexcept { return lives_; }
  const NumberedRows<SampledThread>& threads() const noexcept { return threads_; }
  // Without giving its memory back.
  void forget() noexcept { lives_.forget(), threads_.forget(); }

 private:
  uint32_t share(const SampledThread& thread, bool is_another) noexcept;

  NumberedRows<Life> lives_;
  NumberedRows<SampledThread> threads_;
};

}  // namespace hm
