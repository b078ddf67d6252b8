// How a simulation is run.  Nothing here changes its results, except seed, end, generator, ties and lookahead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

#include "pdes/event.h"

namespace pdes {

// Who allocates the blocks of events.
enum class Allocator : std::uint8_t {
  hmalloc,    // hmalloc's explicit API
  malloc,     // whatever malloc is preloaded
  free_list,  // private to the engine, never given back: the bound for any allocator
};
// The kind of blocks that hmalloc is asked for.
enum class Blocks : std::uint8_t {
  automatic,  // by size and number of pending events (docs/pdes.md)
  dense,      // hm_malloc: as small as the event
  lines,      // hm_shared_alloc: whole cache lines
};
enum class Queue : std::uint8_t { wheel, heap };
enum class Sync : std::uint8_t {
  windows,     // all threads advance together, by at least the lookahead
  neighbours,  // each thread follows the clocks of the threads that send to it
};
enum class Generator : std::uint8_t { splitmix, philox };
enum class Ties : std::uint8_t {
  by_source,  // the LP with the smaller id comes first
  hashed,     // no LP is preferred
};
enum class Partitioning : std::uint8_t {
  blocks,
  round_robin,
  random,
  graph,  // few links between threads (Simulation::set_neighbours, set_partitioner)
};
// Whether LPs move while the run goes on, as the load of each says.
enum class Balance : std::uint8_t {
  off,
  threads,  // to other threads of their rank
  ranks,    // to other ranks as well: they are saved there and made again here, as with a checkpoint
};
// What makes an LP's load.
enum class BalanceBy : std::uint8_t {
  time,    // its events, each as dear as those of its type and class have been
  events,  // their number: then moves are the same in each run
};
// Whether the first thread executes the small windows of all, while the others sleep.
enum class Gather : std::uint8_t {
  off,
  automatic,  // where it was measured to be faster
  always,
};

// The number of CPUs that the calling thread may use: of its affinity, and no more than the quota of its control group.
unsigned allowed_cpus() noexcept;

struct Options {
  Time end = 0;          // events at or after this time are not executed
  Time lookahead = 0;    // smallest delay of an event for another LP; more than one thread needs one above 0
  unsigned threads = 1;  // on each rank
  std::uint64_t seed = 1;
  Allocator allocator = Allocator::hmalloc;
  Blocks blocks = Blocks::automatic;
  Queue queue = Queue::wheel;
  Sync sync = Sync::windows;
  Generator generator = Generator::splitmix;
  Ties ties = Ties::by_source;
  Partitioning partitioning = Partitioning::blocks;
  Balance balance = Balance::threads;  // by windows
  BalanceBy balance_by = BalanceBy::time;
  std::uint64_t (*clock)() = nullptr;  // by which events are timed then, in nanoseconds; null: the system's
  Gather gather = Gather::automatic;   // by windows, on threads of one rank, without a pace
  std::size_t max_memory = 0;          // bytes of pending events and queues on this rank; 0: no limit
  bool pin = false;                    // thread i to the i-th allowed CPU
  bool measure_delays = false;         // of cross-LP events, for Result::delays; one thread then enforces no lookahead
  bool measure_path = false;           // the longest chain of events, for Result::path; on one rank
  // Virtual time per second of real time, at most: the run waits for it, and takes events from outside (Simulation::inject).
  // 0: it runs as fast as it can.  On threads of one rank, by windows.
  double pace = 0;
  double progress_interval = 0.1;  // seconds between two calls of the progress function
  // Events that follow each other at one time on one thread, beyond those that were pending when the time came: more is an
  // Error, because such a chain rarely ends.
  std::uint64_t max_simultaneous = 10'000'000;
  // Checkpoints, docs/pdes.md.  `model` is the model's name and a line "PARAMETER: VALUE" for each of its parameters: a
  // checkpoint of another one is refused, with the first line that differs.
  std::string model{};
  std::string checkpoint{};     // file to save the run in; empty: none
  double checkpoint_every = 0;  // seconds of real time; 0: only on request, and when the run is stopped
  std::string resume{};         // file to go on from; empty: from the beginning
  std::string trace{};          // file for a time line of threads and windows (Chrome's format); empty: none
};

// Anything that ends a run early: bad options, a lookahead violation, no memory, an LP's own exception.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Thrown on a rank whose own part of the run was fine; another rank throws the reason.
class OtherRankFailed : public Error {
 public:
  using Error::Error;
};

}  // namespace pdes
