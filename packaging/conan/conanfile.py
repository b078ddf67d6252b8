"""hmalloc for Conan 2, from this tree.

conan create packaging/conan [-o "hmalloc/*:shared=True"] [-o "hmalloc/*:hardened=True"]"""

import re
from pathlib import Path

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, rm, rmdir

SOURCES = ("CMakeLists.txt", "LICENSE", "README.md", "CHANGELOG.md", "SECURITY.md", "cmake/*", "include/hmalloc/*", "src/*",
           "docs/*")


class Hmalloc(ConanFile):
    name = "hmalloc"
    license = "MIT"
    description = "a malloc for threads that hand memory to each other"
    topics = ("malloc", "allocator", "memory", "threads")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "hardened": [True, False]}
    default_options = {"shared": False, "hardened": False}

    @property
    def _tree(self):
        return Path(self.recipe_folder).parents[1]

    def set_version(self):
        project = (self._tree / "CMakeLists.txt").read_text()
        self.version = re.search(r"project\(hmalloc VERSION ([0-9.]+)", project).group(1)

    def export_sources(self):
        for pattern in SOURCES:
            copy(self, pattern, src=self._tree, dst=self.export_sources_folder)

    def validate(self):
        if self.settings.os != "Linux" or self.settings.arch not in ("x86_64", "armv8"):
            raise ConanInvalidConfiguration("hmalloc needs Linux on x86-64 or AArch64")

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        for part in ("TESTS", "BENCH", "PDES", "BASELINES"):
            toolchain.cache_variables[f"HMALLOC_BUILD_{part}"] = False
        toolchain.cache_variables["HMALLOC_HARDENED"] = bool(self.options.hardened)
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", src=self.source_folder, dst=Path(self.package_folder) / "licenses")
        # Conan writes what tells CMake and pkg-config; and one kind of library must not hide the other.
        for folder in ("lib/cmake", "lib/pkgconfig", "share"):
            rmdir(self, Path(self.package_folder) / folder)
        rm(self, "*.a" if self.options.shared else "libhmalloc.so*", Path(self.package_folder) / "lib")

    def package_info(self):
        self.cpp_info.libs = ["hmalloc"]
        self.cpp_info.system_libs = ["pthread"]
        if not self.options.shared:  # a program whose own objects never call malloc still gets it from the archive
            self.cpp_info.exelinkflags = ["-Wl,--undefined=malloc"]
