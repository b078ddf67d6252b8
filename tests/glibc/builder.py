"""Builds glibc's tests of malloc outside of its tree: its own support/ as a library, then one program a test."""

import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Headers inside glibc that its tests include; libc-config.h and config.h are of its build, and empty here.
INTERNAL = ("include/array_length.h", "include/libc-diag.h", "include/intprops.h", "include/libc-pointer-arith.h",
            "include/scratch_buffer.h", "include/alloc_buffer.h", "sysdeps/generic/malloc-size.h",
            "sysdeps/generic/malloc-alignment.h")
OF_THE_BUILD = ("config.h", "libc-config.h")
# Parts of libc that are private to it, and that tests call.
PRIVATE = ("alloc_buffer_*.c", "dynarray_*.c", "scratch_buffer_*.c")
AUXILIARY = {"tst-interpose-nothread": "tst-interpose-aux-nothread.c", "tst-interpose-thread": "tst-interpose-aux-thread.c"}
DEFINES = {"tst-malloc-thread-fail": ("-DPOSIX_MEMALIGN_SETS_ERRNO",)}


class Builder:
    def __init__(self, source, work, compiler="cc"):
        self.source = source
        self.work = work
        self.library = work / "libsupport.a"
        headers = work / "headers"
        headers.mkdir(parents=True, exist_ok=True)
        for name in INTERNAL:
            if (source / name).exists():
                shutil.copy(source / name, headers)
        for name in OF_THE_BUILD:
            (headers / name).touch()
        # An allocation that the compiler sees through is one that the allocator never gets.
        self.compile = [compiler, "-w", "-g", "-O1", "-fno-builtin", "-D_GNU_SOURCE", "-DTEST_NO_MALLOPT",
                        "-include", str(HERE / "outside.h"), f"-I{headers}", f"-I{source}", f"-I{source / 'support'}",
                        f"-I{source / 'malloc'}"]

    def support(self):
        """What does not compile outside is left out: a test that needs it does not link, and is in the table."""
        if self.library.exists():
            return
        objects = self.work / "objects"
        objects.mkdir(exist_ok=True)
        sources = [f for f in (self.source / "support").glob("*.c") if not f.name.startswith(("tst-", "test-", "links-"))]
        for pattern in PRIVATE:
            sources += (self.source / "malloc").glob(pattern)
        made = []
        for file in sorted(sources):
            made.append(objects / (file.stem + ".o"))
            if subprocess.run([*self.compile, "-c", file, "-o", made[-1]], capture_output=True, check=False).returncode:
                made.pop()
        subprocess.run(["ar", "rcs", self.library, *made], check=True)

    def program(self, name):
        """(the program, or None; what the compiler said)"""
        program = self.work / "programs" / name
        program.parent.mkdir(exist_ok=True)
        if program.exists():
            return program, ""
        sources = [self.source / "malloc" / (name + ".c")]
        if name in AUXILIARY:
            sources.append(self.source / "malloc" / AUXILIARY[name])
        command = [*self.compile, *DEFINES.get(name, ()), *sources, self.library, "-pthread", "-ldl", "-o", program]
        ending = subprocess.run(command, capture_output=True, text=True, check=False)
        if ending.returncode:
            said = [line for line in ending.stderr.splitlines() if "error:" in line or "undefined" in line]
            return None, (said or ["does not build"])[0][-200:]
        return program, ""
