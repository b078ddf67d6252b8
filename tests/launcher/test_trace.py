"""hmalloc trace, as far as it is the launcher's: which allocator, and where it may be named."""

import json

import pytest


@pytest.fixture(scope="module")
def trace(hmalloc, tmp_path_factory):
    path = tmp_path_factory.mktemp("trace") / "ls.hmtrace"
    recorded = hmalloc("trace", "record", "-o", path, "--", "ls", "/")
    assert recorded.returncode == 0 and path.is_file(), recorded.stderr
    return path


@pytest.mark.parametrize("before, after", [(["--allocator", "hmalloc"], []), ([], ["--allocator=hmalloc"])])
def test_replay_runs_on_the_allocator_that_is_named(hmalloc, trace, before, after):
    replayed = json.loads(hmalloc("trace", "replay", *before, trace, "--json", *after).stdout)
    assert replayed["malloc_library"].endswith("build/release/libhmalloc.so")
    recorded = json.loads(hmalloc("trace", "info", trace, "--json").stdout)
    assert (replayed["mallocs"], replayed["frees"]) == (recorded["mallocs"], recorded["frees"])


def test_record_names_the_allocator_of_the_program(hmalloc, tmp_path):
    path = tmp_path / "true.hmtrace"
    hmalloc("trace", "record", "--allocator", "hmalloc", "-o", path, "--", "ls", "/")
    assert b"libhmalloc.so" in path.read_bytes().split(b"\n")[1]


def test_what_comes_after_the_dashes_is_the_program_s(hmalloc, tmp_path):
    path = tmp_path / "echo.hmtrace"
    said = hmalloc("trace", "record", "-o", path, "--", "echo", "--allocator", "nobody", "-h")
    assert said.stdout == "--allocator nobody -h\n"
