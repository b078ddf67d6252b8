"""The options of the engine that a model's run takes, as docs/pdes.md describes them."""

from typing import NamedTuple


class Option(NamedTuple):
    name: str
    kind: object  # of its value: "time", "seconds", "count", "size", "number", "flag", "file", or the words that it can be
    default: object  # the engine's; None: nothing
    help: str

    @property
    def word(self):
        return self.name.replace("_", "-")


SIMULATION = (
    Option("end", "time", 0.0, "virtual time to simulate to"),
    Option("lookahead", "time", 0.0, "least delay of an event for another LP"),
    Option("seed", "count", 1, "of all random numbers"),
    Option("generator", ("splitmix", "philox"), "splitmix", "of random numbers"),
    Option("ties", ("source", "hashed"), "source", "who comes first at the same time: the smaller LP, or nobody special"),
)
ENGINE = (
    Option("threads", "count", 1, "threads, on each rank"),
    Option("sync", ("windows", "neighbours"), "windows", "all threads by windows, or each by its neighbours' clocks"),
    Option("partition", ("blocks", "round-robin", "random", "graph"), "blocks", "which thread gets which LPs"),
    Option("balance", ("off", "threads", "ranks"), "threads", "move LPs to other threads, or ranks too, as their load says"),
    Option("balance_by", ("time", "events"), "time", "load: what events cost as measured, or their number"),
    Option("gather", ("off", "automatic", "always"), "automatic",
           "small windows of all by one thread: never, where that is faster, always"),
    Option("queue", ("wheel", "heap"), "wheel", "pending event set"),
    Option("allocator", ("hmalloc", "malloc", "free-list"), "hmalloc",
           "of events; free-list: private to the engine, the bound for any allocator"),
    Option("blocks", ("automatic", "dense", "lines"), "automatic",
           "what hmalloc is asked for: small blocks, or whole cache lines"),
    Option("max_memory", "size", None, "end the run when events and queues need more, on one rank (no limit)"),
    Option("pace", "number", 0.0, "virtual time per second of real time, at most; 0: as fast as it can"),
    Option("pin", "flag", None, "each thread to a CPU of its own"),
    Option("max_simultaneous", "count", 10_000_000, "end the run when more events than that follow without delay"),
)
MEASURED = (
    Option("interval", "seconds", 0.1, "between two points of progress and series, such as 500ms"),
    Option("trace", "file", None, "time line of threads and windows, for chrome://tracing or Perfetto"),
    Option("lookahead_report", "flag", None, "measure delays between LPs; one thread enforces no lookahead then"),
    Option("critical_path", "flag", None, "measure the longest chain of events: how many threads can be busy at all"),
)
# Of a run, not of the simulation: Model.run has parameters for them.
CHECKPOINTS = (
    Option("checkpoint", "file", None, "save the run here, on SIGUSR1, Ctrl-C and SIGTERM"),
    Option("checkpoint_every", "seconds", 0.0, "save it also as often as that, such as 10s; 0: only on request"),
    Option("resume", "file", None, "go on from this checkpoint, with any number of threads and ranks"),
)
NAMES = tuple(option.name for option in SIMULATION + ENGINE + MEASURED)
