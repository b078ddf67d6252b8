// Load that moves (Options::balance): LPs go to other threads, of their rank or of any, with their pending events.
//
// The LPs stand in a row, in the order in which they were dealt out, and each thread has a stretch of it.  Moving load is
// moving the ends of stretches, so LPs that were dealt out together stay together.
//
// Every few windows all threads see what load each has executed: its events, weighed by what they cost (engine/costs.h).  What
// the busiest has executed beyond the mean, and beyond what chance explains, is lost to all others.  When half as much has been
// lost as a move costs, the load of each LP is counted; when as much has, the row is cut anew.  So a run whose load is even counts nothing, and one that cannot be
// balanced loses at most as much again.  All threads come to the same decision, from the same numbers.
//
// A hot place may move faster than stretches can follow.  When cuts have been in vain too often, the row is dealt out like
// cards, a few neighbours to each thread in turn: then every thread has its share of wherever the load is.  More events cross
// threads then, so what these cost is set against what cuts cost; when they have cost too much, all LPs go home, to the thread
// that they began on.
//
// With Balance::threads each rank does so for itself.  With Balance::ranks the numbers travel with the events of a window, and
// so do the LPs, as bytes, in an exchange of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/costs.h"
#include "pdes/partition.h"

namespace pdes {

struct Team;

// What threads tell each other.  Written by its thread before a barrier, read by the others behind it, and not written again
// before the barrier after the next.
struct Load {
  std::uint64_t weight = 0;             // of what was executed since the last look
  double price = 0;                     // of a move, in events
  std::uint64_t sent = 0, crossed = 0;  // since the last look
  std::uint64_t lps = 0;
};

struct Leaving {
  LpId lp;
  std::uint32_t to;   // partition
  std::size_t bytes;  // as it is saved
};

// The LPs that one thread hands over, and those that come to it from other ranks.
struct alignas(128) Moving {
  std::vector<std::vector<Lp*>> to_thread;               // of this rank
  std::vector<Leaving> leaving;                          // for other ranks
  std::vector<std::vector<std::byte>> to_rank;           // what is left of them, in the same order
  std::vector<std::span<const std::byte>> below, above;  // from ranks before this one, and behind it
};

class LoadBoard {
 public:
  // Of the partitions that load moves between.
  LoadBoard(const World& world, unsigned threads, bool between_ranks, unsigned ranks);

  // What other ranks have to know, in a message that has more behind it; read returns what is behind it.
  void write_loads(std::vector<std::byte>& message) const;
  std::span<const std::byte> read_loads(unsigned rank, std::span<const std::byte> message);
  void write_leaving(std::vector<std::byte>& message, unsigned rank);  // which has the bytes then
  std::span<const std::byte> read_leaving(World& world, unsigned rank, std::span<const std::byte> message);

  const bool between_ranks;
  const unsigned first;                   // partition of this rank among these
  const std::vector<std::uint16_t> home;  // first owner of each LP
  std::vector<Load> loads;
  std::vector<Moving> moving;                     // by thread of this rank
  std::vector<Timed> timed;                       // cells of each thread, at looks where these are weighed
  bool tells_timed = false;                       // of this rank's first thread
  std::unique_ptr<std::uint64_t[]> weight_by_lp;  // each written by the LP's thread, which clears it before it counts

 private:
  std::size_t cells() const noexcept { return timed.size() / loads.size(); }
};

// Of one thread.  In each window: tell() before the barrier, is_due() behind it; then, if LPs move, part(), a barrier, receive
// the outboxes, welcome().
class Balancer {
 public:
  Balancer(Team& team, unsigned thread);
  void tell() noexcept;
  // Whether tell has told something in this window; the same on all threads.
  bool looks() const noexcept { return window_ == next_look_; }
  // The same on all threads.
  bool is_due() noexcept;
  // Hands over LPs, and their events into the outboxes of that parity.
  void part(unsigned parity);
  void welcome();

 private:
  std::uint64_t weight() noexcept;
  void look_again(std::uint64_t windows, double mean) noexcept;
  void weigh() noexcept;
  bool judge(double mean, double most) noexcept;
  bool moves_in_vain(double spent, double move) noexcept;
  void weigh_crossings(double mean) noexcept;
  double in_events(double engine_work) const noexcept;
  double price() const noexcept;
  void begin_to_count() noexcept;
  void count_no_more() noexcept;
  void choose(std::vector<Lp*>& staying);
  void hand_over() noexcept;

  Team& team_;
  LoadBoard& board_;
  Partition& own_;
  const unsigned thread_, place_;  // of the rank; among those that load moves between
  Moving& mine_;
  std::uint64_t window_ = 0, looked_ = 0, next_look_ = 2, looks_ = 0;  // looks_: while events are timed
  std::vector<std::uint64_t> executed_by_type_;                        // at the last look
  std::vector<std::uint64_t> counted_;                                 // weight of each thread since counting began
  bool counts_ = false;
  Weights weights_;
  EventTimer event_timer_;
  Counted by_lp_;
  double lost_ = 0;      // events that could have been executed meanwhile, since LPs moved last
  double then_ = 0;      // excess of the busiest thread over the mean when LPs moved last; 0: it has been compared
  double patience_ = 1;  // times the price
  enum class Move { cut, deal, home } next_ = Move::cut;
  bool dealt_ = false;        // or at home, in stretches
  double regret_ = 0;         // events that this way has cost beyond the other, until the last cut
  double crossings_ = 0;      // since then: what more of them cost, or would cost if LPs were dealt out
  double deal_patience_ = 1;  // times the price
  double any_at_home_ = 1, crossed_at_home_ = 0;
  std::uint64_t sent_then_ = 0, crossed_then_ = 0;  // at the last look
  std::size_t sent_ = 0;                            // bytes of the LPs that left for other ranks last
};

}  // namespace pdes
