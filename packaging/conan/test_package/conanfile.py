"""Is the package usable?  A program that links it says that hmalloc serves it."""

from conan import ConanFile
from conan.tools.cmake import CMake, cmake_layout


class UsesHmalloc(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeDeps", "CMakeToolchain"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def test(self):
        program = f'"{self.cpp.build.bindir}/program"'
        self.run(program, env="conanrun")
        self.run(f"HMALLOC_VERBOSE=1 {program} 2>&1 | grep ': active'", env="conanrun")
