#include "app/common.h"

#include <limits>

namespace pdes::app {

const Named<Allocator> kAllocators{
    {"hmalloc", Allocator::hmalloc}, {"malloc", Allocator::malloc}, {"free-list", Allocator::free_list}};
const Named<Blocks> kBlocks{{"automatic", Blocks::automatic}, {"dense", Blocks::dense}, {"lines", Blocks::lines}};
const Named<Queue> kQueues{{"wheel", Queue::wheel}, {"heap", Queue::heap}};
const Named<Sync> kSyncs{{"windows", Sync::windows}, {"neighbours", Sync::neighbours}};
const Named<Generator> kGenerators{{"splitmix", Generator::splitmix}, {"philox", Generator::philox}};
const Named<Ties> kTies{{"source", Ties::by_source}, {"hashed", Ties::hashed}};
const Named<Partitioning> kPartitionings{{"blocks", Partitioning::blocks},
                                         {"round-robin", Partitioning::round_robin},
                                         {"random", Partitioning::random},
                                         {"graph", Partitioning::graph}};
const Named<Balance> kBalances{{"off", Balance::off}, {"threads", Balance::threads}, {"ranks", Balance::ranks}};
const Named<BalanceBy> kBalancesBy{{"time", BalanceBy::time}, {"events", BalanceBy::events}};
const Named<Gather> kGathers{{"off", Gather::off}, {"automatic", Gather::automatic}, {"always", Gather::always}};

namespace {

const Named<Live> kLives{{"auto", Live::automatic}, {"on", Live::on}, {"off", Live::off}, {"json", Live::json}};
constexpr double kLargest = std::numeric_limits<double>::max();

// The engine decides which of these numbers make sense.
void declare_simulation(CommandLine& line, Options& options) {
  line.group("Simulation");
  line.number("end", options.end, "TIME", "virtual time to simulate to", -kLargest, kLargest);
  line.number("lookahead", options.lookahead, "TIME", "least delay of an event for another LP", -kLargest, kLargest);
  line.number("seed", options.seed, "N", "of all random numbers", std::uint64_t{0},
              std::numeric_limits<std::uint64_t>::max());
  line.choice("generator", options.generator, kGenerators, "of random numbers");
  line.choice("ties", options.ties, kTies, "who comes first at the same time: the smaller LP, or nobody special");
}

void declare_engine(CommandLine& line, Options& options, bool& oversubscribe) {
  line.group("How it is run (changes no result)");
  line.number("threads", options.threads, "N", "threads, on each rank; without ranks no more than there are CPUs", 0u,
              std::numeric_limits<unsigned>::max());
  line.flag("oversubscribe", oversubscribe, "more threads than CPUs, too: slower, and with the same result");
  line.choice("sync", options.sync, kSyncs, "all threads by windows, or each by its neighbours' clocks");
  line.choice("partition", options.partitioning, kPartitionings, "which thread gets which LPs");
  line.choice("balance", options.balance, kBalances, "move LPs to other threads, or ranks too, as their load says");
  line.choice("balance-by", options.balance_by, kBalancesBy, "load: what events cost as measured, or their number");
  line.choice("gather", options.gather, kGathers, "small windows of all by one thread: never, where that is faster, always");
  line.choice("queue", options.queue, kQueues, "pending event set");
  line.choice("allocator", options.allocator, kAllocators,
              "of events; free-list: private to the engine, the bound for any allocator");
  line.choice("blocks", options.blocks, kBlocks, "what hmalloc is asked for: small blocks, or whole cache lines");
  line.size("max-memory", options.max_memory, "end the run when events and queues need more, on one rank (no limit)");
  line.number("pace", options.pace, "SPEED", "virtual time per second of real time, at most; 0: as fast as it can", 0.0,
              1e9);
  line.flag("pin", options.pin, "each thread to a CPU of its own");
  line.number("max-simultaneous", options.max_simultaneous, "N",
              "end the run when more events than that follow without delay", std::uint64_t{1},
              std::numeric_limits<std::uint64_t>::max());
  line.text("checkpoint", options.checkpoint, "FILE", "save the run here, on SIGUSR1, Ctrl-C and SIGTERM");
  line.time("checkpoint-every", options.checkpoint_every, "save it also as often as that, such as 10s; 0: only on request",
            0, 1e9);
  line.text("resume", options.resume, "FILE", "go on from this checkpoint, with any number of threads and ranks");
}

}  // namespace

void declare_common(CommandLine& line, Options& options, bool& oversubscribe, Output& output) {
  declare_simulation(line, options);
  declare_engine(line, options, oversubscribe);
  line.group("Output");
  line.flag("json", output.json, "the summary as one line of JSON, and nothing else on standard output");
  line.flag("quiet", output.quiet, "no summary for people, no live line");
  line.choice("progress", output.live, kLives, "live line on a terminal; json: lines of JSON on standard error");
  line.text("series", output.series, "FILE", "time series of the run, written as it goes: CSV, or JSON lines (.jsonl)");
  line.text("summary", output.summary, "FILE", "the summary as JSON, in a file");
  line.time("interval", options.progress_interval, "between two points of progress and series, such as 500ms", 0.001, 1e6);
  line.text("trace", options.trace, "FILE", "time line of threads and windows, for chrome://tracing or Perfetto");
  line.flag("lookahead-report", options.measure_delays, "measure delays between LPs; one thread enforces no lookahead then");
  line.flag("critical-path", options.measure_path,
            "measure the longest chain of events: how many threads can be busy at all");
}

}  // namespace pdes::app
