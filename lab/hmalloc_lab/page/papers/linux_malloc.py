"""malloc() performance in a multithreaded Linux environment (Lever and Boreham).  Its Tables 1 to 4 and Fig. 1 to 11.

There is one machine here for the paper's three.  It stands for the two Linux machines where it has their number of
CPUs; Solaris, whose heap had one lock, takes an allocator of that kind.
"""

from ...bench.catalogue import Cell
from ...bench.results import Results
from ..figure import PaperFigure
from .baselines import LINUX_CAST, ONE_LOCK
from .common import GLIBC, Cells
from .judging import Clause, judged, on_cpus
from .linux_false_sharing import penalty, size_chart
from .linux_successors import fault_chart, fault_spread, grows_as_predicted, less_spread, successors
from .linux_workers import (SECONDS, expected_time, far_above_expected, flat_to_the_cpus, jump_beyond_the_cpus,
                            not_above_expected, proportional, run_table, sporadic_slow_runs, threads_over_processes,
                            two_workers_table, workers)
from .pictures import lines

PAPER = "Linux malloc (2000)"

_DUAL = "This machine, two of its CPUs in use, stands for the paper's dual Pentium Pro; glibc today for glibc 2.0."
_QUAD = "This machine stands for the paper's four Xeons; glibc today for glibc 2.1."
_SOLARIS = "A heap behind one lock stands for that of Solaris 2.6, this machine for its two UltraSPARCs."


def _three_workers(results: Results) -> list[Cell]:
    return [cell for cell in workers(8192)(results) if cell.threads == 3]


_WORKERS = [
    PaperFigure(PAPER, "Table 1", "Two threads against two processes, two CPUs",
                "Section 5.1: 10 million requests of 512 B take a worker 26.04 and 26.06 s as two threads, 23.31 and "
                "23.31 s as two processes: sharing a heap costs about 10 %.",
                two_workers_table, judged(threads_over_processes(GLIBC, most=1.15), note=_DUAL),
                "Confirmed up to 15 %: the paper's own numbers make 12 %. Seconds are of fewer requests."),
    PaperFigure(PAPER, "Table 2", "Two threads against two processes, Solaris",
                "Section 5.1: on Solaris two threads take 54.27 and 54.41 s, two processes 6.02 and 6.05 s: one shared "
                "heap costs nearly an order of magnitude.",
                two_workers_table, judged(threads_over_processes(ONE_LOCK, least=5), note=_SOLARIS),
                "Nearly an order of magnitude is taken as at least 5 times."),
    PaperFigure(PAPER, "Table 3", "Two threads against two processes, four CPUs",
                "Section 5.1: on four CPUs two threads take 12.39 and 12.40 s, two processes 10.39 and 10.40 s: "
                "sharing a heap costs about 20 %.",
                two_workers_table, judged(on_cpus(4, threads_over_processes(GLIBC, most=1.25)), note=_QUAD),
                "Confirmed up to 25 %."),
    PaperFigure(PAPER, "Fig. 1", "Time over the number of threads, two CPUs",
                "Section 5.1: with requests of 8192 B and up to five threads on n = 2 CPUs, the time grows with the "
                "slope m/n, m = 23 s being one thread's time: contention is acceptable.",
                lines(workers(8192), "seconds of a worker", metric=SECONDS, ideal=expected_time, cast=LINUX_CAST),
                judged(not_above_expected(GLIBC, workers(8192), 0.2), note=_DUAL),
                "Confirmed up to 20 % above the expected line."),
    PaperFigure(PAPER, "Fig. 2", "Time with many threads, two CPUs",
                "Section 5.1: with requests of 4100 B and far more threads than CPUs, the time grows fairly linearly "
                "with the threads.",
                lines(workers(4100), "seconds of a worker", metric=SECONDS, cast=LINUX_CAST),
                judged(proportional(GLIBC, workers(4100), 0.25), note=_DUAL), "Fairly linear is taken as within 25 %."),
    PaperFigure(PAPER, "Fig. 3", "Time over the number of threads, Solaris",
                "Section 5.1: on Solaris five threads with requests of 8192 B take twenty times as long as one (6 s) "
                "on two CPUs, far above the expected slope of 6/2 s.",
                lines(workers(8192), "seconds of a worker", metric=SECONDS, ideal=expected_time, cast=LINUX_CAST),
                judged(far_above_expected(ONE_LOCK, workers(8192), 2), note=_SOLARIS), "Far above is taken as twice."),
    PaperFigure(PAPER, "Fig. 4", "Time over the number of threads, four CPUs",
                "Section 5.1: on four CPUs the time jumps twice, from one thread (10.4 s) to several (about 12.6 s) "
                "and where there are more threads than CPUs; scalability is very good.",
                lines(workers(8192), "seconds of a worker", metric=SECONDS, ideal=expected_time, cast=LINUX_CAST),
                judged(on_cpus(4, flat_to_the_cpus(GLIBC, workers(8192), 1.25)),
                       on_cpus(4, jump_beyond_the_cpus(GLIBC, workers(8192), 1.1)), note=_QUAD),
                "Very good is taken as at most 25 % above one thread, a jump as at least 10 %."),
    PaperFigure(PAPER, "Table 4", "Runs of three threads, four CPUs",
                "Section 5.1: of 15 runs with three threads, ten take about 12.58 s and five about 14.85 s: "
                "sporadically 20 % slower, where the allocator's variables share cache lines.",
                run_table(_three_workers), judged(sporadic_slow_runs(GLIBC, _three_workers, 0.1, 10), note=_QUAD),
                "Slower is taken as 10 % above the median."),
]


def _faults(label: str, title: str, claim: str, of: Cells, *clauses: Clause) -> PaperFigure:
    return PaperFigure(PAPER, label, title, claim, fault_chart(of), judged(*clauses, note="glibc today for glibc 2.1."),
                       "Faults since the first object: loading a program of today costs some hundred more. Points are "
                       "means over the rounds, bars reach from the smallest to the largest.")


_SUCCESSORS = [
    _faults("Fig. 5", "Page faults over rounds, one thread",
            "Section 5.2: with 10,000 objects of 40 B and one thread, faults follow 14 + 1.1tr + 127.6t for t threads "
            "and r rounds, one more page each round, and do not vary.",
            successors(1), grows_as_predicted(GLIBC, successors(1), 0.05),
            fault_spread(GLIBC, successors(1), most=0.05)),
    _faults("Fig. 6", "Page faults over rounds, three threads",
            "Section 5.2: with three threads the smallest counts start at 399 and grow by 3 each round, as predicted, "
            "but the largest are 25 to 50 % above the smallest: the heap leaks.",
            successors(3), fault_spread(GLIBC, successors(3), least=0.25)),
    _faults("Fig. 7", "Page faults over rounds, seven threads",
            "Section 5.2: with seven threads the largest counts are only 9 to 18 % above the smallest, less than with "
            "three.",
            successors(7), fault_spread(GLIBC, successors(7), most=0.18),
            less_spread(GLIBC, successors(7), successors(3))),
    _faults("Fig. 8", "Page faults over many rounds, seven threads on several CPUs",
            "Section 5.2: over many rounds on four CPUs, faults grow with the slope of the predictor, 1.1 a thread and "
            "round, at a nearly constant distance: the heap does not grow without bound.",
            successors(7, 9, 1000), on_cpus(2, grows_as_predicted(GLIBC, successors(7, 9, 1000), 0.1))),
]


def _sharing(label: str, threads: int, claim: str, least: float) -> PaperFigure:
    return PaperFigure(PAPER, label, f"False sharing by object size, {threads} threads", claim, size_chart(threads),
                       judged(penalty(GLIBC, threads, least), note="glibc today for glibc 2.1."),
                       "We draw the time of a write, the paper that of 100 million. Solid: as malloc places them.")


_FALSE_SHARING = [
    _sharing("Fig. 9", 2,
             "Section 5.3: where two threads write objects of 3 to 52 B on one cache line, a write takes twice as "
             "long as with aligned objects, or longer.", 2),
    _sharing("Fig. 10", 3,
             "Section 5.3: with three threads on 3 to 52 B objects, of which any two may share a line, the "
             "penalty is still large.", 1.5),
    _sharing("Fig. 11", 4,
             "Section 5.3: four threads on lines of their own are almost as fast as one (2.1 s); with 3 to 52 B "
             "objects as they come, sometimes up to 4 times slower.", 2),
]

FIGURES = [*_WORKERS, *_SUCCESSORS, *_FALSE_SHARING]
