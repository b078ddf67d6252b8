// Load that moves (Options::balance): LPs go to other threads of their rank, with their pending events.
//
// The LPs of a rank stand in a row, in the order in which they were dealt out, and each thread has a stretch of it.  Moving
// load is moving the ends of stretches, so LPs that were dealt out together stay together.
//
// Every few windows all threads see how many events each has executed.  What the busiest has executed beyond the mean, and
// beyond what chance explains, is lost to all others.  When half as much has been lost as a move costs, the events of each LP
// are counted; when as much has, the row is cut anew.  So a run whose load is even counts nothing, and one that cannot be
// balanced loses at most as much again.  All threads come to the same decision, from the same numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "pdes/partition.h"

namespace pdes {

struct Team;

// What threads tell each other.  Written by its thread before a barrier, read by the others behind it, and not written again
// before the barrier after the next.
struct alignas(128) Load {
  std::uint64_t events = 0;               // executed so far
  double price = 0;                       // of a move, in events
  std::vector<std::vector<Lp*>> leaving;  // by thread
};

struct LoadBoard {
  LoadBoard(unsigned threads, LpId lps)
      : loads(threads), executed_by_lp(std::make_unique_for_overwrite<std::uint32_t[]>(lps)) {
    for (Load& load : loads) load.leaving.resize(threads);
  }
  std::vector<Load> loads;
  std::unique_ptr<std::uint32_t[]> executed_by_lp;  // each written by the LP's thread, which clears it before it counts
};

// Of one thread.  In each window: tell() before the barrier, is_due() behind it; then, if LPs move, part(), a barrier, receive
// the outboxes, welcome().
class Balancer {
 public:
  Balancer(Team& team, unsigned thread);
  void tell() noexcept;
  // The same on all threads.
  bool is_due() noexcept;
  // Hands over LPs, and their events into the outboxes of that parity.
  void part(unsigned parity);
  void welcome();

 private:
  void look_again(std::uint64_t windows, double mean) noexcept;
  bool judge(double mean, double most) noexcept;
  double price() const noexcept;
  void begin_to_count() noexcept;
  void choose(std::vector<Lp*>& staying);

  Team& team_;
  const unsigned thread_;
  Partition& own_;
  Load& mine_;
  std::uint64_t window_ = 0, looked_ = 0, next_look_ = 2;
  std::vector<std::uint64_t> executed_, counted_from_;  // events of each thread at the last look, and when counting began
  double lost_ = 0;      // events that could have been executed meanwhile, since LPs moved last
  double then_ = 0;      // excess of the busiest thread over the mean when LPs moved last; 0: it has been compared
  double patience_ = 1;  // times the price
};

}  // namespace pdes
