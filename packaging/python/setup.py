"""What pyproject.toml cannot say: the libraries are built by CMake, and the wheel is named after what they need."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = Path(__file__).resolve().parent
# A source distribution has a copy of what the libraries are built from.
ROOT = HERE / "native" if (HERE / "native").exists() else HERE.parent.parent
NATIVE = ("CMakeLists.txt", "cmake", "include", "src")
TARGETS = ("hmalloc", "hmalloc-hardened")
LEFT_OUT = ("TESTS", "BENCH", "PDES", "BASELINES")
MACHINES = {62: "x86_64", 183: "aarch64"}  # ELF's numbers
COMPILERS = ("c++", "g++", "clang++")


def libraries_in(folder):
    return [Path(folder, f"lib{target}.so") for target in TARGETS]


def require_tools():
    if not sys.platform.startswith("linux"):
        sys.exit(f"hmalloc: runs on Linux, and this is {sys.platform}")
    if not ({"CXX", "CMAKE_TOOLCHAIN_FILE"} & set(os.environ) or any(map(shutil.which, COMPILERS))):
        sys.exit("hmalloc: building it needs a C++20 compiler, such as Debian's package g++; or install a wheel")
    for tool, package in (("cmake", "cmake"), ("ninja", "ninja-build")):
        if not shutil.which(tool):
            sys.exit(f"hmalloc: building it needs {tool}, such as Debian's package {package}; or build with isolation")


def build_libraries(work):
    """CMake reads CXX and, for another machine, CMAKE_TOOLCHAIN_FILE from the environment."""
    require_tools()
    options = ["-GNinja", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_SHARED_LINKER_FLAGS=-Wl,--strip-debug",
               "-DHMALLOC_INSTALL=OFF", *(f"-DHMALLOC_BUILD_{part}=OFF" for part in LEFT_OUT)]
    try:
        subprocess.run(["cmake", "-S", ROOT, "-B", work, *options], check=True)
        subprocess.run(["cmake", "--build", work, "--target", *TARGETS], check=True)
    except subprocess.CalledProcessError as error:
        sys.exit(f"hmalloc: the library could not be built, see above: {error}")


class BuildPackage(build_py):
    def run(self):
        super().run()
        target = Path(self.build_lib, "hmalloc", "lib")
        target.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as work:
            # HMALLOC_LIBRARIES names a folder in which they are built already.
            built = os.environ.get("HMALLOC_LIBRARIES") or build_libraries(work) or work
            for library in libraries_in(built):
                shutil.copy(library, target)


class BuildWheel(bdist_wheel):
    def get_tag(self):
        """Of any Python 3, and of the oldest glibc that has all that the libraries ask for, as their tables of names say."""
        folder = Path(self.get_finalized_command("build_py").build_lib, "hmalloc", "lib")
        contents = [library.read_bytes() for library in libraries_in(folder)]
        needed = {int(minor) for content in contents for minor in re.findall(rb"\0GLIBC_2\.(\d+)(?=[.\0])", content)}
        if not needed:
            sys.exit("hmalloc: the wheel is for glibc, and this system has another C library")
        return "py3", "none", f"manylinux_2_{max(needed)}_{MACHINES[int.from_bytes(contents[0][18:20], 'little')]}"


class PackSources(sdist):
    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        for name in NATIVE:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            Path(base_dir, "native").mkdir(exist_ok=True)
            copy(ROOT / name, Path(base_dir, "native", name))
        # In the repository it is a link that leads out of the package.
        Path(base_dir, "LICENSE").unlink()
        shutil.copy(HERE / "LICENSE", base_dir)


class Binary(Distribution):
    def has_ext_modules(self):
        return True  # so that all lies where modules for one kind of machine do


setup(
    version=re.search(r"project\(hmalloc VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1],
    cmdclass={"build_py": BuildPackage, "bdist_wheel": BuildWheel, "sdist": PackSources},
    distclass=Binary,
)
