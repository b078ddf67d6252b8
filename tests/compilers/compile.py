#!/usr/bin/env python3
"""Compiles the library's sources and its public headers with each compiler of the list that is installed, warnings being
errors.  Objects only.  At least one gcc and one clang have to be there."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

COMPILERS = {"gcc": [f"g++-{n}" for n in range(12, 15)], "clang": [f"clang++-{n}" for n in range(14, 20)]}
FLAGS = """-std=gnu++20 -O2 -fPIC -fno-rtti -fno-threadsafe-statics -ftls-model=initial-exec -fvisibility=hidden
-fno-builtin-malloc -fno-plt -Wall -Wextra -Wconversion -Wshadow -Werror""".split()


# The public headers as users compile them: each language at the oldest standard that it promises.
USES = Path(__file__).with_name("uses_headers.c")
HEADERS = [["-xc", "-std=c99"], ["-xc", "-std=gnu17", "-O2"], ["-xc++", "-std=c++11"], ["-xc++", "-std=c++20", "-O2"]]
HEADER_FLAGS = "-pedantic -Wall -Wextra -Wconversion -Wshadow -Werror".split()


def jobs_of(root):
    """A name and the compiler's arguments for each object.  What is in the hardened library alone is compiled for that."""
    hardened = re.search(r"set\(HM_HARDENED \$\{HM_ALLOCATOR\} (.*)\)", (root / "CMakeLists.txt").read_text())[1].split()
    for source in sorted((root / "src").glob("*/*.cc")):
        exceptions = "-fexceptions" if source.name == "new_delete.cc" else "-fno-exceptions"
        library = ["-DHM_HARDENED"] if str(source.relative_to(root)) in hardened else []
        yield (f"{source.parent.name}/{source.name}",
               [*FLAGS, exceptions, *library, f"-I{root}/src", f"-I{root}/include", source])
    for words in HEADERS:
        yield " ".join(["the public headers", *words]), [*words, *HEADER_FLAGS, f"-I{root}/include", USES]


def compile_one(compiler, words, output):
    """What the compiler said, empty if all is well."""
    driver = compiler.replace("clang++", "clang").replace("g++", "gcc") if "-xc" in words else compiler
    argv = [driver, *words, "-c", "-o", output]
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, check=False)
    said = (done.stdout + done.stderr).strip()
    return said or ("failed without a word" if done.returncode != 0 else "")


def compile_all(root, compiler, jobs):
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        found = list(jobs_of(root))
        said = pool.map(lambda n: compile_one(compiler, found[n][1], Path(folder, f"{n}.o")), range(len(found)))
        return [f"{name}: {text}" for (name, _), text in zip(found, said, strict=True) if text]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[2])
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    complaints, missing = [], []
    for family, names in COMPILERS.items():
        here = [name for name in names if shutil.which(name)]
        missing += [name for name in names if name not in here]
        if not here:
            complaints.append(f"no {family} at all: one of {' '.join(names)} is needed")
        for name in here:
            found = compile_all(options.root, name, options.jobs)
            print(f"{name}: {'compiles without a word' if not found else f'{len(found)} files do not compile'}", flush=True)
            complaints += [f"{name}: {text}" for text in found]
    print(f"missing: {' '.join(missing) or 'none'}")
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
