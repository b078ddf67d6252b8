// A run beside real time: it executes nothing before real time has come there, and takes events from outside.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "engine/reducing_barrier.h"
#include "pdes/injected.h"

namespace pdes {

struct Team;

// Where other threads leave their events.
class Outside {
 public:
  // For any thread.  False: the run is over.
  bool give(Injected event);
  // For the run.  Returns when something has been given, or after so many seconds.
  std::vector<Injected> wait_for(double seconds);
  void close();

 private:
  std::mutex mutex_;
  std::condition_variable given_;
  std::vector<Injected> waiting_;
  bool closed_ = false;
};

class Pace {
 public:
  // What all threads do after the wait: execute what lies before `bound`; no event before `least` is left.
  struct Turn {
    Time least, bound;
    std::uint32_t flags;  // that the run is to be stopped or saved
  };

  Pace(Team& team, Outside& outside);
  // For the first thread, between two barriers: until real time has come to the earliest event, or something was given.
  void wait(ReducingBarrier::Reduction all);
  // After the second barrier: for all threads, and for each its own.
  const Turn& turn() const noexcept { return turn_; }
  std::vector<Key>& arrivals(unsigned thread) noexcept { return arrivals_[thread]; }

 private:
  using Clock = std::chrono::steady_clock;
  void begin(Time first);
  Time now() const noexcept;
  bool take(std::vector<Injected> given, Time earliest);

  Team& team_;
  Outside& outside_;
  bool began_ = false;
  Clock::time_point clock_;  // when virtual time was origin_
  Time origin_ = 0;
  Time floor_ = 0;  // LPs have executed events up to here: nothing may come earlier
  Turn turn_{};
  std::vector<std::vector<Key>> arrivals_;
};

}  // namespace pdes
