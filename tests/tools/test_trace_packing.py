"""hmalloc trace record: one order out of many spools, made by hand here."""

import struct

import pytest
from tracing import COUNTS, call, info, replay, trace_is_built

pytestmark = trace_is_built

MALLOC, CALLOC, ALIGNED, FREE, OLD, NEW = range(1, 7)
PAGE = 4096
LAST = 1 << 62  # a spool of the program that began latest is the one that counts


@pytest.fixture
def packed(tmp_path):
    """Packs a spool made by hand: lists of (time, call, address, size) of threads, or None for a hole; replays it."""

    def pack(*chunks, stopped_at=0):
        header = struct.pack("<QQIiiiQIiQ", 0x316c6f6f707368, LAST, PAGE, 0, 0, 0, PAGE * (1 + len(chunks)),
                             len(chunks), 0, stopped_at).ljust(PAGE, b"\0")
        spool = header
        for number, records in enumerate(chunks, 1):
            body = b"".join(struct.pack("<QQQ", at, address, size | call << 48)
                            for at, call, address, size in records or [])
            begin = struct.pack("<IIII", 0x6b6e6863, number, 1, len(records)) if records is not None else b""
            spool += (begin + body).ljust(PAGE, b"\0")
        (tmp_path / "spool").write_bytes(spool)
        writer = tmp_path / "writer.py"
        writer.write_text(
            "import os, pathlib, struct\n"
            f"spool = bytearray(pathlib.Path({str(tmp_path / 'spool')!r}).read_bytes())\n"
            "spool[20:24] = struct.pack('<i', os.getpid())\n"
            "(pathlib.Path(os.environ['HM_TRACE_SPOOLS']) / 'by-hand').write_bytes(spool)\n")
        file = tmp_path / "it.hmtrace"
        ending = call("record", "-o", file, "--", "/usr/bin/python3", writer)
        assert ending.returncode == 0, ending
        done, said = replay(file), info(file)
        assert [done[key] for key in (*COUNTS, "never_freed")] == [said[key] for key in (*COUNTS, "never_freed")]
        return said

    return pack


def test_equal_stamps_are_put_in_an_order_that_can_be(packed):
    """A coarse clock: thread 2 makes a block that 1 frees, 1 gets its address again and 3 frees it, all at one time."""
    said = packed([(9, FREE, 16, 0), (9, MALLOC, 16, 8)], [(9, MALLOC, 16, 8)], [(9, FREE, 16, 0)])
    assert (said["mallocs"], said["frees"], said["never_freed"]) == (2, 2, 0)
    assert said["foreign_frees"] == said["implied_frees"] == 0 and said["max_in_use"] == 8


def test_a_realloc_lets_go_of_the_old_address_before_it_has_the_new(packed):
    said = packed([(1, MALLOC, 16, 8), (2, OLD, 16, 0), (5, NEW, 32, 50)], [(3, MALLOC, 16, 8), (4, FREE, 16, 0)],
                  [(6, FREE, 32, 0)])
    assert (said["mallocs"], said["frees"], said["reallocs"], said["cross_thread_frees"]) == (2, 2, 1, 1)
    assert said["foreign_frees"] == said["implied_frees"] == said["never_freed"] == 0


def test_a_realloc_that_the_process_did_not_survive_changed_nothing(packed):
    said = packed([(1, MALLOC, 16, 8), (2, OLD, 16, 0)], [(3, FREE, 16, 0)])
    assert (said["mallocs"], said["frees"], said["reallocs"], said["foreign_frees"]) == (1, 1, 0, 0)


def test_a_block_of_no_size_is_a_block(packed):
    """An allocator may give one out for realloc(block, 0) too; another must not lose it in the replay."""
    said = packed([(1, MALLOC, 16, 0), (2, OLD, 16, 0), (3, NEW, 16, 0), (4, FREE, 16, 0)])
    assert (said["mallocs"], said["frees"], said["reallocs"], said["never_freed"]) == (1, 1, 1, 0)


def test_what_comes_after_the_stop_does_not_count(packed):
    """One thread found no room at 5; what others did later would be half of the truth."""
    said = packed([(1, MALLOC, 16, 8), (2, MALLOC, 32, 8)], [(3, FREE, 16, 0), (6, MALLOC, 32, 8)], stopped_at=5)
    assert (said["mallocs"], said["frees"], said["implied_frees"]) == (2, 1, 0)


def test_what_happens_beside_the_record_is_harmless(packed):
    said = packed([(1, FREE, 16, 0), (2, OLD, 32, 0), (3, NEW, 48, 10), (4, MALLOC, 48, 20), (5, FREE, 48, 0)])
    assert (said["mallocs"], said["frees"], said["reallocs"]) == (2, 2, 0)
    assert (said["foreign_frees"], said["implied_frees"]) == (2, 1)


def test_a_hole_between_chunks_is_stepped_over(packed):
    said = packed([(1, MALLOC, 16, 8)], None, [(2, FREE, 16, 0)])
    assert (said["mallocs"], said["frees"], said["threads"]) == (1, 1, 2)
