"""redis-server with I/O threads under redis-benchmark, over a socket in the file system.  Nanoseconds of wall time per
request.  Blocks that one thread reads into and another answers from and frees.

  redis --library LIB [--io-threads 2] [--requests 100000] [--share 1]

How it misleads: I/O threads spin, so with few processors they take from each other and from the client; most of the time
is the kernel's.
"""

import csv
import subprocess
import time

import common

_TESTS = "set,get,lpush,lpop,hset"


def wait_until_up(socket, server):
    for _ in range(500):
        asked = subprocess.run(["redis-cli", "-s", socket, "ping"], capture_output=True, text=True, check=False,
                               env=common.client_environment())
        if asked.stdout.strip() == "PONG":
            return
        if server.poll() is not None:
            break
        time.sleep(0.01)
    raise SystemExit("redis-server does not answer")


def load(socket, requests):
    """(nanoseconds per request over all tests, the worst test's p99 in nanoseconds)"""
    client = ["redis-benchmark", "-s", socket, "-n", str(requests), "-r", "100000", "-d", "200", "-P", "8", "-t", _TESTS,
              "--csv"]
    said = subprocess.run(client, capture_output=True, text=True, check=True, env=common.client_environment()).stdout
    rows = list(csv.DictReader(said.splitlines()))
    if len(rows) != len(_TESTS.split(",")):
        raise SystemExit(f"redis-benchmark gave {len(rows)} results")
    p99 = max(float(row["p99_latency_ms"]) for row in rows) * 1e6
    return sum(1e9 / float(row["rps"]) for row in rows) / len(rows), p99


def main():
    given = common.arguments(io_threads=2, requests=100_000)
    with common.folder() as where:
        socket = str(where / "socket")
        command = ["redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no",
                   "--io-threads", str(given.io_threads), "--io-threads-do-reads", "yes", "--dir", str(where),
                   "--pidfile", str(where / "pid")]
        with subprocess.Popen(common.served(command, given, where), env=common.client_environment(),
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as server:
            try:
                wait_until_up(socket, server)
                pid = int((where / "pid").read_text())
                ns_per_op, p99 = load(socket, given.requests)
                fields = {"malloc_library": common.mapped(pid, given.library), "ns_per_op": ns_per_op,
                          "request_p99_ns": p99, "vm_hwm_kb": common.status_kb(pid, "VmHWM"),
                          "vm_rss_kb": common.status_kb(pid, "VmRSS")}
            finally:
                subprocess.run(["redis-cli", "-s", socket, "shutdown", "nosave"], capture_output=True, check=False,
                               env=common.client_environment())
                try:
                    server.wait(10)
                except subprocess.TimeoutExpired:
                    server.kill()
        if given.share:
            fields["allocator_share"] = common.share(where, given.library)
        common.report(workload="redis", threads=given.io_threads, ops=given.requests, **fields)
