"""Whatever is wrong with a command line is said in one line, with the exit code that shells use for it."""

import pytest
from test_by_name import BASELINES


@pytest.mark.parametrize("code, message, arguments", [
    (2, "unknown command frobnicate (hmalloc --help)", ["frobnicate"]),
    (2, "unknown option --frobnicate (hmalloc --help)", ["--frobnicate"]),
    (2, "unknown command nonsense (hmalloc --help)", ["help", "nonsense"]),
    (2, "run: which program? (hmalloc run --help)", ["run"]),
    (2, "run: which program? (hmalloc run --help)", ["run", "--"]),
    (2, "run: unknown option --frobnicate (hmalloc run --help)", ["run", "--frobnicate", "ls"]),
    (2, f"run: no allocator frobnicate (hmalloc, checked, hardened, system, {BASELINES}, the path of a library, "
        "or what 'hmalloc bench peers' has built)", ["run", "--allocator", "frobnicate", "ls"]),
    (2, "run: --allocator needs a value: hmalloc, checked, hardened, system, a baseline's or a peer's name, or a library's path",
     ["run", "--allocator"]),
    (2, "/etc/passwd: unusable library: invalid ELF header", ["run", "--allocator", "/etc/passwd", "ls"]),
    (2, "/no/such.so: no such library", ["run", "--allocator", "/no/such.so", "ls"]),
    (127, "no-such-program: program not found", ["run", "--", "no-such-program"]),
    (127, "/no/such/program: program not found", ["run", "--", "/no/such/program"]),
    (126, "/etc: is a directory", ["run", "--", "/etc"]),
    (126, "/etc/passwd: not executable", ["run", "--", "/etc/passwd"]),
    (2, "compare: Option '--runs' requires an argument. (hmalloc compare --help)", ["compare", "--runs"]),
    (2, "--for soon: not a length of time (10s, 500ms, 2m)", ["compare", "--for", "soon", "ls"]),
    (2, "--for and --load exclude each other: the server is stopped when the load is done",
     ["compare", "--for", "1s", "--load", "true", "ls"]),
    (2, "/no/such: cannot be read", ["compare", "--input", "/no/such", "ls"]),
    (2, "/etc: cannot be read", ["compare", "--input", "/etc", "ls"]),
    (2, "/no/such.json: No such file or directory", ["compare", "--json", "/no/such.json", "ls"]),
    (2, "/etc/passwd: unusable library: invalid ELF header", ["compare", "--allocator", "/etc/passwd", "ls"]),
    (127, "no-such-program: program not found", ["compare", "--", "no-such-program"]),
    (126, "/etc: is a directory", ["compare", "--", "/etc"]),
    (2, "doctor: which program? (hmalloc doctor --help)", ["doctor"]),
    (127, "no-such-program: program not found", ["doctor", "--", "no-such-program"]),
    (2, "999999999: no such process", ["doctor", "999999999"]),
    (2, "test: no suite frobnicate (quick, all, fuzz, or a stage of all: default, rest, cross, asan, tsan, aarch64, slow)",
     ["test", "frobnicate"]),
    (2, "test fuzz: --for: 'long' is no time (30s, 10m, 2h)", ["test", "fuzz", "--for", "long"]),
    (2, "test fuzz: --for: '123456789s' is no time (30s, 10m, 2h)", ["test", "fuzz", "--for", "123456789s"]),
    (2, "test fuzz: no fuzzer wool in the builds asked for", ["test", "fuzz", "--only=wool"]),
    (2, "test fuzz: no build msan (plain, asan or tsan)", ["test", "fuzz", "--build", "msan"]),
    (2, "test fuzz: --only needs a value", ["test", "fuzz", "--only"]),
    (2, "test fuzz: unknown argument heap (hmalloc test --help)", ["test", "fuzz", "heap"]),
    (2, "trace: no action frobnicate (record, info or replay)", ["trace", "frobnicate"]),
    (2, "bench: no command frobnicate (hmalloc bench --help)", ["bench", "frobnicate"]),
    (2, "install: unknown argument frobnicate (hmalloc install --help)", ["install", "frobnicate"]),
    (2, "install: /proc/no is not writable for you (sudo, or --prefix DIR)", ["install", "--prefix", "/proc/no"]),
])
def test_one_line_says_what_is_wrong(hmalloc, code, message, arguments):
    failed = hmalloc(*arguments)
    assert failed.stderr == f"hmalloc: {message}\n"
    assert (failed.returncode, failed.stdout) == (code, "")


@pytest.mark.parametrize("arguments", [["--frobnicate", "ls"], ["-n", "many", "ls"], ["-n", "0", "ls"]])
def test_bad_options_of_compare(hmalloc, arguments):
    failed = hmalloc("compare", *arguments)
    assert failed.returncode == 2 and failed.stdout == ""
    assert failed.stderr.startswith("hmalloc: compare: ") and failed.stderr.endswith("(hmalloc compare --help)\n")
    assert len(failed.stderr.splitlines()) == 1
