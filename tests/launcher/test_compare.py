"""hmalloc compare: numbers that can be believed, and no verdict where there is none."""

import json
import time
from types import SimpleNamespace

import pytest
from conftest import ROOT


@pytest.fixture
def compare(hmalloc, tmp_path):
    def call(*arguments, **environment):
        file = tmp_path / "result.json"
        shown = hmalloc("compare", "--json", file, *arguments, **environment)
        assert shown.returncode == 0, shown.stderr
        return shown.stdout, json.loads(file.read_text())

    return call


def values(side, key):
    return [sample[key] for sample in side["samples"]]


def test_the_measurer_adds_next_to_nothing(compare, build):
    _, result = compare("-n", "2", "--", build("nothing.c", "nothing"))
    assert max(values(result["reference"], "peak_kib")) < 2500 and max(values(result["reference"], "wall_s")) < 30
    _, result = compare("-n", "2", "--allocator", "system", "--", build("nothing.c", "static", "-static"))
    assert max(values(result["reference"], "peak_kib")) < 1500


def test_both_allocators_are_run_told_apart_and_measured(compare, build):
    shown, result = compare("-n", "3", "--", build("touch.c", "touch"))
    reference, candidate = result["reference"], result["candidates"][0]
    assert reference["library"] is None and candidate["library"].rpartition("/")[2].startswith("libhmalloc.so")
    assert "hmalloc was in use: it reported itself" in shown
    for side in (reference, candidate):
        assert len(side["samples"]) == 3 and min(values(side, "peak_kib")) >= 32 * 1024
    assert max(values(reference, "peak_kib")) < 40 * 1024 and min(values(reference, "faults")) > 8000


def test_without_a_program_the_example_is_compared(compare, hmalloc):
    _, result = compare("-n", "1")
    assert result["command"][0].endswith("/hmalloc-pipeline")
    assert result["candidates"][0]["library"]
    assert "no program named" in hmalloc("compare", "-n", "1").stderr


def test_glibc_and_the_checked_library_go_by_their_names(compare):
    _, result = compare("-n", "1", "--against", "glibc", "--allocator", "checked", "--", "true")
    assert "libc.so" in result["reference"]["library"] and "/libhmalloc-checked.so" in result["candidates"][0]["library"]


def test_several_allocators_stand_in_one_table(compare, build, tmp_path):
    own = tmp_path / "libmine.so"
    own.symlink_to(ROOT / "build/release/libhmalloc.so")
    shown, result = compare("-n", "6", "--allocator", f"hmalloc,{own}", "--allocator", "checked", "--",
                            build("touch.c", "touch"))
    names = [side["name"] for side in result["candidates"]]
    assert names == ["hmalloc", "checked"]  # a link to hmalloc is hmalloc
    assert [len(side["samples"]) for side in result["candidates"]] == [6, 6]
    heads = shown[:shown.index("6 runs of each")].splitlines()
    assert [line.split()[0] for line in heads if line.startswith("  ") and "±" in line] == ["system", *names] * 5
    for name in names:
        assert f"{name} was in use: " in shown


def test_the_runs_of_several_are_interleaved_and_nobody_is_ahead_of_another_more_often(compare, tmp_path):
    log = tmp_path / "log"
    compare("-n", "6", "--allocator", "hmalloc,hardened", "--", "sh", "-c", f'echo "$LD_PRELOAD" >>{log}')
    name = {"": "system"}
    runs = [name.get(line) or line.rpartition("/lib")[2].partition(".so")[0] for line in log.read_text().splitlines()]
    rounds = [runs[at:at + 3] for at in range(3, len(runs), 3)]  # the first three are to warm up
    assert len(rounds) == 6 and all(sorted(each) == ["hmalloc", "hmalloc-hardened", "system"] for each in rounds)
    assert all(one == other[::-1] for one, other in zip(rounds[::2], rounds[1::2]))


def test_what_an_interval_does_not_exclude_is_not_shown(compare):
    shown, result = compare("-n", "6", "--allocator", "system", "--", "sh", "-c", "sleep 0.0$(date +%N | cut -c 1)")
    wall = result["candidates"][0]["ratios"]["wall"]
    assert (wall["low"] <= 1 <= wall["high"]) == (wall["verdict"] == "not shown")
    assert "where that includes 1, a difference is not shown" in shown.replace("\n", " ")


def test_few_runs_prove_nothing(compare):
    shown, result = compare("-n", "5", "--", "true")
    assert {ratio["verdict"] for ratio in result["candidates"][0]["ratios"].values() if ratio} == {"too few runs"}
    assert "Fewer than 6 runs" in shown


def test_a_real_difference_is_found(compare, build):
    _, result = compare("-n", "6", "--against", "system", "--", "sh", "-c",
                        'case $LD_PRELOAD in *libhmalloc*) exec "$0";; esac', build("touch.c", "touch"))
    assert result["candidates"][0]["ratios"]["peak"]["low"] > 5


def test_wall_and_cpu_time_are_told_apart(compare):
    _, result = compare("-n", "1", "--", "sleep", "0.3")
    assert 0.3 <= values(result["reference"], "wall_s")[0] < 30 and values(result["reference"], "cpu_s")[0] < 0.2


def test_a_server_is_stopped_after_its_time(compare):
    began = time.monotonic()
    shown, result = compare("-n", "1", "--for", "300ms", "--", "sleep", "60")
    assert time.monotonic() - began < 50 and 0.3 <= values(result["reference"], "wall_s")[0] < 30
    assert "wall time" not in shown


SERVER = """
import signal, socket
listener = socket.create_server(("127.0.0.1", 0))
open("{port}", "w").write(str(listener.getsockname()[1]))
while True:
    listener.accept()[0].sendall(b"hello")
"""


def test_a_server_is_stopped_when_its_load_is_done(compare, tmp_path):
    port = tmp_path / "port"
    client = f"import socket; s = socket.create_connection(('127.0.0.1', int(open('{port}').read()))); s.recv(1)"
    # The number stands in the file a moment after the server listens, and that of the last one must not.
    load = f'until [ -s {port} ]; do sleep 0.05; done; sleep 0.2; /usr/bin/python3 -c "{client}" && rm {port}'
    shown, result = compare("-n", "1", "--load", load, "--", "/usr/bin/python3", "-c", SERVER.format(port=port))
    assert 0.2 <= values(result["candidates"][0], "load_s")[0] < 60
    assert "load time" in shown and "wall time" not in shown


@pytest.mark.parametrize("words, said", [
    (["--for", "5s", "--", "sh", "-c", "echo port taken >&2; exit 3"], ["ended by itself on system", "exit code 3", "port taken"]),
    (["--load", "echo no answer >&2; exit 4", "--", "/usr/bin/python3", "-c", SERVER.format(port="/dev/null")],
     ["hmalloc: --load ended with exit code 4\n  no answer\n"]),
    (["--", "sh", "-c", 'echo dying >&2; [ -z "$LD_PRELOAD" ] || kill -SEGV $$'],
     ["exit code 0 on system, killed by SIGSEGV on hmalloc", "dying"]),
    (["--allocator", "hmalloc,hardened", "--", "sh", "-c", "case $LD_PRELOAD in *hardened*) kill -SEGV $$;; esac"],
     ["exit code 0 on system, killed by SIGSEGV on hardened"])],
    ids=["a server that does not stay", "a load that fails", "a crash on one side", "a crash of one of several"])
def test_an_end_of_its_own_is_an_error(hmalloc, words, said):
    failed = hmalloc("compare", *words)
    assert failed.returncode == 1 and all(each in failed.stderr for each in said)


@pytest.mark.parametrize("end, said", [("exit 3", "ends with exit code 3"), ("kill -KILL $$", "is killed by SIGKILL")])
def test_the_same_failure_on_both_is_reported(compare, end, said):
    shown, _ = compare("-n", "1", "--", "sh", "-c", end)
    assert f"warning: The program {said} on both." in shown


def test_different_output_is_a_warning(hmalloc):
    shown = hmalloc("compare", "-n", "1", "--", "sh", "-c", "echo ${LD_PRELOAD:-none}")
    assert shown.returncode == 1
    assert "warning: What the program prints on hmalloc differs" in shown.stdout.replace("\n", " ")


def test_output_that_always_varies_is_not(compare):
    shown, _ = compare("-n", "1", "--", "sh", "-c", "echo $$; date +%N")
    assert "warning" not in shown


def test_a_program_out_of_reach_is_not_measured(hmalloc, build):
    failed = hmalloc("compare", "--", build("nothing.c", "static", "-static"))
    assert failed.returncode == 1 and "statically linked" in failed.stderr


@pytest.mark.parametrize("sight, said", [
    ("ended", "whether mine was in use is not known, so there is nothing to compare: the program ended before it could be looked at"),
    ("absent", "mine was not in use, so there is nothing to compare: it was never seen in the process")])
def test_what_was_not_seen_is_told_from_what_could_not_be(sight, said):
    from hmalloc_lab import compare
    from hmalloc_lab.errors import Failure
    from hmalloc_lab.run import Outcome, Sight

    mine = SimpleNamespace(name="mine", library="/lib/mine.so", is_hmalloc=False)
    with pytest.raises(Failure) as failure:
        compare._proof(mine, SimpleNamespace(served_by=None), (Outcome(0, False, {}, sight=Sight(sight)), None))
    assert str(failure.value) == said


def test_input_is_the_same_for_every_run(compare, script):
    text = script("one\ntwo\n", mode=0o644)
    shown, _ = compare("-n", "1", "--show-output", "--input", text, "--", "sh", "-c", "wc -l")
    assert shown.startswith("2\n2\n")


def test_variables_for_python_reach_the_program_alone(compare):
    shown, _ = compare("-n", "1", "--show-output", "--", "sh", "-c", "echo $PYTHONPATH", PYTHONPATH="/no/such")
    assert shown.startswith("/no/such\n")
