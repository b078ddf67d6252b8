"""hmalloc trace record: one order out of many spools, made by hand here."""

import struct

import pytest
from tracing import COUNTS, call, info, replay, trace_is_built

pytestmark = trace_is_built

MALLOC, CALLOC, ALIGNED, FREE, OLD, NEW = range(1, 7)
PAGE = 4096
LAST = 1 << 62  # a spool of the program that began latest is the one that counts

WRITER = """
import os, pathlib, struct
spool = bytearray(pathlib.Path({spool!r}).read_bytes())
spool[20:24] = struct.pack('<i', os.getpid())
(pathlib.Path(os.environ['HM_TRACE_SPOOLS']) / 'by-hand').write_bytes(spool)
"""


def chunk(number: int, records) -> bytes:
    if records is None:
        return bytes(PAGE)
    body = b"".join(struct.pack("<QQQ", at, address, size | call << 48) for at, call, address, size in records)
    return (struct.pack("<IIII", 0x6b6e6863, number, 1, len(records)) + body).ljust(PAGE, b"\0")


# Chunks are lists of (time, call, address, size) of threads, or None for a hole.
@pytest.mark.parametrize("chunks, stopped_at, expected", [
    # A coarse clock: thread 2 makes a block that 1 frees, 1 gets its address again and 3 frees it, all at one time.
    pytest.param([[(9, FREE, 16, 0), (9, MALLOC, 16, 8)], [(9, MALLOC, 16, 8)], [(9, FREE, 16, 0)]], 0,
                 {"mallocs": 2, "frees": 2, "max_in_use": 8}, id="equal stamps are put in an order that can be"),
    pytest.param([[(1, MALLOC, 16, 8), (2, OLD, 16, 0), (5, NEW, 32, 50)], [(3, MALLOC, 16, 8), (4, FREE, 16, 0)],
                  [(6, FREE, 32, 0)]], 0,
                 {"mallocs": 2, "frees": 2, "reallocs": 1, "cross_thread_frees": 1},
                 id="a realloc lets go of the old address before it has the new"),
    pytest.param([[(1, MALLOC, 16, 8), (2, OLD, 16, 0)], [(3, FREE, 16, 0)]], 0, {"mallocs": 1, "frees": 1},
                 id="a realloc that the process did not survive changed nothing"),
    # An allocator may give one out for realloc(block, 0) too; another must not lose it in the replay.
    pytest.param([[(1, MALLOC, 16, 0), (2, OLD, 16, 0), (3, NEW, 16, 0), (4, FREE, 16, 0)]], 0,
                 {"mallocs": 1, "frees": 1, "reallocs": 1}, id="a block of no size is a block"),
    # One thread found no room at 5; what others did later would be half of the truth.
    pytest.param([[(1, MALLOC, 16, 8), (2, MALLOC, 32, 8)], [(3, FREE, 16, 0), (6, MALLOC, 32, 8)]], 5,
                 {"mallocs": 2, "frees": 1, "never_freed": 1}, id="what comes after the stop does not count"),
    pytest.param([[(1, FREE, 16, 0), (2, OLD, 32, 0), (3, NEW, 48, 10), (4, MALLOC, 48, 20), (5, FREE, 48, 0)]], 0,
                 {"mallocs": 2, "frees": 2, "foreign_frees": 2, "implied_frees": 1},
                 id="what happens beside the record is harmless"),
    pytest.param([[(1, MALLOC, 16, 8)], None, [(2, FREE, 16, 0)]], 0, {"mallocs": 1, "frees": 1, "threads": 2},
                 id="a hole between chunks is stepped over"),
])
def test_spools_become_one_order(tmp_path, chunks, stopped_at, expected):
    header = struct.pack("<QQIiiiQIiQ", 0x316c6f6f707368, LAST, PAGE, 0, 0, 0, PAGE * (1 + len(chunks)), len(chunks), 0,
                         stopped_at).ljust(PAGE, b"\0")
    spool, writer, file = tmp_path / "spool", tmp_path / "writer.py", tmp_path / "it.hmtrace"
    spool.write_bytes(header + b"".join(chunk(number, records) for number, records in enumerate(chunks, 1)))
    writer.write_text(WRITER.format(spool=str(spool)))
    ending = call("record", "-o", file, "--", "/usr/bin/python3", writer)
    assert ending.returncode == 0, ending
    said, done = info(file), replay(file)
    assert [done[key] for key in (*COUNTS, "never_freed")] == [said[key] for key in (*COUNTS, "never_freed")]
    expected = {"reallocs": 0, "never_freed": 0, "foreign_frees": 0, "implied_frees": 0} | expected
    assert {key: said[key] for key in expected} == expected
