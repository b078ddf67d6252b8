"""memray, which changes where the modules of Python find malloc: it records on hmalloc what it records on glibc."""

import sys

import pytest
from conftest import LIBRARY, PROGRAMS, environment, execute

memray = pytest.importorskip("memray", reason="memray could not be installed")
GONE = memray.AllocatorType.FREE, memray.AllocatorType.MUNMAP


def recorded(file, native):
    """{(function of Python, size, native functions): calls} of the program's own blocks, as they were allocated."""
    calls = {}
    for record in memray.FileReader(str(file)).get_allocation_records():
        if record.size < 60_000 or memray.AllocatorType(record.allocator) in GONE:
            continue
        function = next((frame[0] for frame in record.stack_trace() if frame[0] in ("keep", "churn")), None)
        if function:
            key = function, record.size, tuple(frame[0] for frame in record.hybrid_stack_trace()[:6]) if native else ()
            calls[key] = calls.get(key, 0) + record.n_allocations
    return calls


@pytest.mark.parametrize("mode", ["python", "native"])
def test_it_records_on_hmalloc_what_it_records_on_glibc(tmp_path, mode):
    found = {}
    for name, env in (("glibc", environment()), ("hmalloc", environment(LIBRARY, HMALLOC_VERBOSE=1))):
        ending = execute([sys.executable, PROGRAMS / "known.py", tmp_path / name, mode], env, 120)
        assert ending.status == 0, ending.describe()
        assert (" active in process " in ending.stderr) == (name == "hmalloc")
        found[name] = recorded(tmp_path / name, mode == "native")
    assert found["hmalloc"] == found["glibc"]
    by_function = {}
    for (function, size, _), calls in found["hmalloc"].items():
        by_function[function, size // 10_000] = by_function.get((function, size // 10_000), 0) + calls
    assert by_function == {("keep", 10): 50, ("churn", 6): 200}
