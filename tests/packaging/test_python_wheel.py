"""The wheel of packaging/python: made of a source distribution, installed as a user does, in a folder with a space in its name.

The libraries are those of the build, HMALLOC_BUILD; test_python_wheel_sources.py builds them anew.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("HMALLOC_BUILD", ROOT / "build/release"))
VERSION = re.search(r"VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text().split("project(hmalloc", 1)[1])[1]
NEEDS = "setuptools 77 or newer, which `hmalloc bench list` fetches with the laboratory's packages, is missing"


def environment(**variables):
    return {name: value for name, value in os.environ.items() if not name.startswith(("LD_", "HMALLOC_", "PYTHON"))} | variables


def must(*command, **options):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="session")
def sources(tmp_path_factory):
    """The source distribution."""
    setuptools = pytest.importorskip("setuptools", reason=NEEDS)
    if int(setuptools.__version__.split(".")[0]) < 77:
        pytest.skip(NEEDS)
    folder = tmp_path_factory.mktemp("sources")
    must(sys.executable, "-c", "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])", folder,
         cwd=ROOT / "packaging/python", env=environment())
    return folder / f"hmalloc-{VERSION}.tar.gz"


@pytest.fixture(scope="session")
def wheel(sources, tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    must(sys.executable, "-m", "pip", "wheel", "--no-index", "--no-deps", "--no-build-isolation", "-w", folder, sources,
         env=environment(HMALLOC_LIBRARIES=str(BUILD)))
    [found] = folder.glob("*.whl")
    return found


@pytest.fixture(scope="session")
def installed(wheel, tmp_path_factory):
    """A fresh environment's folder."""
    folder = tmp_path_factory.mktemp("place") / "with a space"
    must(sys.executable, "-m", "venv", folder)
    must(folder / "bin/python", "-m", "pip", "install", "--disable-pip-version-check", "--no-index", wheel, env=environment())
    return folder


@pytest.fixture(scope="session")
def python(installed):
    """Calls that environment's Python."""

    def call(*arguments, program=installed / "bin/python", folder=None, **variables):
        return subprocess.run([program, *arguments], env=environment(**variables), stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=300, cwd=folder)

    return call


@pytest.fixture
def served(python):
    """What a text prints that runs on hmalloc."""

    def call(text, *options, **variables):
        done = python("-m", "hmalloc", *options, "-c", text, **variables)
        assert done.returncode == 0, done.stderr
        return done

    return call


# ---- The files. ---------------------------------------------------------------------------------------------------


def test_the_sources_have_all_that_the_libraries_are_built_from(sources):
    with tarfile.open(sources) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
        assert archive.extractfile(f"hmalloc-{VERSION}/LICENSE").read() == (ROOT / "LICENSE").read_bytes()
    needed = [path.relative_to(ROOT) for folder in ("src", "include", "cmake") for path in (ROOT / folder).rglob("*")]
    assert {f"native/{path}" for path in needed} | {"native/CMakeLists.txt", "setup.py", "pyproject.toml"} <= names


def test_the_wheel_is_for_any_python_and_for_the_glibc_that_the_libraries_need(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        said = archive.read(f"hmalloc-{VERSION}.dist-info/WHEEL").decode()
    for name in ("lib/libhmalloc.so", "lib/libhmalloc-hardened.so", "py.typed", "__main__.py"):
        assert f"hmalloc/{name}" in names
    assert f"hmalloc-{VERSION}.dist-info/licenses/LICENSE" in names
    shown = "".join(must("readelf", "--dyn-syms", "-W", BUILD / f"libhmalloc{variant}.so") for variant in ("", "-hardened"))
    newest = max(int(minor) for minor in re.findall(r"@GLIBC_2\.(\d+)", shown))
    tag = f"py3-none-manylinux_2_{newest}_{os.uname().machine}"
    assert wheel.name == f"hmalloc-{VERSION}-{tag}.whl"
    assert f"Tag: {tag}\n" in said and "Root-Is-Purelib: false\n" in said


# ---- python -m hmalloc. -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options, library", [([], "libhmalloc.so"), (["--hardened"], "libhmalloc-hardened.so")])
def test_the_program_runs_on_the_library(installed, served, options, library):
    done = served("import hmalloc; print(hmalloc.active()); print(open('/proc/self/maps').read())", *options)
    [folder] = installed.glob("lib/python*/site-packages/hmalloc/lib")
    assert done.stdout.startswith("True\n") and f"{folder}/{library}\n" in done.stdout
    assert set(re.findall(r"/.*libhmalloc.*", done.stdout)) == {f"{folder}/{library}"}
    assert done.stderr == ""


def test_a_process_that_was_started_otherwise_does_not(python):
    assert python("-c", "import hmalloc; print(hmalloc.active())").stdout == "False\n"


def test_the_command_does_the_same(installed, python):
    done = python("-c", "import hmalloc; print(hmalloc.active())", program=installed / "bin/hmalloc-python")
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_help_is_ours(python):
    assert python("-m", "hmalloc", "--help").stdout.startswith("python -m hmalloc [--hardened]")


def test_arguments_arrive_unchanged(python, tmp_path):
    script = tmp_path / "shows its arguments.py"
    script.write_text("import sys; print(sys.argv, sys.path[0], __name__)")
    arguments = ["a b", "", "*", "$HOME", "--hardened", "-m", "hmalloc", "'"]
    shown = python("-m", "hmalloc", str(script), *arguments)
    assert shown.stdout == python(str(script), *arguments).stdout != "" and shown.stderr == ""


def test_a_module(python, tmp_path):
    (tmp_path / "shows.py").write_text("import sys, hmalloc; print(sys.argv[1:], __name__, hmalloc.active())")
    assert python("-m", "hmalloc", "-m", "shows", "x", folder=tmp_path).stdout == "['x'] __main__ True\n"


@pytest.mark.parametrize("before, after", [(["-B", "-m", "hmalloc"], []), (["-Bm", "hmalloc"], []), (["-m", "hmalloc"], ["-B"]),
                                           (["-B", "-mhmalloc"], []), (["-Bmhmalloc"], []),
                                           (["-X", "utf8", "-B", "-W", "error", "-m", "hmalloc", "--hardened"], [])])
def test_pythons_own_options_are_kept(python, before, after):
    shown = python(*before, *after, "-c", "import sys, hmalloc; print(sys.flags.dont_write_bytecode, hmalloc.active())")
    assert shown.stdout == "1 True\n", shown.stderr


@pytest.mark.skipif(sys.version_info < (3, 10), reason="Python does not tell all of its options before 3.10")
def test_an_option_is_kept_of_which_python_has_no_flag(python):
    assert "'-u', '-c'" in python("-u", "-m", "hmalloc", "-c", "import sys; print(sys.orig_argv)").stdout


@pytest.mark.parametrize("code", [0, 1, 77])
def test_the_exit_status_is_the_programs(python, code):
    assert python("-m", "hmalloc", "-c", f"raise SystemExit({code})").returncode == code


def test_signals_reach_the_program_which_is_the_process_that_was_started(installed):
    text = "import signal, os; print(os.getpid(), flush=True); signal.pause()"
    process = subprocess.Popen([installed / "bin/python", "-m", "hmalloc", "-c", text], env=environment(), stdout=subprocess.PIPE)
    with process.stdout:
        assert int(process.stdout.readline()) == process.pid
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == -signal.SIGTERM


def test_a_missing_script_is_one_line(python):
    done = python("-m", "hmalloc", "nothing.py")
    assert done.returncode == 2 and re.fullmatch(r".*can't open file .*nothing\.py'.*\n", done.stderr)


def test_what_is_preloaded_already_stays_and_nothing_of_ours_is_there_twice(installed, served):
    text = "import os; print(os.environ['LD_PRELOAD'], os.environ.get('LD_LIBRARY_PATH'))"
    done = served(text, LD_PRELOAD="/elsewhere/libhmalloc.so:libm.so.6", LD_LIBRARY_PATH="/one:/two")
    [folder] = installed.glob("lib/python*/site-packages/hmalloc/lib")
    assert done.stdout == f"libhmalloc.so:libm.so.6 {folder}:/one:/two\n"
    again = served("import os, subprocess, sys\n"
                   f"subprocess.run([sys.executable, '-m', 'hmalloc', '-c', {text!r}])", LD_PRELOAD="libm.so.6", LD_LIBRARY_PATH="/one")
    assert again.stdout == f"libhmalloc.so:libm.so.6 {folder}:/one\n"


def test_where_no_space_is_in_the_way_the_library_is_named_by_its_path(installed, python, tmp_path):
    (tmp_path / "link").symlink_to(installed)
    text = "import os, hmalloc; print(hmalloc.active(), os.environ['LD_PRELOAD'], 'LD_LIBRARY_PATH' in os.environ)"
    done = python("-m", "hmalloc", "-c", text, program=tmp_path / "link/bin/python")
    assert re.fullmatch(rf"True {tmp_path}/link/lib/python[\d.]+/site-packages/hmalloc/lib/libhmalloc\.so False\n", done.stdout), done


def test_a_path_that_cannot_be_preloaded_is_an_error(installed, python, tmp_path):
    (tmp_path / "a:b").symlink_to(installed)
    done = python("-m", "hmalloc", "-c", "", program=tmp_path / "a:b/bin/python")
    assert done.returncode == 2 and re.fullmatch(r"hmalloc: .*a:b.* has a colon or a semicolon; move the environment\n", done.stderr)


@pytest.mark.parametrize("variables, value", [({}, "malloc"), ({"PYTHONMALLOC": "pymalloc"}, "pymalloc")])
def test_pythons_objects_come_from_hmalloc_unless_the_user_says_otherwise(served, variables, value):
    text = ("import os, hmalloc; before = hmalloc.stats()['allocated']; kept = [object() for _ in range(100_000)]\n"
            "grown = hmalloc.stats()['allocated'] - before; print(os.environ['PYTHONMALLOC'], grown > 2_000_000)")
    # pymalloc takes its arenas from mmap; only the list itself is from malloc.
    assert served(text, **variables).stdout == f"{value} {value == 'malloc'}\n"


def test_a_free_threaded_python_keeps_its_own_allocator(python):
    """Such a Python ends at once where PYTHONMALLOC names another."""
    text = ("import os, sys, hmalloc.__main__ as main; sys.abiflags = 't'; os.environ.pop('PYTHONMALLOC', None)\n"
            "print('PYTHONMALLOC' in main._environment('/x/libhmalloc.so'))")
    assert python("-c", text).stdout == "False\n"


def test_children_run_on_it_too(served):
    text = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import hmalloc; print(hmalloc.active())'])"
    assert served(text).stdout == "True\n"


def test_a_library_for_another_processor_and_one_that_is_none_are_errors(installed, python, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(installed, copy, symlinks=True)
    [library] = copy.glob("lib/python*/site-packages/hmalloc/lib/libhmalloc.so")
    content = bytearray(library.read_bytes())
    content[18:20] = b"\xf3\0"  # RISC-V
    library.write_bytes(content)
    done = python("-m", "hmalloc", "-c", "", program=copy / "bin/python")
    assert done.returncode == 2
    assert re.fullmatch(r"hmalloc: .*libhmalloc\.so is for another processor than this Python.*\n", done.stderr)
    library.write_bytes(Path("/proc/self/exe").read_bytes()[:20])
    done = python("-m", "hmalloc", "-c", "", program=copy / "bin/python")
    assert done.returncode == 2 and re.fullmatch(r"hmalloc: this Python, with its libc, cannot load .*\n", done.stderr)
    library.unlink()
    done = python("-m", "hmalloc", "-c", "", program=copy / "bin/python")
    assert done.returncode == 2 and re.fullmatch(r"hmalloc: .*No such file.*\n", done.stderr)


def test_what_the_library_has_to_say_it_says_once(served):
    assert served("", HMALLOC_VERBOSE="1").stderr.count(": active in process") == 1
    assert "loaded" not in served("", HMALLOC_VERBOSE="1").stderr


# ---- The functions. -----------------------------------------------------------------------------------------------


def test_the_statistics_are_those_of_the_header(python):
    header = (ROOT / "include/hmalloc/hmalloc.h").read_text()
    fields = re.findall(r"^  uint(\d\d)_t (\w+);", header.split("struct hm_stats {")[1].split("}")[0], re.M)
    text = "import ctypes, hmalloc; print([(str(8 * ctypes.sizeof(type_)), name) for name, type_ in hmalloc._Stats._fields_[:-1]])"
    assert eval(python("-c", text).stdout) == fields != []


def test_statistics_grow_with_what_is_allocated(served):
    text = """
import hmalloc
before = hmalloc.stats()
kept = [bytes(1000) for _ in range(20_000)]
after = hmalloc.stats()
assert 19 << 20 < after["allocated"] - before["allocated"] < 28 << 20, (before, after)
assert after["peak_active"] > before["peak_active"] and after["live_heaps"] == 1
"""
    served(text)
    served(text, "--hardened")


def test_collect_gives_back_what_is_free(served):
    served("""
import hmalloc
kept = [bytes(1000) for _ in range(50_000)]
lone = kept[::40]
del kept
resident = hmalloc._resident()
returned = hmalloc.collect()
assert returned > 20 << 20 and returned * 0.9 < resident - hmalloc._resident() < returned * 1.1, (returned, resident, hmalloc._resident())
""")


def test_a_report_tells_what_a_part_of_the_program_changed(served):
    done = served("""
import hmalloc, time
kept = []
with hmalloc.report("filling") as filling:
    kept += [bytes(1000) for _ in range(20_000)]
    time.sleep(0.05)
assert filling.grown == filling.after - filling.before > 19 << 20 and 0.05 < filling.seconds < 60 and filling.peak > 19 << 20

@hmalloc.report("emptying")
def empty(how):
    "Empties."
    kept.clear()
    return how

assert empty("wholly") == "wholly" and empty.__doc__ == "Empties."
told = []
try:
    with hmalloc.report("failing", tell=told.append):
        raise KeyError("x")
except KeyError:
    assert told[0].label == "failing" and told[0].peak is None
""")
    first, second = done.stderr.splitlines()
    assert re.fullmatch(r"hmalloc: filling: [12]\d\.\d MB more, .* -> .*, a new peak of [\d.]+ MB, \d+\.\d+ s", first)
    assert re.fullmatch(r"hmalloc: emptying: [12]\d\.\d MB less, .* -> .*, no new peak, \d+\.\d+ s", second)


def test_trim_after_gives_back_what_is_free_behind_its_part(served):
    done = served("""
import hmalloc
lone = []

class Cycle:
    def __init__(self):
        self.own, self.kept = self, bytes(1000)

@hmalloc.trim_after("batch")
def batch():
    import gc
    gc.disable()
    cycles = [Cycle() for _ in range(30_000)]
    lone.extend(cycle.kept for cycle in cycles[::40])

batch()
told = []
with hmalloc.trim_after("nothing", tell=told.append, cycles=False) as trim:
    pass
assert told == [trim] and trim.returned < 4 << 20 and trim.before - trim.after < 4 << 20, trim
""")
    shown = re.fullmatch(r"hmalloc: batch: ([\d.]+) MB went back, ([\d.]+) MB -> ([\d.]+) MB resident, [\d.]+ s\n", done.stderr)
    assert shown and float(shown[1]) > 10 and float(shown[2]) - float(shown[3]) > 10


def test_a_profile_is_written(served, tmp_path):
    served(f"""
import hmalloc
path = {str(tmp_path / "heap.pb")!r}
with hmalloc.profile(path, rate=1 << 16):
    kept = [bytes(1000) for _ in range(20_000)]
assert b"alloc_space" in __import__("gzip").decompress(data) if (data := open(path, "rb").read())[:2] == b"\\x1f\\x8b" else b"alloc_space" in data
try:
    with hmalloc.profile("/nowhere/heap.pb"):
        raise AssertionError
except FileNotFoundError:
    pass
""")


@pytest.mark.parametrize("call", ["stats()", "collect()", "report('x').__enter__()", "trim_after('x').__enter__()",
                                  "profile('/dev/null').__enter__()", "report('x')(print)()"])
def test_without_hmalloc_there_is_one_error_that_says_what_to_do(python, call):
    done = python("-c", f"import hmalloc; hmalloc.{call}")
    message = "hmalloc does not serve this process, it is not loaded: start it with `python -m hmalloc SCRIPT`"
    assert done.returncode == 1 and done.stderr.endswith(f"\nhmalloc.NotActive: {message}\n")


def test_behind_another_malloc_it_is_not_active(python, tmp_path):
    (tmp_path / "first.c").write_text("""
#include <stddef.h>
void* __libc_malloc(size_t); void* __libc_calloc(size_t, size_t); void* __libc_realloc(void*, size_t); void __libc_free(void*);
static char memory[64 << 20]; static size_t used;
void* malloc(size_t n) { void* p = memory + used; used += (n + 31) & ~15ul; return used < sizeof memory ? p : NULL; }
void* calloc(size_t n, size_t m) { return malloc(n * m); }
void* realloc(void* p, size_t n) { char* q = malloc(n); for (size_t i = 0; p && i < n; ++i) q[i] = ((char*)p)[i]; return q; }
void free(void* p) { (void)p; }
""")
    must("cc", "-shared", "-fPIC", "-O1", "-fno-builtin", tmp_path / "first.c", "-o", tmp_path / "first.so")
    text = "import hmalloc; print(hmalloc.active()); hmalloc.stats()"
    done = python("-c", text, LD_PRELOAD=f"{tmp_path}/first.so:{BUILD}/libhmalloc.so", PYTHONMALLOC="pymalloc")
    assert done.stdout == "False\n" and "another malloc comes before it" in done.stderr
