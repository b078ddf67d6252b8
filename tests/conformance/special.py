"""Cases that are more than one run of one program: symbols, linking, the machine's settings, every n-th call."""

import os
import re
import subprocess
import tempfile
from pathlib import Path

from harness import Ending, environment, execute

HERE = Path(__file__).resolve().parent
SOURCES = HERE / "cases"
INCLUDE = HERE.parents[1] / "include"

C_NAMES = """malloc calloc realloc free reallocarray memalign posix_memalign aligned_alloc valloc pvalloc
malloc_usable_size malloc_trim mallinfo mallinfo2 malloc_info malloc_stats mallopt free_sized
free_aligned_sized""".split()
NEW = [f"_Z{op}m{form}" for op in ("nw", "na")
       for form in ("", "RKSt9nothrow_t", "St11align_val_t", "St11align_val_tRKSt9nothrow_t")]
DELETE = [f"_Z{op}Pv{form}" for op in ("dl", "da")
          for form in ("", "m", "RKSt9nothrow_t", "St11align_val_t", "mSt11align_val_t",
                       "St11align_val_tRKSt9nothrow_t")]


class Skip(Exception):
    """Says why a case cannot be run here."""


def verdict(complaint):
    return Ending(1 if complaint else 0, "", complaint, 0.0)


def tool(*argv):
    return subprocess.run([str(a) for a in argv], capture_output=True, text=True, check=True).stdout


def symbols(run, _sub):
    """Exactly the family, the operators and the library's own names."""
    lines = tool("nm", "-D", "--defined-only", run.library).splitlines()
    found = {line.split()[-1].split("@")[0] for line in lines}
    promised = set(C_NAMES + NEW + DELETE)
    missing = sorted(promised - found)
    own = {"hmalloc": "hm_", "hmalloc_paper": "hmp_"}.get(run.name, "-")
    extra = sorted(name for name in found - promised if not name.startswith(own))
    return verdict("".join([f"missing: {' '.join(missing)}\n" if missing else "",
                            f"not promised: {' '.join(extra)}\n" if extra else ""]))


def needed(run, _sub):
    """libc alone; cannot be unloaded; nothing to be patched in its code."""
    dynamic = tool("readelf", "-dW", run.library)
    libraries = re.findall(r"NEEDED.*\[(.*)\]", dynamic)
    foreign = [name for name in libraries if not name.startswith(("libc.so", "ld-linux"))]
    complaints = [f"needs {name}\n" for name in foreign]
    if "NODELETE" not in dynamic:
        complaints.append("may be unloaded: no NODELETE\n")
    if "TEXTREL" in dynamic:
        complaints.append("has text relocations\n")
    return verdict("".join(complaints))


def nth(run, _sub):
    """The whole stress once for each OS call that fails."""
    every = range(1, 201) if run.full else [*range(1, 31), *range(31, 201, 10)]
    seconds = 0.0
    for k in every:
        ending = execute([run.programs / "nth_fail", "nth_os_call_fails"],
                         environment(run.library, HM_FAIL_NTH=k), 60, run.cpu)
        seconds += ending.seconds
        if ending.status != 0 or ending.timed_out:
            ending.stderr = f"HM_FAIL_NTH={k}: {ending.describe()}"
            return ending
    return Ending(0, "", "", seconds)


def overcommit2(run, _sub):
    if Path("/proc/sys/vm/overcommit_memory").read_text().strip() != "2":
        raise Skip("vm.overcommit_memory is not 2: a setting of the whole machine, for a VM of its own")
    return execute([run.programs / "api_realloc", "uniq_overlap"], environment(run.library))


def page_size(run, _sub):
    if os.sysconf("SC_PAGESIZE") == 4096:
        raise Skip("this kernel has 4 KiB pages")
    return execute([run.programs / "platform", "thp_as_set"], environment(run.library))


def dlopen_self(run, _sub):
    env = environment(None, CONFORMANCE_LIBRARY=run.library)
    return execute([run.programs / "loader", "dlopen_self"], env)


def setting(run, sub):
    program = [run.programs / "api_realloc", "uniq_overlap"]
    preload = ["env", f"LD_PRELOAD={run.library}"] if run.library else []
    if sub == "aslr_off":
        return execute(["setarch", "-R", *preload, *program], environment())
    return execute(["sh", "-c", 'ulimit -s unlimited && exec "$@"', "sh", *preload, *program], environment())


def build(folder, compiler, source, *flags):
    """A program linked with hmalloc, made now: how it is linked is what the case is about."""
    output = Path(folder) / "program"
    argv = [compiler, "-O2", "-D_GNU_SOURCE", "-pthread", f"-I{INCLUDE}", SOURCES / source, "-o", output, *flags]
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, check=False)
    return output, (done.stderr or "the compiler failed\n") if done.returncode != 0 else ""


def link_flags(run):
    folder = run.library.parent
    name = run.library.name.removeprefix("lib").removesuffix(".so")
    return [f"-L{folder}", f"-Wl,-rpath,{folder}", f"-l{name}"]


def static(run, sub):
    archive = run.library.with_suffix(".a")
    if sub != "noplt" and not archive.exists():
        raise Skip(f"{archive.name} is not built")
    how = {"static": ("gcc", "static_c.c", "-static", archive),
           "static_pie": ("gcc", "static_c.c", "-static-pie", "-fPIE", archive),
           "static_lto": ("gcc", "static_c.c", "-static", "-flto=1", archive),
           "static_cxx": ("g++", "static_cxx.cc", "-std=c++20", "-static", archive),
           "archive": ("gcc", "static_c.c", archive),
           "noplt": ("gcc", "static_c.c", "-fno-plt", *link_flags(run))}
    with tempfile.TemporaryDirectory() as folder:
        program, complaint = build(folder, *how[sub])
        return verdict(complaint) if complaint else execute([program, "linked"], environment(), 60, run.cpu)


def local(run, sub):
    with tempfile.TemporaryDirectory() as folder:
        program, complaint = build(folder, "gcc", "linked_local.c", *link_flags(run))
        return verdict(complaint) if complaint else execute([program, sub], run.environment(), 60, run.cpu)


def programs(_run, _sub):
    raise Skip("minutes long: tests/integration/run.py, label `integration` of ctest")


SPECIAL = {"!symbols": lambda run, sub: (symbols if sub == "symbols" else needed)(run, sub),
           "!nth": nth, "!overcommit2": overcommit2, "!page_size": page_size, "!dlopen_self": dlopen_self,
           "!setting": setting, "!static": static, "!local": local, "!programs": programs}
