"""The programs that run under preload: what they need, how they are called, what of their output is comparable."""

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from shutil import which

SCRIPTS = Path(__file__).resolve().parent / "scripts"
PYTHON = next((p for p in ("/usr/bin/python3", "/usr/local/bin/python3") if Path(p).exists()), sys.executable)


def unchanged(text):
    return text


@dataclass(frozen=True)
class Program:
    name: str
    packages: tuple
    needs: tuple  # executables
    argv: tuple
    comparable: Callable = unchanged
    env: tuple = ()
    script: str | None = None  # given on standard input
    ready: Callable = lambda: ""  # why not, if it cannot run although its executables are there
    proves_use: bool = True  # says so on descriptor 2 when told to
    repeat: int = 1


def test_results(text):
    """Times and loads differ, verdicts must not."""
    return "\n".join(line for line in text.splitlines() if re.match(r"(All \d+ tests|Tests result|\d+ tests? )", line))


def benchmark_names(text):
    return "\n".join(re.findall(r"^(fillrandom|readwhilewriting) .*operations;", text, re.MULTILINE))


def python_version():
    return ".".join(Path(PYTHON).resolve().name.removeprefix("python").split(".")[:2])


def python_tests_missing():
    """Debian ships the interpreter without its tests."""
    probe = [PYTHON, "-c", "import test.test_threading, test.test_queue, test.test_json"]
    return "" if subprocess.run(probe, capture_output=True, check=False).returncode == 0 else PYTHON_TESTS


PYTHON_TESTS = f"libpython{python_version()}-testsuite"
NO_PYMALLOC = (("PYTHONMALLOC", "malloc"), ("PYTHONHASHSEED", "0"))
DB_BENCH = ("db_bench", "--benchmarks=fillrandom,readwhilewriting", "--num=20000", "--reads=20000", "--threads=4",
            "--db=db", "--value_size=1000", "--cache_size=4000000", "--compression_type=none")

PROGRAMS = [
    Program("bash", ("bash",), ("bash",), ("bash", SCRIPTS / "work.bash")),
    Program("git", ("git",), ("git", "sh"), ("sh", SCRIPTS / "work.git")),
    Program("g++", ("g++",), ("g++",), ("g++", "-std=c++20", "-O1", "-S", "-o", "-", SCRIPTS / "work.cc")),
    Program("python3", ("python3",), (PYTHON,), (PYTHON, SCRIPTS / "work.py"), env=NO_PYMALLOC, repeat=2),
    Program("python3 -m test", ("python3", PYTHON_TESTS), (PYTHON,),
            (PYTHON, "-m", "test", "test_json", "test_queue", "test_threading"), comparable=test_results,
            env=NO_PYMALLOC[:1], ready=python_tests_missing, proves_use=False),
    Program("perl", ("perl",), ("perl",), ("perl", SCRIPTS / "work.pl"), env=(("PERL_HASH_SEED", "0"),), repeat=2),
    Program("sqlite3", ("sqlite3",), ("sqlite3",), ("sqlite3", ":memory:"), script="work.sql", repeat=2),
    Program("lua5.4", ("lua5.4",), ("lua5.4",), ("lua5.4", SCRIPTS / "work.lua"), repeat=2),
    Program("node", ("nodejs",), ("node",), ("node", SCRIPTS / "work.js"), repeat=2),
    Program("db_bench", ("rocksdb-tools",), ("db_bench",), DB_BENCH, comparable=benchmark_names),
    # It puts its own malloc in place of every other: nothing to prove but that the two do not clash.
    Program("valgrind", ("valgrind", "lua5.4"), ("valgrind", "lua5.4"),
            ("valgrind", "-q", "--error-exitcode=9", "lua5.4", "-e",
             "local t = {} for i = 1, 2000 do t[i] = ('x'):rep(i) end print(#table.concat(t))"), proves_use=False),
]
# On each of the baselines: threads, forks, large and small blocks; the others would show nothing more.
BASELINES_RUN = ["bash", "python3", "perl", "sqlite3", "redis-server"]
REDIS_PACKAGES = ("redis-server", "redis-tools")


def packages():
    names = {name for program in PROGRAMS for name in program.packages} | set(REDIS_PACKAGES)
    return sorted(names)


def missing(program):
    absent = [name for name in program.needs if which(str(name)) is None]
    if absent:
        return f"not installed: {' '.join(absent)} ({' '.join(program.packages)})"
    lacks = program.ready()
    return f"not installed: {lacks}" if lacks else ""
