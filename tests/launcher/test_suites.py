"""hmalloc test: which suite, in which order, and what a limit of time does; ctest and all building are played."""

import json
import re
import subprocess

import pytest
from conftest import ROOT

# ctest's own words, as it says them of three tests.  A test that is called `slow` outlives the time.
PLAYED = r"""
set -eu
say() { printf 'hmalloc: %s\n' "$*" >&2; }
die() { code=$1; shift; say "$@"; exit "$code"; }
have() { command -v "$1" >/dev/null 2>&1; }
need_source() { :; }
from_source='' here=$1 lab=$2 state=$1
. "$lab/shell/steps.sh"
. "$lab/shell/test.sh"
need_python() { echo tools; }
need_tests() { echo "built $1"; }
need_everything() { echo "built everything"; }
build_preset() { [ "$1" != "${broken:-}" ] || exit 2; echo "built $1"; }
build_cross() { echo "built aarch64: $*"; }
install_missing() { :; }
nproc() { echo 2; }
ctest() {
  case $1 in
    --help) command ctest --help; return ;;
    -N) for name in ${tests-room.a room.b other.c}; do echo "  Test  #1: $name  # GetParam() = 1"; done; return ;;
  esac
  echo "ctest $*"
  eval "${results:-}"
}
mkdir -p "$logs"
shift 2
tests "$@"
"""


@pytest.fixture
def play(tmp_path):
    def call(*words, **variables):
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/bin"} | variables
        return subprocess.run(["sh", "-c", PLAYED, "sh", tmp_path, ROOT / "lab", *words], env=environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)

    return call


def stages(run):
    return re.findall(r"^hmalloc: (\w+): testing (\w+)$", run.stderr, re.MULTILINE)


def test_each_suite_builds_and_tests_what_is_its_own(play):
    quick, default, rest = (play(*words) for words in (["quick"], [], ["rest"]))
    assert [run.returncode for run in (quick, default, rest)] == [0, 0, 0]
    assert "built quick" in quick.stdout and "-L ^quick$ -LE ^(later|baselines|slow)$" in quick.stdout
    assert "built default" in default.stdout and "--preset release -LE ^(later|baselines|slow)$\n" in default.stdout
    assert "built everything" in rest.stdout and "-L ^(later|baselines)$ -LE ^slow$" in rest.stdout


def test_all_goes_through_the_stages_from_the_one_that_is_named(play):
    run = play("all")
    assert run.returncode == 0, run.stderr
    assert stages(run) == [("default", "release"), ("rest", "release"), ("cross", "aarch64"), ("asan", "asan"), ("tsan", "tsan"),
                           ("aarch64", "aarch64"), *(("slow", preset) for preset in ("release", "asan", "tsan", "aarch64"))]
    assert stages(play("all", "--from=aarch64"))[0] == ("aarch64", "aarch64")


def test_arguments_of_ctest_arrive_unchanged(play):
    assert play("quick", "-R", "a b|it's $HOME").stdout.splitlines()[-1].endswith(" -R a b|it's $HOME")
    assert "-LE ^(later|baselines|slow)$|stress\n" in play("-LE", "stress").stdout


@pytest.mark.parametrize("words, message", [
    (["--frob"], "test: neither hmalloc nor ctest has an option --frob (hmalloc test --help)"),
    (["quick", "unit"], "test: what is unit? (hmalloc test --help)"),
    (["--for", "long"], "test: --for: 'long' is no time (30s, 10m, 2h)"),
    (["--for=24h"], "test: --for: less than a day, please"),
    (["all", "--from", "fast"], "test: --from: all has no stage fast (default rest cross asan tsan aarch64 slow)"),
    (["--from"], "test: --from needs a value (hmalloc test --help)"),
])
def test_what_is_wrong_is_said_before_any_work(play, words, message):
    run = play(*words)
    assert (run.returncode, run.stdout, run.stderr) == (2, "", f"hmalloc: {message}\n")


@pytest.mark.parametrize("suite", ["quick", "all"])
def test_a_name_that_no_test_has_is_an_error(play, suite):
    run = play(suite, "-R", "frob", tests="")
    assert run.returncode == 1 and f"no test of {suite} is what you asked for" in run.stderr


def test_a_failure_fails_and_does_not_end_all(play):
    run = play("all", results='case $* in *"-L ^(later"*) return 8 ;; esac')
    assert run.returncode == 1 and run.stderr.endswith("hmalloc: failed in rest:\nhmalloc: tests failed: rest\n") and len(stages(run)) == 10
    run = play("all", "--from", "asan", broken="asan")
    assert run.returncode == 1 and "tests failed: asan" in run.stderr and ("tsan", "tsan") in stages(run)


def test_a_stage_that_cannot_be_built_says_why_and_nothing_else(play):
    run = play("asan", broken="asan")
    assert (run.returncode, run.stderr) == (2, "")


# Played by the real ctest.
REAL = r"""
[ "$stage" = default ] || return 0
last_word=
for word; do case $last_word in --stop-time) stop=$word ;; esac; last_word=$word; done
command ctest --test-dir "$here/real" -j "$(nproc)" -O "$logs/ctest-release.log" ${stop:+--stop-time "$stop"}
"""


@pytest.mark.parametrize("other, code", [("true", 0), ("false", 1), ("sleep 9", 1)])
def test_what_the_time_breaks_off_has_not_failed_and_is_named(play, tmp_path, other, code):
    programs = {"room.a": ("true", 60), "other.c": (other, 1), "room.b": ("sleep 60", 90), "room.d": ("sleep 60", 90)}
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "CTestTestfile.cmake").write_text("".join(
        f"add_test({name} /bin/{command})\nset_tests_properties({name} PROPERTIES TIMEOUT {limit})\n"
        for name, (command, limit) in programs.items()))
    run = play("all", "--for", "12s", results=REAL, tests=" ".join((*programs, "room.e")))
    assert run.returncode == code, run.stderr
    assert stages(run) == [("default", "release")]
    assert "hmalloc: not reached in release: room.b room.d room.e" in run.stderr.splitlines()
    missed = " default rest cross asan tsan aarch64 slow"
    assert f"hmalloc: the time is over; not reached, or not to the end:{missed if code == 0 else missed[8:]}\n" in run.stderr
    assert run.stderr.endswith("hmalloc: failed in default: other.c\nhmalloc: tests failed: default\n") == (code == 1)


def test_what_a_failed_test_said_last_is_said_again_at_the_end(play, tmp_path):
    (tmp_path / "real").mkdir()
    commands = {"room.a": "echo of another; false", "other.c": "seq 30; echo '  why  '; false", "room.b": "sleep 1; echo passed"}
    (tmp_path / "real" / "CTestTestfile.cmake").write_text("".join(
        f'add_test({name} sh -c "{command}")\n' for name, command in commands.items()))
    run = play("all", results=REAL.replace("-j", "--output-on-failure -j"), tests=" ".join(commands))
    told = "".join(f"hmalloc:   {number}\n" for number in range(12, 31))
    assert "hmalloc: failed in default: room.a other.c\n" in run.stderr or "hmalloc: failed in default: other.c room.a\n" in run.stderr
    assert f"{told}hmalloc:     why  \n" in run.stderr and "hmalloc:   11\n" not in run.stderr
    assert "hmalloc:   of another\n" in run.stderr and "passed" not in run.stderr.partition("failed in")[2]


def test_a_build_ends_with_the_time(tmp_path):
    script = PLAYED.replace("shift 2\n", "deadline=$(($(date +%s) + 1)); step building log in_time sleep 60; exit\n")
    run = subprocess.run(["sh", "-c", script, "sh", tmp_path, ROOT / "lab"], capture_output=True, text=True, timeout=300)
    assert run.returncode == 75 and run.stderr == "hmalloc: building ... broken off\n"


def test_the_labels_divide_all_tests():
    """What `hmalloc test` runs is neither slow nor of a room that it has not built; quick is a part of it."""
    shown = subprocess.run(["ctest", "--preset", "release", "--show-only=json-v1"], cwd=ROOT, capture_output=True, text=True)
    labels = {test["name"]: {label for entry in test["properties"] if entry["name"] == "LABELS" for label in entry["value"]}
              for test in json.loads(shown.stdout)["tests"]}
    rooms = {name.split(".")[0]: found for name, found in labels.items()}
    assert all("quick" in rooms[room] for room in ("unit", "stress", "misuse", "codegen"))
    assert all("later" in rooms[room] for room in ("fuzz", "formal", "integration", "tools-store"))
    assert not labels["conformance"] & {"quick", "later", "slow"} and "later" in labels["conformance_is_fair"]
    assert "baselines" in labels["conformance.hoard"]
