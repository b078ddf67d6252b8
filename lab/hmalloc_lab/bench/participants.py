"""Who is measured: the system's malloc, the peers, hmalloc preloaded and through its own interface, the papers'
allocators, and any library that the user names; and how each of them is put under a program."""

import hashlib
import json
import re
import subprocess
from pathlib import Path

from .. import allocators
from ..build_paths import SOURCE, BuildPaths
from ..errors import Failure
from . import catalogue, releases
from .catalogue import Cell
from .store import AllocatorRow

BASELINES = "baselines"  # in a list of allocators: all of the papers', with their variants and interfaces

_PRELOADED = ("hmalloc", "peer", "user", "baseline", "variant")
# The explicit ways to allocate are programs of their own: the cell's API, and what the program's name ends with.
_PROGRAMS = {"hmalloc-explicit": (catalogue.EXPLICIT, "explicit"),
             "hmalloc-all-shared": (catalogue.ALL_SHARED, "all-shared"),
             "hmalloc_paper-explicit": (catalogue.EXPLICIT, "paper"),
             "hmalloc_paper-all-shared": (catalogue.ALL_SHARED, "paper-all-shared")}
# A baseline under other options: whose, and which.
_VARIANTS = {"hoard-f8": ("hoard", {"HOARD_EMPTY_FRACTION": "1/8"}),
             "hoard-f2": ("hoard", {"HOARD_EMPTY_FRACTION": "1/2"}),
             "ar_malloc-nocache": ("ar_malloc", {"AR_MALLOC_CACHE": "0"})}
# How an allocator is told to have so many arenas.
_ARENAS = {"glibc": ("MALLOC_ARENA_MAX", "{}"), "jemalloc": ("MALLOC_CONF", "narenas:{}"),
           **dict.fromkeys(("ar_malloc", "ar_malloc-nocache"), ("AR_MALLOC_ARENAS", "{}"))}
# Where bench/peers has built nothing, the distribution's packages stand in.
_PACKAGED = {"mimalloc2": ("libmimalloc.so.2", "libmimalloc2.0"),
             "jemalloc": ("libjemalloc.so.2", "libjemalloc2"),
             "gperftools": ("libtcmalloc_minimal.so.4", "libtcmalloc-minimal4")}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")


# ---- Which there are. -----------------------------------------------------------------------------------------------


def everybody(built: BuildPaths, with_peers: bool = True, given: list[str] | None = None) -> list[AllocatorRow]:
    """All that can be measured here; `given`: the user's NAME=PATH."""
    found = [_glibc(), *(_peers(built.state) if with_peers else []), *_hmallocs(built), *_baselines(built)]
    for text in given or []:
        found.append(_given(text, {row.name for row in found}))
    return found


def choose(rows: list[AllocatorRow], wanted: str, with_baselines: bool = False,
           usual: tuple[str, ...] = ()) -> list[AllocatorRow]:
    """Those of a comma-separated list, and those that the user gave by path; where the list is empty, all but the
    baselines, of `usual` if there is such a choice.  And the baselines, if asked for."""
    names = [name for name in wanted.split(",") if name]
    known = {row.name for row in rows} | {BASELINES for row in rows if is_baseline(row)}
    missing = [name for name in names if name not in known]
    if missing:
        raise Failure(f"no allocator {', '.join(missing)} here; there are {', '.join(row.name for row in rows)}, and "
                      f"{BASELINES} for all of the papers' (hmalloc bench peers builds the others)")
    if not names:
        names = [row.name for row in rows if not is_baseline(row) and (not usual or row.name in usual)]
    return [row for row in rows if row.name in names or row.kind == "user"
            or (with_baselines or BASELINES in names) and is_baseline(row)]


def is_baseline(row: AllocatorRow) -> bool:
    """Also one of its variants, and its explicit interfaces."""
    return row.kind != "user" and Path(row.library).parent.name == BASELINES


def _row(name: str, kind: str, version: str, library: Path, environment: dict | None = None) -> AllocatorRow:
    return AllocatorRow(name, kind, version, str(library), checksum(library), environment or {})


def checksum(library: Path | str) -> str:
    return hashlib.sha256(Path(library).read_bytes()).hexdigest()


def _glibc() -> AllocatorRow:
    version = _said("getconf", "GNU_LIBC_VERSION").removeprefix("glibc ")
    package = _said("dpkg-query", "-W", "-f", "${Version}", "libc6")
    return _row("glibc", "system", releases.dated("glibc", package or version or "unknown"), allocators.own_libc().resolve())


def _peers(state: Path) -> list[AllocatorRow]:
    manifest = state / "peers" / "peers.json"
    try:
        built = json.loads(manifest.read_text()) if manifest.is_file() else []
        rows = [_row(peer["name"], "peer", releases.dated(peer["name"], peer["version"]), (SOURCE / peer["path"]).resolve(),
                     peer["environment"])
                for peer in built if (SOURCE / peer["path"]).is_file() and not peer.get("secure")]
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise Failure(f"{manifest}: damaged (hmalloc bench peers --force builds it again)") from error
    return rows + _packaged({row.name for row in rows})


def _packaged(there: set[str]) -> list[AllocatorRow]:
    listed = _said("/sbin/ldconfig", "-p")
    rows = []
    for name, (library, package) in _PACKAGED.items():
        found = re.search(rf"^\s*{re.escape(library)} .*=> (\S+)$", listed, re.MULTILINE)
        if name not in there and found:
            version = _said("dpkg-query", "-W", "-f", "${Version}", package)
            dated = releases.dated(name, f"{version or 'unknown'} (package)")
            rows.append(_row(name, "peer", dated, Path(found[1]).resolve()))
    return rows


def _hmallocs(built: BuildPaths) -> list[AllocatorRow]:
    if built.library is None or not built.library.is_file():
        raise Failure("libhmalloc.so has not been built")
    library = built.library.resolve()
    answer = allocators.ask(library)
    if answer is None:
        raise Failure(f"{library}: does not say that it is hmalloc")
    commit = _said("git", "-C", str(SOURCE), "describe", "--always", "--dirty")
    version = f"{answer.version} ({commit})" if commit else answer.version
    return [_row("hmalloc", "hmalloc", version, library),
            *(_row(f"hmalloc-{api}", "explicit", version, library)
              for api in (catalogue.EXPLICIT, catalogue.ALL_SHARED)),
            AllocatorRow("no-allocator", "no-allocator", "no allocator: an array's blocks in turn, or a free list")]


def _baselines(built: BuildPaths) -> list[AllocatorRow]:
    """As far as they are built."""
    found = {name: library.resolve() for name, library in built.baselines.items()}
    rows = [_row(name, "baseline", "from the paper", library) for name, library in found.items()]
    rows += [_row(name, "variant", "from the paper", found[of], options)
             for name, (of, options) in _VARIANTS.items() if of in found]
    return rows + [_row(name, "explicit", "from the paper", found[of]) for name in _PROGRAMS
                   if (of := name.partition("-")[0]) in found]


def _given(text: str, taken: set[str]) -> AllocatorRow:
    name, equals, path = text.partition("=")
    if not equals or not path or not _NAME.fullmatch(name):
        raise Failure(f"--allocator {text}: expected NAME=PATH.so")
    if name in taken:
        raise Failure(f"--allocator {text}: there is an allocator {name} already, give it another name")
    return _row(name, "user", "as given", allocators.usable(Path(path).resolve()))


def _said(*command: str) -> str:
    """What a tool of the system prints; nothing where there is no such tool."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


# ---- Which may go on. -----------------------------------------------------------------------------------------------


def require_unchanged(rows: list[AllocatorRow]) -> None:
    """For a campaign that goes on: numbers of two builds must not be mixed under one name."""
    for row in rows:
        if row.library and not Path(row.library).is_file():
            raise Failure(f"{row.name}: {row.library} is gone since the campaign began: it cannot go on")
        if row.library and checksum(row.library) != row.sha256:
            raise Failure(f"{row.name}: {row.library} has changed since the campaign began: it cannot go on, "
                          "begin a new one")


# ---- How one is put under a program. --------------------------------------------------------------------------------


def serves(row: AllocatorRow, cell: Cell) -> bool:
    if cell.only:
        return row.name in cell.only
    if row.kind == "explicit":
        # Simulations have the engine's own choice of allocators.
        return _PROGRAMS[row.name][0] in cell.apis and not (is_baseline(row) and cell.family == "simulation")
    if row.kind == "no-allocator":
        return catalogue.NO_ALLOCATOR in cell.apis
    if row.kind == "variant":
        return row.name in cell.variants
    if "share" in cell.point and row.kind == "system":
        return False  # its code is not told from the rest of its library
    return "arenas" not in cell.point or row.name in _ARENAS


def executable(row: AllocatorRow, cell: Cell) -> str:
    if row.kind == "explicit":
        return f"{cell.workload}-{_PROGRAMS[row.name][1]}"
    return f"{cell.workload}-no-allocator" if row.kind == "no-allocator" else cell.workload


def preload(row: AllocatorRow) -> str:
    return row.library if row.kind in _PRELOADED else ""


def environment(row: AllocatorRow, cell: Cell) -> dict[str, str]:
    if "arenas" not in cell.point:
        return row.environment
    name, pattern = _ARENAS[row.name]
    return row.environment | {name: pattern.format(cell.point["arenas"])}


def counting(row: AllocatorRow, file: Path) -> dict[str, str]:
    """What has a baseline write its counters into a file when the program ends."""
    if not is_baseline(row):
        return {}
    prefix = Path(row.library).stem.removeprefix("lib").partition("-")[0].upper()  # libvvmalloc-2.so: VVMALLOC
    return {f"{prefix}_STATS_FILE": str(file)}
