// Small windows: the first thread executes those of all threads, one after the other, while the others sleep, when that is
// faster than meeting at a barrier.  What is executed, and in which order by each LP, is the same.
//
// Which is faster is measured, because it depends on the model's handlers and on who else wants the CPUs.  Of the two ways one
// is preferred; now and then the other is tried, so seldom that a trial which fails costs a fiftieth.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>

#include "pdes/options.h"

namespace pdes {

struct Team;

// For the first thread.
class Gathering {
 public:
  explicit Gathering(const Team& team);

  // Before each window: whether it should execute this one for all.
  bool wants();

 private:
  using Clock = std::chrono::steady_clock;
  enum Way : bool { apart, together };
  static constexpr double kFirst_s = 2e-3;

  void judge(double elapsed_s);
  bool has_grown(double window_s);
  bool is_worth_a_trial(double elapsed_s) const;
  void begin(Way way);

  const Team& team_;
  const Gather how_;
  Way way_ = apart, preferred_ = apart;
  std::array<double, 2> window_s_{};  // of each way, when it was measured last
  double patience_s_ = kFirst_s;      // until the other way is tried
  // Since this way began.
  std::uint64_t windows_ = 0, shown_then_ = 0, executed_then_ = 0;
  unsigned large_ = 0;  // windows without one that is small
  double blocked_then_s_ = 0;
  Clock::time_point began_, before_;
};

}  // namespace pdes
