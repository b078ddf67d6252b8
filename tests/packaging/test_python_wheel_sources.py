"""The wheel as those who publish it make it, from the source distribution, by the tools that it names itself.

    ctest --preset release -R packaging.python_sources       two minutes; an index of Python packages is needed
"""

import os
import re
import shutil
import subprocess
import sys
import zipfile

import pytest
from test_python_wheel import ROOT, environment, must, sources  # noqa: F401

AUDITWHEEL = "auditwheel==6.8.2"
ARM = {"CMAKE_TOOLCHAIN_FILE": str(ROOT / "cmake/aarch64.cmake")}


@pytest.fixture(scope="module")
def tools(tmp_path_factory):
    """A Python that has auditwheel."""
    folder = tmp_path_factory.mktemp("tools")
    must(sys.executable, "-m", "venv", folder)
    done = subprocess.run([folder / "bin/pip", "install", "-q", "--retries", "1", "--timeout", "15", AUDITWHEEL],
                          env=environment(), capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"pip cannot fetch {AUDITWHEEL}: {done.stderr.strip().splitlines()[-1]}")
    return folder / "bin/python"


@pytest.mark.parametrize("machine, variables", [(os.uname().machine, {}), ("aarch64", ARM)])
def test_the_wheel_is_built_from_its_sources(sources, tools, tmp_path, machine, variables):  # noqa: F811
    if variables and not shutil.which("aarch64-linux-gnu-g++"):
        pytest.skip("the cross compiler for AArch64 is missing (Debian: g++-aarch64-linux-gnu)")
    must(tools, "-m", "pip", "wheel", "--no-deps", "-w", tmp_path, sources, env=environment(**variables))
    [wheel] = tmp_path.glob("*.whl")
    [tag] = re.fullmatch(r"hmalloc-[\d.]+-py3-none-(manylinux_2_\d+_\w+)\.whl", wheel.name).groups()
    assert tag.endswith(machine)
    shown = must(tools, "-m", "auditwheel", "show", wheel)
    assert f'"{tag}"' in shown, shown
    with zipfile.ZipFile(wheel) as archive:
        assert all(b"\0.debug_info\0" not in archive.read(f"hmalloc/lib/{library}.so")
                   for library in ("libhmalloc", "libhmalloc-hardened"))
