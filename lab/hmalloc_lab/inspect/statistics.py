"""hmalloc stats and hmalloc export: the statistics of processes that nobody prepared, for people and for machines."""

import ipaddress
import json
import sys
import time
from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.openmetrics.exposition import generate_latest
from rich.console import Console

from ..errors import Failure
from ..printing import new_table, say
from . import census, gauges, layout
from .heap import take
from .process import ProcessMemory
from .system import find

ADDRESS = "127.0.0.1:9464"

# What each number is, in the order of hm_stats (hmalloc.h): its unit, whether it only grows, its meaning.
_METRICS = {
    "allocated": ("bytes", False, "held by the program"),
    "cached": ("bytes", False, "waiting in block caches"),
    "active": ("bytes", False, "superblocks and large blocks in use"),
    "resident": ("bytes", False, "active, metadata, freed and not yet given back"),
    "retained": ("bytes", False, "mapped and unused"),
    "mapped": ("bytes", False, "address space"),
    "metadata": ("bytes", False, "descriptors, states, heaps"),
    "peak_active": ("bytes", False, "largest active so far, slices and huge blocks each at their peak"),
    "bound": ("bytes", False, "most that is kept beyond the program's peak"),
    "purged": ("bytes", True, "given back so far"),
    "cross_thread_frees": ("", True, "blocks, seen when caches were flushed"),
    "refills": ("", True, "of block caches"),
    "flushes": ("", True, "of block caches"),
    "os_calls": ("", True, "mmap, munmap, mremap, madvise, mprotect"),
    "heaps": ("", False, "of threads"),
    "live_heaps": ("", False, "that have a thread now"),
    "large_blocks": ("", False, "of 32 KB to 1 MB"),
    "large_bytes": ("bytes", False, "in blocks of 32 KB to 1 MB"),
}
_OF_CLASSES = {
    "superblocks": ("", False, "of the class"),
    "held_blocks": ("", False, "held by the program or a cache"),
    "cached_blocks": ("", False, "waiting in block caches"),
}
_OF_HEAPS = {
    "cached": ("bytes", False, "waiting in its block caches"),
    "refills": ("", True, "of its block caches"),
    "flushes": ("", True, "of its block caches"),
    "cross_thread_frees": ("", True, "by its thread, of other heaps' blocks"),
}
_MOST_HEAPS = 64  # that have series


class Source:
    """A process, and its statistics as docs/stats.schema.json says."""

    def __init__(self, what: str) -> None:
        self.memory = ProcessMemory(find(what))
        self._layout = layout.find(self.memory)

    def look(self) -> dict:
        snapshot = take(self.memory, self._layout)
        return gauges.document(self.memory.number, self.memory.name, snapshot, census.count(snapshot))


class _Collector:
    def __init__(self, sources: Iterable[Source]) -> None:
        self._sources = sources

    def collect(self) -> Iterator[Metric]:
        found = []
        for source in self._sources:
            try:
                found.append(source.look())
            except Failure as failure:  # one that ends is no reason to say nothing of the others
                if not source.memory.has_ended():
                    print(f"hmalloc: {failure}", file=sys.stderr)
        yield from _families(found)


def _families(found: list[dict]) -> Iterator[Metric]:
    for name, kind in _METRICS.items():
        yield _family("", name, kind, [], [([], each, each[name]) for each in found])
    for name, kind in _OF_CLASSES.items():
        yield _family("class_", name, kind, ["class"], [([str(row["size"])], each, row[name])
                                                        for each in found for row in each["classes"]])
    for name, kind in _OF_HEAPS.items():
        yield _family("heap_", name, kind, ["heap"], [([str(row["heap"])], each, row[name]) for each in found
                                                      for row in each["threads"] if row["heap"] < _MOST_HEAPS])


def _family(prefix: str, name: str, kind: tuple[str, bool, str], labels: list[str], samples: list) -> Metric:
    unit, only_grows, meaning = kind
    family = CounterMetricFamily if only_grows else GaugeMetricFamily
    made = family(f"hmalloc_{prefix}{name}", meaning, labels=[*labels, "pid", "program"], unit=unit)
    for values, each, value in samples:
        made.add_metric([*values, str(each["pid"]), each["program"]], value)
    return made


def show(what: str, form: str, every: float) -> None:
    source, console = Source(what), Console(highlight=False)
    try:
        while True:
            _print(console, source.look(), form)
            sys.stdout.flush()
            if not every:
                return
            time.sleep(every)
            if source.memory.has_ended():
                print(f"hmalloc: {source.memory.title} has ended", file=sys.stderr)
                return
    finally:
        source.memory.close()


def _print(console: Console, found: dict, form: str) -> None:
    if form == "json":
        print(json.dumps(found, separators=(",", ":")))
    elif form == "openmetrics":
        registry = CollectorRegistry()
        registry.register(_Once(found))
        print(generate_latest(registry).decode(), end="")
    else:
        say(console, f"{found['program']} (process {found['pid']}), hmalloc {found['version']}; bytes, except counts")
        table = new_table("")
        for name, (_, _, meaning) in _METRICS.items():
            table.add_row(str(found[name]), f"{name}: {meaning}")
        console.print(table)


class _Once:
    def __init__(self, found: dict) -> None:
        self._found = found

    def collect(self) -> Iterator[Metric]:
        yield from _families([self._found])


def export(what: list[str], listen: str) -> None:
    """Until the processes have ended."""
    host, port = _address(listen)
    sources = [Source(each) for each in what]
    registry = CollectorRegistry()
    registry.register(_Collector(sources))
    try:
        server, _ = start_http_server(port, host, registry)
    except OSError as error:
        raise Failure(f"--listen {listen}: {error.strerror}", 1) from error
    names = ", ".join(each.memory.title for each in sources)
    shown = f"[{host}]" if ":" in host else host
    print(f"hmalloc: http://{shown}:{server.server_port}/metrics has the statistics of {names}", file=sys.stderr, flush=True)
    try:
        while not all(each.memory.has_ended() for each in sources):
            time.sleep(0.5)
    finally:
        server.shutdown()
    print(f"hmalloc: {names} {'has' if len(sources) == 1 else 'have'} ended", file=sys.stderr)


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or ADDRESS.partition(":")[0]
    try:
        ipaddress.ip_address(host)
        number = int(port)
    except ValueError:
        number = -1
    if not 0 <= number < 65536:
        raise Failure(f"--listen {text}: not an address and port (127.0.0.1:9464, [::]:9464, 9464)")
    return host, number
