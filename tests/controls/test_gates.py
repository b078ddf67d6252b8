"""Goldens, lint and footprint: a fault that each is there to find, and the same gate without it."""

import argparse
import os
import shutil
import subprocess

import fast_path
import library as library_checks
import pytest
import sources
from conftest import PROGRAMS, ROOT

BUILD = os.environ.get("HMALLOC_BUILD", str(ROOT / "build" / "release"))
CC = os.environ.get("CC", "cc")


# ---- Goldens. -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def counts():
    found = {name: (most, 0, 0) for name, most in fast_path.MOST.items()}
    assert fast_path.compare(found, found, fast_path.MOST) == []
    return found


@pytest.mark.parametrize("planted, complaint", [
    ((17, 0, 0), "malloc: 17 instructions, at most 16 are allowed"),
    ((16, 1, 0), "malloc: 1 calls, 0 locked instructions on a hit"),
    ((16, 0, 1), "malloc: 0 calls, 1 locked instructions on a hit")])
def test_a_longer_fast_path_is_found(counts, planted, complaint):
    assert complaint in fast_path.compare(counts | {"malloc": planted}, counts, fast_path.MOST)


def test_a_path_that_grows_within_its_limit_is_found(counts):
    golden = counts | {"malloc": (15, 0, 0)}
    assert fast_path.compare(counts, golden, fast_path.MOST) == ["malloc: 16 instructions, the golden file has 15"]


@pytest.mark.parametrize("machine, compiler, objdump, options, addition", [
    ("x86_64", CC, "objdump", ["-fcf-protection=none"], 1),
    ("aarch64", "aarch64-linux-gnu-gcc", "aarch64-linux-gnu-objdump", ["-mno-outline-atomics"], 3)])  # load, add, store
def test_the_instructions_are_counted(tmp_path, machine, compiler, objdump, options, addition):
    """From the code that a compiler makes: an addition more in malloc is counted, a lock is a lock."""
    if machine != os.uname().machine and compiler == CC or shutil.which(compiler) is None:
        pytest.skip(f"no compiler for {machine} here")
    counted = []
    for name, planted in (("plain", []), ("longer", ["-DLONGER"]), ("locked", ["-DLOCKED"])):
        made = tmp_path / f"{name}.so"
        subprocess.run([compiler, "-O2", "-shared", "-fPIC", PROGRAMS / "path.c", "-o", made, *options, *planted], check=True)
        code, symbols = fast_path.disassemble(objdump, made)
        counted.append(fast_path.count(code, fast_path.walk(code, symbols["taken"])))
    plain, longer, locked = counted
    assert longer[0] == plain[0] + addition and longer[1:] == plain[1:] == (0, 0)
    assert locked[2] > 0


# ---- Lint. ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def tree(tmp_path):
    """A copy of the sources that may be spoilt."""
    for folder in ("src", "include"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    return tmp_path


def complaints(check, tree):
    return [c for c in sources.CHECKS[check](argparse.Namespace(root=str(tree), build=BUILD)) if not c.startswith("warning")]


def plant(tree, file, line):
    path = tree / file
    path.write_text(f"{line}\n{path.read_text()}")


@pytest.mark.parametrize("check, file, line, complaint", [
    ("include_cycles", "src/base/sizes.h", '#include "base/report.h"', "include each other in a circle: base/report, base/sizes"),
    ("include_order", "src/base/lock.cc", '#include "threads/registry.h"', "src/base/lock.cc includes threads/registry.h"),
    ("atomics_in_roles", "src/base/report.cc", "// memory_order_relaxed", "src/base/report.cc orders memory"),
    ("no_runtime_in_sources", "src/base/report.cc", "#include <vector>", "src/base/report.cc includes <vector>")])
def test_a_fault_of_the_sources_is_found(tree, check, file, line, complaint):
    clean = complaints(check, tree)
    plant(tree, file, line)
    found = [each for each in complaints(check, tree) if each not in clean]
    assert len(found) == 1 and complaint in found[0]


@pytest.mark.parametrize("check, options, complaint", [
    ("no_cxx_runtime", ["-DRUNTIME"], "refers to __cxa_allocate_exception, and not weakly"),
    ("needed", ["-DNEEDS", "-Wl,--no-as-needed", "-lm"], "needs libm.so.6"),
    ("exported", ["-DEXTRA"], "surprise is exported, and nobody may rely on it"),
    ("exported", ["-DUNVERSIONED"], "hm_version is exported, and nobody may rely on it"),
    ("exported", [], "hm_version@HMALLOC_0.1 is missing"),
    ("closed_symbols", ["-DCALLS"], "asks for usleep, which has no reason here"),
    ("closed_symbols", [], "no longer asks for memcpy: strike it off the table"),
    ("no_executable_stack", ["-Wl,-z,execstack"], "asks for an executable stack"),
    ("dynamic_flags", [], "the flag NODELETE is missing"),
    ("thread_local_storage", ["-DWIDE"], "4096 bytes of thread-local storage")])
def test_a_fault_of_the_library_is_found(tmp_path, check, options, complaint):
    look = getattr(library_checks, check)
    made = tmp_path / "spoilt.so"
    subprocess.run([CC, "-O2", "-shared", "-fPIC", PROGRAMS / "spoilt.c", "-o", made, *options], check=True)
    assert complaint in look(str(made))
    assert look(f"{BUILD}/libhmalloc.so") == []


# ---- Footprint. -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def leaking(tmp_path_factory):
    made = tmp_path_factory.mktemp("footprint") / "libburden.so"
    subprocess.run([CC, "-O2", "-shared", "-fPIC", "-fno-builtin", PROGRAMS / "burden.c", "-o", made], check=True)
    return made


@pytest.mark.parametrize("case", ["phase_shift", "sparse_pin", "index_starve"])
def test_a_leak_is_found_by_the_footprint_cases(leaking, case):
    program = f"{BUILD}/tests/conformance/footprint"
    if not os.path.exists(program):
        pytest.skip("tests/conformance is not built")
    ours = f"{BUILD}/libhmalloc.so"
    assert subprocess.run([program, case], env={"LD_PRELOAD": ours}).returncode == 0
    # For every two bytes that are asked for, one more is taken and never given back.
    done = subprocess.run([program, case], env={"LD_PRELOAD": f"{leaking}:{ours}", "BURDEN_LEAK": "500"},
                          capture_output=True, text=True)
    assert done.returncode != 0
