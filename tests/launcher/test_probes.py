"""A tracer at the probes of a program that knows nothing of it: gdb, which counts semaphores up as the system does for others."""

import math
import os
import re
import shutil
import subprocess

import pytest
from conftest import ROOT

LIBRARY = ROOT / "build/release/libhmalloc.so"
RATE = 512 << 10
MEGABYTES = 60

SCRIPT = """
set pagination off
set confirm off
set startup-with-shell off
set disable-randomization off
set environment LD_PRELOAD {library}
break main
run
delete
break -probe-stap {library}:otel_memory:alloc
commands
silent
printf "alloc %#lx %lu %lu\\n", $_probe_arg0, $_probe_arg1, $_probe_arg2
continue
end
break -probe-stap {library}:otel_memory:free
commands
silent
printf "free %#lx\\n", $_probe_arg0
continue
end
continue
"""


@pytest.fixture(scope="session")
def blocks(hmalloc, build):
    return build("blocks.c", "blocks", "-g", "-fno-builtin")


@pytest.fixture(scope="session")
def notes(hmalloc):
    """{name of the probe: (semaphore, arguments)} as tools read them."""
    if shutil.which("readelf") is None:
        pytest.skip("there is no readelf")
    text = subprocess.run(["readelf", "-nW", LIBRARY], check=True, capture_output=True, text=True).stdout
    found = re.findall(r"Provider: otel_memory\s+Name: (\w+)\s+.*Semaphore: (0x[0-9a-f]+)\s+Arguments: (.*)", text)
    if not found:
        pytest.skip("the library was built without sys/sdt.h")
    return {name: (int(semaphore, 16), arguments.strip()) for name, semaphore, arguments in found}


def test_arguments_are_where_those_of_a_call_are(notes):
    """A reader may take them from there and not read the note."""
    registers = {"x86_64": ["%rdi", "%rsi", "%rdx"], "aarch64": ["x0", "x1", "x2"]}.get(os.uname().machine)
    if registers is None:
        pytest.skip("another processor")
    assert set(notes) == {"alloc", "free"}
    assert notes["alloc"][1] == " ".join(f"8@{each}" for each in registers)
    assert notes["free"][1] == f"8@{registers[0]}"
    assert len({semaphore for semaphore, _ in notes.values()} - {0}) == 2


def trace(program, tmp_path, *arguments):
    script = tmp_path / "script"
    script.write_text(SCRIPT.format(library=LIBRARY))
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("LD_", "HMALLOC_"))}
    return subprocess.run(["gdb", "-nx", "-batch", "-x", script, "--args", program, *arguments], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=300, env={**environment, "DEBUGINFOD_URLS": ""})


def test_gdb_sees_each_sampled_block_come_and_go(notes, blocks, tmp_path):
    if shutil.which("gdb") is None:
        pytest.skip("there is no gdb")
    result = trace(blocks, tmp_path, str(MEGABYTES))
    if "ptrace" in result.stderr and "not permitted" in result.stderr:
        pytest.skip("nothing may be traced here")
    assert "exited normally" in result.stdout, result.stdout[-2000:] + result.stderr[-2000:]
    held, weights, sizes = {}, [], set()
    for line in result.stdout.splitlines():
        match line.split():
            case ["alloc", block, size, weight]:
                assert block not in held, line
                held[block] = int(size)
                weights.append(int(weight))
                sizes.add(int(size))
                assert abs(int(weight) + int(size) / math.expm1(-int(size) / RATE)) <= 1, line
            case ["free", block]:
                assert held.pop(block, None) is not None, line
    assert not held, "all is freed at the end"
    assert 9216 in sizes and 400000 in sizes, "small ones and large ones"
    total = MEGABYTES << 20
    assert abs(sum(weights) - total) < 6 * math.sqrt(total * (RATE + 400_000)), "bytes, not a count"
