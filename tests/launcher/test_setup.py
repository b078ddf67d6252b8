"""What set-up says before it works, and what it refuses to begin: on a copy of the launcher, with next to no tools."""

import fcntl
import os
import pty
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from threading import Timer

import pytest
from conftest import ROOT

PLAIN = ("sh awk cat cmp cp cut date dirname dpkg-query env flock getent grep id mkdir mv nproc printf readlink rm sed sleep stat "
         "tail timeout touch tr true uname").split()
NOBODY = 65534


@pytest.fixture
def tree():
    """A source tree as far as set-up looks at it, where everybody may read."""
    folder = Path(tempfile.mkdtemp(prefix="hmalloc-launcher-"))
    folder.chmod(0o755)
    for name in ("hmalloc", "CMakeLists.txt"):
        shutil.copy(ROOT / name, folder)
    for name in ("lab/shell", "lab/help"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(ROOT / "lab/requirements.lock", folder / "lab")
    (folder / "bin").mkdir()
    for name in PLAIN:
        (folder / "bin" / name).symlink_to(shutil.which(name))
    yield folder
    shutil.rmtree(folder)


def tool(tree: Path, name: str, script: str) -> None:
    path = tree / "bin" / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def launch(tree: Path, *words: str, user: int | None = None, **environment: str) -> subprocess.CompletedProcess:
    own = {"PATH": str(tree / "bin"), "HOME": str(tree)} | environment
    return subprocess.run([tree / "hmalloc", *words], env=own, user=user, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=300)


def refused(run: subprocess.CompletedProcess) -> str:
    """The one line with which it was refused."""
    assert (run.returncode, run.stdout) == (2, ""), run
    (line,) = run.stderr.splitlines()
    return line


# ---- Packages. ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("said, message", [
    ("E: Unable to locate package cmake", "the whole log: "),
    ("Temporary failure resolving 'a.mirror'", "installing packages: there is no connection to the network"),
])
def test_packages_are_named_before_they_are_installed(tree, said, message):
    tool(tree, "sudo", '"$@"')
    tool(tree, "apt-get", f'echo "$@" >>{tree}/asked; echo "{said}"; exit 1')
    lines = launch(tree, "run", "true").stderr.splitlines()
    assert lines[0] == ("hmalloc: missing: g++ gcc cmake ninja-build; installing that with apt-get "
                        "(HMALLOC_INSTALL_PACKAGES=0 forbids it)")
    assert lines[1] == "hmalloc: installing packages ... failed" and message in lines[-1]
    assert "install --no-install-recommends g++ gcc cmake ninja-build" in (tree / "asked").read_text()


def test_nothing_is_installed_where_that_is_forbidden(tree):
    tool(tree, "apt-get", f"touch {tree}/asked")
    line = refused(launch(tree, "run", "true", HMALLOC_INSTALL_PACKAGES="0"))
    assert line == "hmalloc: please install g++ gcc cmake ninja-build: HMALLOC_INSTALL_PACKAGES=0 forbids me to"
    assert not (tree / "asked").exists()


def test_without_a_network_the_python_tools_say_so(tree):
    tool(tree, "python3", f'exec {shutil.which("python3")} "$@"')
    with socket.socket() as deaf:  # nobody answers at a port that somebody has and does not listen at
        deaf.bind(("127.0.0.1", 0))
        index = f"http://127.0.0.1:{deaf.getsockname()[1]}/"
        run = launch(tree, "doctor", "1", PIP_INDEX_URL=index, PIP_CONFIG_FILE="/dev/null")
    assert run.returncode == 2
    assert "setting up the Python tools: there is no connection to the network" in run.stderr.splitlines()[-1]
    assert len(run.stderr.splitlines()) == 2


def test_the_tools_do_without_the_packages_of_the_laboratory(tree):
    script = f"lab={tree}/lab state={tree}; . {tree}/lab/shell/setup.sh; locked"
    tools, everything = (subprocess.run(["sh", "-c", f"{script} {part}"], capture_output=True, text=True, check=True).stdout
                         for part in ("tools", "lab"))
    assert everything.startswith(tools) and "\ntyper==" in tools and "\npytest==" in tools
    assert "\nscipy==" not in tools and "\nscipy==" in everything


# ---- Folders. -------------------------------------------------------------------------------------------------------


def test_a_path_with_a_space_is_refused(tree):
    shutil.copytree(tree, tree / "a folder", symlinks=True)
    line = refused(launch(tree / "a folder", "run", "true"))
    assert line.startswith(f"hmalloc: {tree}/a folder: has a space or a colon in its path")
    assert not (tree / "a folder/build").exists()


def test_a_copied_tree_is_refused(tree):
    (tree / "build/release").mkdir(parents=True)
    (tree / "build/release/CMakeCache.txt").write_text("CMAKE_HOME_DIRECTORY:INTERNAL=/its/origin\n")
    line = refused(launch(tree, "run", "true"))
    assert line.startswith(f"hmalloc: {tree}/build/release: was built in /its/origin, of which this is a copy")


def test_a_tree_that_is_reached_by_a_link_is_no_copy(tree):
    link = tree.with_name(tree.name + "-link")
    link.symlink_to(tree)
    (tree / "build/release").mkdir(parents=True)
    (tree / "build/release/CMakeCache.txt").write_text(f"CMAKE_HOME_DIRECTORY:INTERNAL={link}\n")
    line = refused(launch(tree, "run", "true", HMALLOC_INSTALL_PACKAGES="0"))
    link.unlink()
    assert line.startswith("hmalloc: please install g++")


@pytest.fixture
def installed(tree):
    """The launcher as it is installed, and an empty folder for what it keeps."""
    (tree / "usr/share/hmalloc").mkdir(parents=True)
    (tree / "lab").rename(tree / "usr/share/hmalloc/lab")
    (tree / "hmalloc").rename(tree / "bin/hmalloc")
    (tree / "usr/bin").mkdir()
    (tree / "bin/hmalloc").rename(tree / "usr/bin/hmalloc")
    (tree / "hmalloc").symlink_to("usr/bin/hmalloc")
    return tree


@pytest.mark.skipif(os.getuid() != 0, reason="somebody else's folder takes root to make")
@pytest.mark.parametrize("words", [("doctor", "1"), ("run", "--allocator", "mimalloc2", "true")])
def test_what_somebody_else_keeps_is_not_run(installed, words):
    planted = installed / "hmalloc-of-another"
    (planted / "hmalloc/venv/bin").mkdir(parents=True)
    for file in (planted / "hmalloc/venv/bin/python", planted / "hmalloc/peers/mimalloc2/libmimalloc2.so"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"#!/bin/sh\ntouch {installed}/run\n")
        file.chmod(0o755)
    for path in (planted, *planted.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    run = launch(installed, *words, XDG_CACHE_HOME=str(planted))
    assert run.returncode == 2 and not (installed / "run").exists()
    assert "not root's; please set HOME or XDG_CACHE_HOME" in run.stderr or "no allocator mimalloc2" in run.stderr


def test_without_a_home_the_users_own_is_taken(installed):
    tool(installed, "getent", f'echo "me:x:0:0::{installed}/home:/bin/sh"')
    own = {"PATH": str(installed / "bin"), "HMALLOC_INSTALL_PACKAGES": "0"}
    subprocess.run([installed / "hmalloc", "doctor", "1"], env=own, capture_output=True)
    assert (installed / "home/.cache/hmalloc").is_dir()


def test_the_version_of_a_library_that_cannot_be_preloaded_is_not_known(installed):
    (installed / "usr/lib").mkdir()
    (installed / "usr/lib/libhmalloc.so.0").touch()
    shutil.copytree(installed, installed / "a folder", symlinks=True)
    line = refused(launch(installed / "a folder", "--version"))
    assert line == f"hmalloc: {installed}/a folder/usr/lib/libhmalloc.so.0: cannot be preloaded, its path has a space or a colon"


@pytest.mark.parametrize("foreign", ["", "release"])
def test_what_somebody_else_has_built_is_refused(tree, foreign):
    folder = tree / "build" / foreign
    folder.mkdir(parents=True)
    (tree / "build").chmod(0o777)
    folder.chmod(0o555)
    line = refused(launch(tree, "run", "true", user=NOBODY if os.getuid() == 0 else None))
    assert line.startswith(f"hmalloc: {folder}: is ") and "may not write there" in line


def test_a_tree_where_nothing_may_be_written_is_refused(tree):
    tree.chmod(0o555)
    line = refused(launch(tree, "run", "true", user=NOBODY if os.getuid() == 0 else None))
    tree.chmod(0o755)
    assert line.startswith(f"hmalloc: {tree}/build: cannot be made by ")


def test_who_waits_for_another_build_says_so(tree):
    (tree / "build").mkdir()
    with open(tree / "build/lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        release = Timer(30, fcntl.flock, (lock, fcntl.LOCK_UN))  # if it says nothing
        release.start()
        own = {"PATH": str(tree / "bin"), "HMALLOC_INSTALL_PACKAGES": "0"}
        with subprocess.Popen([tree / "hmalloc", "run", "true"], env=own, stderr=subprocess.PIPE, text=True) as waiting:
            line = waiting.stderr.readline()
            assert line == f"hmalloc: waiting for another hmalloc, which is building in {tree}/build\n"
            assert waiting.poll() is None
            release.cancel()
            fcntl.flock(lock, fcntl.LOCK_UN)
            assert waiting.stderr.read().startswith("hmalloc: please install ") and waiting.wait() == 2


# ---- What is built. -------------------------------------------------------------------------------------------------

TOOL = """
set -eu
baselines='one_lock hoard' from_source=yes lab=- library=- natives=- venv=$1/venv state=$1
need_python() { :; }
need_library() { :; }
require_program() { :; }
alone() { echo "$*"; }
need_baselines() { echo baselines; }
. "$1/lab/shell/tools.sh"
exec_python() { :; }
in_python() { :; }
shift
tool "$@"
"""
# All that would be installed or built is said instead.
BENCH = """
set -eu
baselines='' from_source=yes here=$2 lab=$2/lab library=$1/library natives=- venv=$2/build/venv state=$1
for name in need_source need_python need_lab; do eval "$name() { :; }"; done
for name in alone need_library need_workloads need_pdes wish_peers wish_servers; do eval "$name() { echo $name; }"; done
. "$2/lab/shell/tools.sh"
exec_python() { :; }
shift 2
case $1 in bench) shift; bench "$@" ;; *) tool "$@" ;; esac
"""


@pytest.mark.parametrize("words, built", [
    ("compare -- grep hoard checked", []), ("compare grep --allocator hoard", []), ("compare -n 3 --for 1s grep hoard", []),
    ("compare --input hoard --json=checked ls", []), ("doctor -- hoard", []), ("compare", []), ("compare --allocator", []),
    ("compare --allocator hoard ls", ["baselines"]), ("compare -n 3 --against=glibc,one_lock -- ls", ["baselines"]),
    ("compare --show-output --allocator checked,hoard ls", ["build checked", "baselines"]),
    ("compare --allocator hmalloc --against checked", ["build checked"]),
    ("compare --allocator hardened ls", ["build hardened"])])
def test_what_the_programs_own_words_name_is_not_built(tree, words, built):
    run = subprocess.run(["sh", "-c", TOOL, "sh", tree, *words.split()], capture_output=True, text=True)
    assert (run.returncode, run.stdout.splitlines(), run.stderr) == (0, built, "")


@pytest.mark.parametrize("words, message", [
    ("bench paper --only x", "bench paper: No such option: --only"), ("bench mixes --rounds 0", "bench mixes: Invalid value"),
    ("bench quick --families nobody", "no family nobody; there are "), ("bench full --workloads none", "no cell none; "),
    ("bench engine --only what", "--only what: no such part; "), ("compare --frobnicate ls", "compare: No such option: ")])
def test_wrong_words_are_told_before_anything_is_built(tree, words, message):
    run = subprocess.run(["sh", "-c", BENCH, "sh", tree, ROOT, *words.split()], capture_output=True, text=True)
    line = refused(run)
    assert line.startswith(f"hmalloc: {message}")


@pytest.mark.parametrize("words, built", [
    ("quick --rounds 3", ["wish_peers", "need_workloads"]),
    ("paper", ["wish_peers", "wish_servers", "need_workloads", "need_pdes"]),
    ("paper --families= --workloads=", ["wish_peers", "wish_servers", "need_workloads", "need_pdes"]),
    ("paper --families simulation", ["wish_peers", "need_workloads", "need_pdes"]),
    ("full --families=local,servers", ["wish_peers", "wish_servers", "need_workloads"]),
    ("full --families servers,simulation --workloads pcs:threads=1", ["wish_peers", "need_workloads", "need_pdes"]),
    ("paper --workloads larson,redis", ["wish_peers", "wish_servers", "need_workloads"])])
def test_right_words_are_built_for(tree, words, built):
    run = subprocess.run(["sh", "-c", BENCH, "sh", tree, ROOT, "bench", *words.split()], capture_output=True, text=True)
    assert (run.returncode, run.stdout.splitlines(), run.stderr) == (0, built, "")


INSTALL = """
set -eu
install_allowed=1 from_source=yes lab=- state=- venv=- library=- natives=- here=$1
. "$1/lab/shell/setup.sh"
. "$1/lab/shell/install.sh"
for name in need_source wish wish_metis; do eval "$name() { :; }"; done
install_missing() { echo "packages $*"; }
alone() { echo "$*: $(targets_of "$2")"; }
has_rule() { :; }
step() { shift 2; "$@"; }
cmake() { echo "cmake $*"; }
id() { echo 1; }
shift
install "$@"
"""


def test_the_engine_is_installed_alone(tree):
    def said(*words):
        run = subprocess.run(["sh", "-c", INSTALL, "sh", tree, *words, "--prefix", tree / "there"], capture_output=True, text=True)
        assert (run.returncode, run.stderr) == (0, "")
        return run.stdout.splitlines()

    copied = f"cmake --install {tree}/build/release --prefix {tree}/there"
    packages, built, *put = said("--engine")
    assert packages.startswith("packages lib") and put == [f"{copied} --component {part}" for part in
                                                           ("runtime", "development", "pdes")]
    assert built == "build engine: hmalloc hmalloc_static hmalloc-man pdes/all"
    built, *put = said()
    assert put == [copied] and built.startswith("build install: ") and "hmalloc-baselines" in built


@pytest.mark.parametrize("with_mpi, has_mpi, is_configured", [(False, False, True), (True, False, False), (True, True, True)])
def test_the_engine_is_configured_anew_when_mpi_has_come(tree, with_mpi, has_mpi, is_configured):
    (tree / "build" / "release").mkdir(parents=True, exist_ok=True)
    (tree / "build" / "release" / "CMakeCache.txt").write_text(f"HM_MPI:INTERNAL={'TRUE' if has_mpi else 'OFF'}\n")
    tools = tree / "tools"
    tools.mkdir()
    (tools / "grep").symlink_to(shutil.which("grep"))
    if with_mpi:
        (tools / "mpicc").symlink_to("/bin/true")
    script = INSTALL.replace('install "$@"', f'PATH={tools}; cd "$here"; configured engine')
    run = subprocess.run(["sh", "-c", script, "sh", tree], capture_output=True, text=True)
    assert (run.returncode == 0, run.stderr) == (is_configured, "")


# ---- Progress. ------------------------------------------------------------------------------------------------------

STEP = """
set -eu
say() { printf 'hmalloc: %s\\n' "$*" >&2; }
die() { code=$1; shift; say "$@"; exit "$code"; }
from_source='' state=$1/state
. "$1/lab/shell/steps.sh"
progress_after=0
step building log sh -c "$2"
"""


def step(tree: Path, script: str, **how) -> subprocess.CompletedProcess:
    return subprocess.run(["sh", "-c", STEP, "sh", tree, script], **how or {"capture_output": True, "text": True})


def test_a_build_says_now_and_then_how_far_it_is(tree):
    run = step(tree, "echo [1/2] a.cc; echo warning; echo [2/2] b.cc")
    assert (run.returncode, run.stdout) == (0, "")
    assert run.stderr.splitlines()[:2] == ["hmalloc: building ...", "hmalloc: building ... [1/2]"]
    assert run.stderr.splitlines()[2].startswith("hmalloc: building ... [2/2] done (")
    assert (tree / "state/logs/log").read_text() == "[1/2] a.cc\nwarning\n[2/2] b.cc\n"


def test_on_a_terminal_it_does_so_in_one_line(tree):
    ours, its = pty.openpty()
    step(tree, "echo [1/2] a.cc; echo [2/2] b.cc", stderr=its, check=True)
    shown = ""
    while "\n" not in shown:  # a terminal hands over what it has so far
        shown += os.read(ours, 1000).decode()
    assert "\rhmalloc: building ... [1/2]\rhmalloc: building ... [2/2] done (" in shown and shown.count("\n") == 1


def test_a_step_that_fails_shows_the_end_of_its_log(tree):
    run = step(tree, "echo [1/2] a.cc; echo its error >&2; exit 3")
    assert run.returncode == 2 and "  its error" in run.stderr.splitlines()
    assert run.stderr.splitlines()[-1] == f"hmalloc: the whole log: {tree}/state/logs/log"
