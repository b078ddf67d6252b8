"""What can be seen from the built libraries."""
import pathlib
import re
import subprocess

import symbols

LIBRARIES = ["libhmalloc.so", "libhmalloc-checked.so", "libhmalloc-hardened.so", "libhmalloc-faults.so"]
FAMILY = """malloc free calloc realloc reallocarray posix_memalign aligned_alloc memalign valloc pvalloc
  malloc_usable_size free_sized free_aligned_sized malloc_trim mallinfo mallinfo2 malloc_info malloc_stats
  mallopt __libc_malloc __libc_free __libc_calloc __libc_realloc __libc_memalign __libc_valloc __libc_pvalloc
  cfree""".split()
# By version (src/api/hmalloc.map).  What has been released stays: programs are linked with it.
EXPLICIT = {
    "HMALLOC_0.1": """hm_version hm_malloc hm_calloc hm_realloc hm_aligned_alloc hm_free hm_free_sized hm_usable_size hm_shared_alloc
      hm_shared_free hm_shared_free_sized hm_cache_of hm_shared_cache_of hm_cache_alloc hm_cache_free hm_cache_refill_
      hm_local_alloc hm_local_free hm_local_free_sized hm_local_realloc hm_local_usable_size hm_collect hm_pressure hm_pressure_notify
      hm_heap_create hm_heap_destroy hm_heap_malloc hm_heap_calloc hm_heap_aligned_alloc hm_heap_realloc hm_heap_stats_get
      hm_thread_idle hm_check hm_background_start hm_profile_start hm_profile_stop hm_profile_dump hm_stats_get hm_stats_print""".split(),
    "HMALLOC_LOCAL_0.1": "hm_local_caches_ hm_local_offsets_ hm_local_free_slow_".split()}
BASELINES_OWN = {"libhmalloc_paper": "hmp_local_alloc hmp_local_free hmp_shared_alloc hmp_shared_free".split()}
NOTHROW, ALIGNED = "RKSt9nothrow_t", "St11align_val_t"
OPERATORS = ([f"_Zn{a}m{t}" for a in "wa" for t in ("", NOTHROW, ALIGNED, ALIGNED + NOTHROW)] +
             [f"_Zd{a}Pv{t}" for a in "la" for t in ("", "m", NOTHROW, ALIGNED, "m" + ALIGNED, ALIGNED + NOTHROW)])
# Names of the C++ and unwinding run-time; a weak reference finds them where the program has them anyway.
RUNTIME = re.compile(r"^(_Z|__cxa_|__gxx_|_Unwind_|__once)")
ALLOWED_STRONG = {"__cxa_finalize", "__cxa_atexit"}  # of libc
MOST_TLS = 512


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def names_in(path, which):
    return {line.split()[-1].split("@")[0] for line in run("nm", "-D", which, path).splitlines()}


def versioned_names_in(path):
    """NAME, or NAME@VERSION; the versions themselves are names too, in the output of some linkers."""
    lines = run("nm", "-D", "--defined-only", path).splitlines()
    names = {line.split()[-1].replace("@@", "@").removesuffix("@Base") for line in lines}
    return names - {*EXPLICIT, *(f"{version}@{version}" for version in EXPLICIT)}


def exports(path, expected):
    names = versioned_names_in(path)
    return ([f"{n} is exported, and nobody may rely on it" for n in sorted(names - expected)] +
            [f"{n} is missing" for n in sorted(expected - names)])


def exported(path):
    """Names that others export too have no version, or those who ask for malloc@GLIBC_2.2.5 would not find ours."""
    return exports(path, {*FAMILY, *OPERATORS, *(f"{name}@{version}" for version in EXPLICIT for name in EXPLICIT[version])})


def needed(path):
    libraries = re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-dW", path))
    return [f"needs {n}" for n in libraries if n != "libc.so.6" and not n.startswith("ld-linux")]


def dynamic_flags(path):
    text = run("readelf", "-dW", path)
    return ([f"the flag {f} is missing" for f in ("STATIC_TLS", "NODELETE", "NOW") if f not in text] +
            ["has text relocations"] * ("TEXTREL" in text))


def static_constructors(path):
    """One start() and the compiler's own entry: nothing else runs before main, or malloc would meet unmade objects."""
    text = run("readelf", "-SW", path)
    sizes = {m[1]: int(m[2], 16) // 8 for m in
             re.finditer(r"\.((?:preinit|init|fini)_array)\s+\S+\s+\S+\s+\S+\s+([0-9a-f]+)", text)}
    names = re.findall(r"\b_GLOBAL__sub_I\S*", run("nm", path))
    return ([f"a static constructor: {n}" for n in names] +
            [f"{sizes.get('init_array', 0)} constructors, 2 are expected"] * (sizes.get("init_array") != 2) +
            ["has a .preinit_array"] * ("preinit_array" in sizes))


def thread_local_storage(path):
    """Small enough for the static block's surplus, so that the library can also be loaded late."""
    match = re.search(r"^\s+TLS\s+(?:0x\S+\s+){4}(0x\S+)", run("readelf", "-lW", path), re.M)
    size = int(match[1], 16) if match else 0
    return [f"{size} bytes of thread-local storage"] if size == 0 or size > MOST_TLS else []


def no_cxx_runtime(path):
    strong = re.findall(r" U ([^@\s]+)", run("nm", "-D", "--undefined-only", path))
    return [f"refers to {name}, and not weakly" for name in strong if RUNTIME.match(name) and name not in ALLOWED_STRONG]


def closed_symbols(path):
    """symbols.py has the reason of each.  Where calls fail on demand, system calls go through libc, for tests alone."""
    if pathlib.Path(path).name == "libhmalloc-faults.so":
        return []
    return symbols.compare(names_in(path, "--undefined-only"))


def no_executable_stack(path):
    stack = re.search(r"^\s+GNU_STACK\s.*", run("readelf", "-lW", path), re.M)
    return [] if stack and "RWE" not in stack[0] else ["asks for an executable stack"]


def fast_paths_together(path):
    """malloc and free begin in the same 512 bytes (override/malloc.cc says why)."""
    starts = {m[2]: int(m[1], 16) for m in re.finditer(r"^([0-9a-f]+) T (malloc|free)$", run("nm", path), re.M)}
    return [] if len(starts) == 2 and starts["malloc"] // 512 == starts["free"] // 512 else [f"they begin at {starts}"]


ON_LIBRARIES = (exported, needed, dynamic_flags, static_constructors, thread_local_storage, no_cxx_runtime,
                closed_symbols, no_executable_stack, fast_paths_together)


def on_each(look):
    def check(options):
        complaints = []
        for name in LIBRARIES:
            path = pathlib.Path(options.build, name)
            complaints += [f"{name}: {c}" for c in look(str(path))] if path.exists() else [f"{name} is not built"]
        return complaints
    return check


def baselines(options):
    """They export the family and nothing else, and what holds for hmalloc holds for them, but for the closed symbols."""
    paths = sorted(pathlib.Path(options.build, "baselines").glob("lib*.so"))
    complaints = [] if paths else ["no baseline is built"]
    for path in paths:
        found = exports(str(path), {*FAMILY, *OPERATORS, *BASELINES_OWN.get(path.stem, ())})
        for look in ON_LIBRARIES:
            found += look(str(path)) if look not in (exported, closed_symbols) else []
        complaints += [f"{path.name}: {c}" for c in found]
    return complaints


CHECKS = {**{look.__name__: on_each(look) for look in ON_LIBRARIES}, "baselines": baselines}
