"""What is run: each pattern (bench/workloads/core_patterns.h) on each number of cores."""

from collections.abc import Sequence

from ..catalogue import Cell

WORKLOAD = "cores"
PATTERNS = {
    "own": "each core frees what it made",
    "ring": "blocks are freed by the next core",
    "random": "blocks are freed by any core",
    "exchange": "half of the blocks are freed by the next core",
    "producer-consumer": "one core allocates, the others free",
    "larson": "threads leave their blocks to the next",
    "threadtest": "batches, freed by the core that made them",
    "linux-scalability": "all blocks are there before the first is freed",
    "phold-0": "a simulation: no event leaves its core",
    "phold-25": "a simulation: of 100 events 25 go to another core",
    "phold-50": "a simulation: half of the events go to another core",
    "phold-75": "a simulation: of 100 events 75 go to another core",
    "phold-100": "a simulation: all events go to another core",
    "pcs": "a simulation: few events leave, to the core before or after",
    "airport": "a simulation: some events leave, to the core before or after",
}
CORES = (1, 2, 4, 8, 16, 32, 64)
MOST_CORES = 64
OPERATIONS = 2048  # of each core
GRAIN = 16         # of a turn
METRIC = "disturbances"
_LIMIT_S = 1800.0


def chosen(patterns: Sequence[str], cores: Sequence[int], operations: int = OPERATIONS, grain: int = GRAIN) -> list[Cell]:
    return [Cell(WORKLOAD, "cores", {"pattern": pattern, "threads": count}, {"operations": operations, "grain": grain},
                 metric=METRIC, limit_s=_LIMIT_S)
            for pattern in patterns for count in cores]
