// What a run reports: while it runs, and at its end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "pdes/event.h"
#include "pdes/injected.h"
#include "pdes/report.h"

namespace pdes {

// Of one thread, or summed over several.
struct Activity {
  std::uint64_t events = 0;           // executed
  std::uint64_t sent = 0;             // to other LPs
  std::uint64_t crossed = 0;          // of these, to LPs of other threads and ranks
  std::uint64_t dropped = 0;          // at or after the end
  std::uint64_t windows = 0;          // or, with Sync::neighbours, advances of the clock
  double working_s = 0;               // executing and sorting events
  double blocked_s = 0;               // waiting for other threads and ranks
  std::uint64_t late = 0;             // events that arrived for the open bucket of the pending set
  std::uint64_t retunings = 0;        // of its bucket width
  std::uint64_t cancelled = 0;        // of the events: their timer had been cancelled or set anew, and nothing was done
  std::uint64_t parted = 0;           // LPs that went to other threads (Options::balance)
  std::uint64_t emigrated = 0;        // of these, to other ranks
  std::uint64_t made = 0, ended = 0;  // LPs that come and go (vacancies.h)
  std::uint64_t undelivered = 0;      // of the events: the LP had ended, or none was there, and nothing was done
};

// A snapshot of a running simulation, on the first rank; events and memory are of that rank's threads.
struct Progress {
  double wall_s;
  Time now, end;  // now: no event before it is left
  std::uint64_t events;
  Time window;  // length of the last one; 0: there are no windows
  std::uint64_t windows;
  std::vector<double> blocked_s;  // per thread, so far
  std::vector<std::uint64_t> thread_events;
  std::uint64_t pending;  // events
  std::size_t bytes;      // of pending events and queues
};

// An attempt to write a checkpoint.
struct Saved {
  Time at;            // no event before it is left
  std::string error;  // why it failed; empty: it did not
};

// Delays of events between LPs (Options::measure_delays).
struct Delays {
  std::uint64_t count = 0;
  double smallest = 0, mean = 0, largest = 0;
  double percentile(double p) const;     // 0 < p < 100, to 3 % or better
  std::vector<std::uint64_t> histogram;  // logarithmic, 32 buckets for each power of two from 2^-32 on
  // By classes of LPs and type of event, the smallest first: which of them keeps the lookahead small.
  struct Link {
    std::string from, to, event;
    std::uint64_t count;
    double smallest;
  };
  std::vector<Link> links;
};

// The largest number of two digits that is not above the smallest delay seen; 0 if there is none.
double suggested_lookahead(double smallest);

// The longest chain of events of which each had to wait for the one before (Options::measure_path): no number of threads
// executes a run in less time than these take one after the other.
struct Path {
  std::uint64_t events = 0;
  std::string last;        // where it ends: the LP with its class
  double parallelism = 0;  // events of the run for each of these: so many threads could be busy, at most
};

struct Result {
  std::uint64_t digest = 0;       // of all events executed, in each LP's order, and of the statistics
  Report statistics;              // of all LPs on all ranks
  Time reached = 0;               // the end, or where the run was stopped
  bool stopped = false;           // by Simulation::stop()
  bool ended_by_model = false;    // by Context::end_after(), before Options::end
  double wall_s = 0;              // of the run itself, without building the LPs; with the time before it was resumed
  Activity total;                 // over all ranks; windows: of one thread
  std::vector<Activity> threads;  // of this rank
  // Seconds that a thread of this rank was blocked by another: [who waited][for whom].
  std::vector<std::vector<double>> waited_on;
  std::vector<std::uint64_t> events_by_type;
  std::vector<std::string> type_names;
  std::size_t peak_bytes = 0;      // of pending events and queues, on all ranks; sampled
  std::uint64_t peak_pending = 0;  // events
  std::uint64_t gathered = 0;      // windows that one thread has executed for all (Options::gather)
  double bucket_width = 0;         // of the pending set of the first thread, at the end; 0: heap
  std::string blocks;              // "dense" or "lines": the kind of blocks at the end
  Delays delays;
  Path path;
  std::vector<Injected> injected;   // what came from outside, in the order in which it came; Simulation::replay
  std::string failed_at;            // after an exception in an LP: which LP, when, on which event
  std::uint64_t events_before = 0;  // of total.events: executed before the run was resumed
  std::uint64_t checkpoints = 0;    // written; on the first rank
  std::uint64_t trace_lost = 0;     // spans that the trace had no room for, on all ranks
  std::string trace_error;          // why the trace could not be written to its end; empty: it could
};

}  // namespace pdes
