#!/usr/bin/env python3
"""Builds the libraries with each clang that is installed, as CMake does for who has no other compiler, and runs programs on
them: preloaded, and linked against the archive.  gcc's are those of all other tests."""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from compile import COMPILERS

TARGETS = ("hmalloc", "hmalloc-hardened", "hmalloc-checked", "hmalloc_static")
LEFT_OUT = ("TESTS", "BENCH", "PDES", "BASELINES")
PROGRAM = """
#include <memory>
#include <string>
#include <vector>
int main() {
  std::vector<std::unique_ptr<std::string>> words;
  for (int i = 0; i < 1000; i++) words.push_back(std::make_unique<std::string>(i, 'x'));
  return words.back()->size() == 999 ? 0 : 1;
}
"""


class Failed(Exception):
    pass


def run(*words, **variables):
    own = {name: value for name, value in os.environ.items() if not name.startswith(("LD_PRELOAD", "HMALLOC_"))}
    done = subprocess.run([str(w) for w in words], env=own | variables, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"{' '.join(map(str, words))}: {(done.stdout + done.stderr).strip()[-2000:]}")
    return done.stderr


def require_served(said, what):
    if ": active" not in said:
        raise Failed(f"{what} is not served: {said.strip() or 'not a word'}")


def link_all(root, compiler, work):
    both = {"CC": compiler.replace("clang++", "clang"), "CXX": compiler}
    run("cmake", "-G", "Ninja", "-S", root, "-B", work, "-DCMAKE_BUILD_TYPE=Release", "-DHMALLOC_INSTALL=OFF",
        *(f"-DHMALLOC_BUILD_{part}=OFF" for part in LEFT_OUT), **both)
    run("cmake", "--build", work, "--target", *TARGETS)
    program, linked = work / "program", work / "linked"
    program.with_suffix(".cc").write_text(PROGRAM)
    run(compiler, "-O0", program.with_suffix(".cc"), "-o", program)
    for target in ("hmalloc", "hmalloc-hardened", "hmalloc-checked"):
        require_served(run(program, HMALLOC_VERBOSE="1", LD_PRELOAD=str(work / f"lib{target}.so")), f"a program on {target}")
    for static in ([], ["-static"]):
        run(compiler, "-O0", *static, program.with_suffix(".cc"), "-Wl,--undefined=malloc", work / "libhmalloc.a", "-pthread",
            "-o", linked)
        require_served(run(linked, HMALLOC_VERBOSE="1"), " ".join(["a program with the archive", *static]))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[2])
    options = parser.parse_args()
    here = [name for name in COMPILERS["clang"] if shutil.which(name)]
    if not here:
        print(f"no clang at all: one of {' '.join(COMPILERS['clang'])} is needed", file=sys.stderr)
        return 1
    status = 0
    for compiler in here:
        with tempfile.TemporaryDirectory() as folder:
            try:
                link_all(options.root, compiler, Path(folder))
                print(f"{compiler}: its libraries serve programs")
            except Failed as error:
                print(f"{compiler}: {error}", file=sys.stderr)
                status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
