"""The times of single calls that a workload has written (--latency PATH): percentiles, and the histograms to keep."""

from pathlib import Path

import numpy
from hdrh.histogram import HdrHistogram

_IS_FREE = 1 << 31
_PERCENTILES = {"p50": 50.0, "p99": 99.0, "p999": 99.9, "p9999": 99.99}


def read(path: Path) -> tuple[dict[str, int], dict[str, str]]:
    """(metrics, encoded histograms); both empty if nothing was written."""
    times = numpy.fromfile(path, dtype="<u4") if path.is_file() else numpy.empty(0, "<u4")
    if times.size == 0:
        return {}, {}
    is_free = times & _IS_FREE != 0
    kinds = {"malloc": _histogram(times[~is_free]), "free": _histogram(times[is_free] & (_IS_FREE - 1))}
    metrics = {}
    for kind, histogram in kinds.items():
        metrics |= _percentiles(f"latency_{kind}", histogram)
    return (metrics | _percentiles("latency", _histogram(times & (_IS_FREE - 1))),
            {kind: histogram.encode().decode("ascii") for kind, histogram in kinds.items()})


def _histogram(times: numpy.ndarray) -> HdrHistogram:
    histogram = HdrHistogram(1, 10_000_000_000, 3)  # a nanosecond to ten seconds, to a thousandth
    for value, count in zip(*numpy.unique(times, return_counts=True)):
        histogram.record_value(max(int(value), 1), int(count))
    return histogram


def _percentiles(name: str, histogram: HdrHistogram) -> dict[str, int]:
    if histogram.get_total_count() == 0:
        return {}
    found = {f"{name}_{label}_ns": histogram.get_value_at_percentile(share) for label, share in _PERCENTILES.items()}
    return found | {f"{name}_max_ns": histogram.get_max_value()}
