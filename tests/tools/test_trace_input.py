"""hmalloc trace: the malloc lab's format is read, and bad input is refused in one line."""

import re

import pytest
from tracing import COUNTS, OLD_KERNEL, call, info, programs, record, refused, replay, trace_is_built  # noqa: F401

pytestmark = trace_is_built


@pytest.mark.parametrize("name", ["it.rep", "it.txt"])
def test_rep_files_are_read(tmp_path, name):
    file = tmp_path / name
    file.write_text("20000\n3\n7\n1\na 0 100\na 1 200\nr 0 1000\nf 1\na 1 10\nf -1\nf 0\n")
    said = info(file)
    for counts in (said, replay(file)):
        assert [counts[key] for key in COUNTS] == [3, 2, 1]
    assert said["max_in_use"] == 1200 and said["never_freed_bytes"] == 10 and said["unit"] == "operations"


@pytest.mark.parametrize("text, line, words", [
    *((f"20000\n3\n7\n1\n{operations}\n", line, words) for operations, line, words in (
        ("a 0 100\na 1", 6, "a size"), ("x 0 100", 5, "'x'"), ("a 0 100\na 0 100", 6, "already"),
        ("f 0", 5, "not allocated"), ("a 0 100 5", 5, "'5'"), ("a 0 -100", 5, "'-100'"))),
    ("20000\nthree\n7\n1\n", 2, "'three'"),
    ("20000\n3\n2\n1\na 0 100\n", 6, "truncated"),
    ("20000\n3\n1\n1\na 0 100\nf 0\n", 6, "more operations"),
])
def test_a_bad_rep_line_is_named(tmp_path, text, line, words):
    file = tmp_path / "it.rep"
    file.write_text(text)
    for command in ("info", "replay"):
        assert refused(call(command, file), file, f"line {line}: ", words)


@pytest.mark.parametrize("how, words", [
    (lambda whole: whole[:-100], "truncated"),
    (lambda whole: whole[:len(whole) // 2], "truncated"),
    (lambda whole: whole[:20], "truncated"),
    (lambda whole: whole[:-50] + bytes([whole[-50] ^ 1]) + whole[-49:], "damaged"),
    (lambda whole: whole.replace(b"hmalloc trace 1\n", b"hmalloc trace 9\n"), "version 9"),
    (lambda whole: re.sub(rb'"frees":\d+', b'"frees":1', whole), "damaged"),
    (lambda whole: re.sub(rb'"requested":\d+', b'"requested":3' + b"8" * 60, whole), "not whole"),
    (lambda whole: whole.replace(b'{"allocator"', b'["allocator"'), "damaged"),
    (lambda whole: b"\x7fELF" + whole, "not a trace"),
    (lambda whole: b"", "not a trace"),
])
def test_a_broken_trace_is_refused(record, how, words):
    file = record("calls", "hand-over", 1000).file
    file.write_bytes(how(file.read_bytes()))
    for command in ("info", "replay"):
        assert refused(call(command, file), file, words)


def test_the_events_carry_a_checksum(record):
    """Bit 2 of a zstd frame's descriptor: no changed byte goes unnoticed."""
    frame = record("calls", "make", 10).file.read_bytes().split(b"\n", 2)[2]
    assert frame[:4] == bytes.fromhex("28b52ffd") and frame[4] & 4


def test_missing_files_and_folders(tmp_path):
    for command in ("info", "replay"):
        assert refused(call(command, tmp_path / "none.hmtrace"), "none.hmtrace", "No such file")
        assert refused(call(command, tmp_path), tmp_path, "folder")


def test_programs_that_cannot_be_run(tmp_path):
    plain = tmp_path / "plain"
    plain.write_text("text")
    file = tmp_path / "it.hmtrace"
    assert refused(call("record", "-o", file, "--", "no-such-program"), "no-such-program", "not found", code=127)
    assert refused(call("record", "-o", file, "--", plain), plain, "Permission denied", code=126)
    assert refused(call("record", "-o", tmp_path / "none" / "it.hmtrace", "--", "true"), "No such file")
    assert [path.name for path in tmp_path.iterdir()] == ["plain"]


@pytest.mark.skipif(not OLD_KERNEL.exists(), reason="old_kernel is not built")
def test_a_kernel_that_is_too_old_is_named(tmp_path):
    ending = call("record", "-o", tmp_path / "it.hmtrace", "true", through=[OLD_KERNEL])
    assert refused(ending, "Linux 5.14")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("what, code", [("make", 1), ("exit", 7)])
def test_a_static_program_cannot_be_recorded_and_its_own_failure_comes_first(record, what, code):
    recorded = record("static", what, 100, code=code)
    assert "nothing recorded" in recorded.ending.stderr and "statically" in recorded.ending.stderr
    assert not recorded.file.exists()


@pytest.mark.parametrize("words", [[], ["record"], ["info"], ["replay"], ["play", "x"], ["info", "--nonsense", "x"],
                                   ["replay", "x", "--repeats", "0"], ["record", "--limit", "some", "--", "true"],
                                   ["record", "--limit", "5", "--", "true"]])
def test_wrong_usage(words):
    assert refused(call(*words), code=2)
