"""RocksDB's own benchmark: fills a database, then several threads read while one writes.  Nanoseconds of wall time per
operation of both.  Background threads free what others allocated (15 % of all frees).

  db_bench --library LIB [--threads 4] [--num 60000] [--reads 40000] [--share 1]

How it misleads: the database lies in memory, so reading and writing files costs the kernel's time and nobody waits for
a disk.
"""

import os
import re
import subprocess

import common


def main():
    given = common.arguments(threads=4, num=60_000, reads=40_000)
    with common.folder() as where:
        command = ["db_bench", "--benchmarks=fillrandom,readwhilewriting", f"--num={given.num}",
                   f"--reads={given.reads}", f"--threads={given.threads}", f"--db={where / 'db'}",
                   "--value_size=1000", "--cache_size=4000000", "--compression_type=none"]
        # Its progress goes to the descriptor of errors.
        with subprocess.Popen(common.served(command, given, where), env=common.client_environment(), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as bench:
            served_by = ""
            said = []
            for line in bench.stdout:  # the first lines come before it works
                said.append(line)
                served_by = served_by or ("" if given.share else common.mapped(bench.pid, given.library))
            _, status, usage = os.wait4(bench.pid, 0)
            bench.returncode = os.waitstatus_to_exitcode(status)
        if bench.returncode != 0:
            raise SystemExit(f"db_bench ended with {bench.returncode}")
        found = re.findall(r"^(?:fillrandom|readwhilewriting) .* ([\d.]+) seconds (\d+) operations;", "".join(said),
                           re.MULTILINE)
        if len(found) != 2:
            raise SystemExit("db_bench gave no result")
        seconds = sum(float(took) for took, _ in found)
        operations = sum(int(count) for _, count in found)
        fields = {"malloc_library": served_by, "ns_per_op": seconds * 1e9 / operations, "vm_hwm_kb": usage.ru_maxrss}
        if given.share:
            fields["allocator_share"] = common.share(where, given.library)
            fields["malloc_library"] = given.library if fields["allocator_share"] > 0 else ""
        common.report(workload="db_bench", threads=given.threads, ops=operations, **fields)
