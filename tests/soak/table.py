"""The programs: what they need, and one round of each."""

import hashlib
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from shutil import which

import browser
import servers

HERE = Path(__file__).resolve().parent
PROGRAMS_OF = HERE / "programs"
ROOT = HERE.parents[1]


@dataclass(frozen=True)
class Program:
    name: str
    packages: str
    needs: tuple  # executables
    work: Callable  # session -> what must be the same as on glibc
    ready: Callable = lambda: ""  # why not, if it cannot run although its executables are there
    users: tuple = ()  # programs that must be seen with the library; none: it brings an allocator of its own

    def missing(self):
        absent = [name for name in self.needs if which(name) is None]
        return f"not installed: {self.packages}" if absent else self.ready()


def java(session):
    """Byte buffers outside of its heap and zlib are what a JVM asks malloc for; it starts processes too."""

    def work():
        session.run("javac", "-d", session.folder, PROGRAMS_OF / "Heavy.java")
        return session.run("java", "-Xmx256m", "-XX:MaxDirectMemorySize=256m", "-cp", session.folder, "Heavy")

    return session.repeat(work)


def compiler(session):
    """The library built from its sources, with cmake, ninja, cc1plus, as and ld on the allocator: the same bytes."""

    def work():
        build = session.folder / "build"
        session.run("cmake", "-S", ROOT, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                    f"-DCMAKE_CXX_FLAGS=-ffile-prefix-map={session.folder}=.")  # each run has another folder
        session.run("ninja", "-C", build, "-j1", "hmalloc")
        made = hashlib.sha256((build / "libhmalloc.so").resolve().read_bytes()).hexdigest()
        session.run("rm", "-rf", build)
        return made

    return session.repeat(work)


def go(session):
    """C blocks from many goroutines, which go's runtime moves from thread to thread; go build starts cc."""
    folder = session.folder
    env = {"GOCACHE": folder / "cache", "GOPATH": folder / "path", "GO111MODULE": "off", "GOFLAGS": "-p=1",
           "CGO_ENABLED": "1", "CGO_CFLAGS": "-O1 -fno-builtin", "GOTOOLCHAIN": "local"}
    session.run("go", "build", "-o", folder / "heavy", PROGRAMS_OF / "heavy.go", **env)
    return session.repeat(lambda: session.run(folder / "heavy"))


def erlang(session):
    """Thousands of processes that hand binaries round; +Mea min: by malloc, not by its own allocators."""
    session.run("erlc", "-o", session.folder, PROGRAMS_OF / "heavy.erl")
    return session.repeat(lambda: session.run("erl", "+Mea", "min", "-noinput", "-pa", session.folder, "-s", "heavy"))


PYTHON_TESTS = ("test_threading", "test_subprocess", "test_fork1", "test_multiprocessing_fork")
# What allocates most of what there is: containers, strings, numbers, parsers, compression, and C libraries below them.
PYTHON_MODULES = (
    "test_json", "test_dict", "test_list", "test_set", "test_deque", "test_re", "test_collections", "test_unicode",
    "test_bytes", "test_long", "test_decimal", "test_array", "test_memoryview", "test_buffer", "test_struct",
    "test_pickle", "test_copy", "test_io", "test_zlib", "test_bz2", "test_lzma", "test_hashlib",
    "test_xml_etree_c", "test_pyexpat", "test_csv", "test_ast", "test_compile", "test_generators", "test_weakref",
    "test_gc", "test_ctypes", "test_queue", "test_thread")


def python():
    """Debian ships the interpreter without its tests; another one may have them."""
    for name in ("/usr/bin/python3", which("python3"), sys.executable):
        probe = [name, "-c", "import test.test_fork1, test.test_threading"]
        if name and subprocess.run(probe, capture_output=True, check=False).returncode == 0:
            return name
    return None


def python_tests(*modules):
    def work(session):
        def once():
            said = session.run(python(), "-m", "test", *modules, PYTHONMALLOC="malloc")
            return "\n".join(re.findall(r"^(?:All \d+ tests OK|Result: \w+|Tests result: \w+)", said, re.MULTILINE))

        return session.repeat(once)

    return work


def python_missing():
    return "" if python() else "not installed: the tests of Python"


def node(session):
    """zlib in its thread pool, and messages to worker threads with buffers."""
    return session.repeat(lambda: session.run("node", ROOT / "tests/integration/scripts/work.js"))


def db_bench(session):
    """RocksDB: four threads read while one writes, then all is written once more, compacted, and its checksums verified."""

    def work():
        folder = session.folder / "db"
        benchmarks = "fillrandom,readwhilewriting,overwrite,seekrandom,compact,verifychecksum"
        said = session.run("db_bench", f"--benchmarks={benchmarks}", f"--db={folder}", "--num=50000", "--reads=50000",
                           "--threads=4", "--value_size=1000", "--cache_size=4000000", "--compression_type=none")
        session.run("rm", "-rf", folder)
        return " ".join(re.findall(r"^(\w+) +: .*micros/op", said, re.MULTILINE))

    return session.repeat(work)


def chromium(session):
    """It has an allocator of its own, and must live with a preload."""

    def work():
        session.run("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                    f"--user-data-dir={session.folder / 'profile'}", f"--screenshot={session.folder / 'shot.png'}",
                    "--window-size=800,600", "--virtual-time-budget=5000", f"file://{PROGRAMS_OF / 'page.html'}")
        return hashlib.sha256((session.folder / "shot.png").read_bytes()).hexdigest()

    return session.repeat(work)


def stress_ng(session):
    def work():
        seconds = max(5, int(session.seconds / 2))
        session.run("stress-ng", "--malloc", "2", "--malloc-bytes", "64M", "--malloc-max", "4096", "--fork", "2",
                    "--pthread", "1", "--exec", "1", "--verify", "--timeout", f"{seconds}s", "--temp-path", session.folder)
        return "ended"

    return session.repeat(work)


PROGRAMS = [
    Program("postgresql", "postgresql", (), servers.postgresql, servers.postgresql_missing, ("postgres", "pgbench")),
    Program("redis", "redis-server redis-tools", ("redis-server", "redis-cli", "redis-benchmark"), servers.redis,
            users=("redis-server",)),
    Program("redis, pipelined", "redis-server redis-tools", ("redis-server", "redis-cli", "redis-benchmark"),
            servers.redis_pipelined, users=("redis-server",)),
    Program("java", "default-jdk-headless", ("java", "javac"), java, users=("java",)),
    Program("g++", "g++ cmake ninja-build", ("g++", "cmake", "ninja"), compiler, users=("cc1plus",)),
    Program("go", "golang-go", ("go", "cc"), go, users=("heavy",)),
    Program("erlang", "erlang-base", ("erl", "erlc"), erlang, users=("beam.smp",)),
    Program("db_bench", "rocksdb-tools", ("db_bench",), db_bench, users=("db_bench",)),
    Program("node", "nodejs", ("node",), node, users=("node",)),
    Program("python3 -m test", "libpython3.11-testsuite", (), python_tests(*PYTHON_TESTS), python_missing, ("python",)),
    Program("python3 -m test, modules", "libpython3.11-testsuite", (), python_tests(*PYTHON_MODULES), python_missing,
            ("python",)),
    Program("chromium", "chromium", ("chromium",), chromium),
    Program("webkit", "libwebkit2gtk-4.1-0 webkit2gtk-driver xvfb", ("WebKitWebDriver", "Xvfb"), browser.webkit, browser.missing,
            ("MiniBrowser", "WebKitWebProces", "WebKitNetworkPr")),
    Program("stress-ng", "stress-ng", ("stress-ng",), stress_ng, users=("stress-ng-mallo",)),
]
