"""The allocators a program can be run on: the system's, hmalloc, or any library that can be preloaded."""

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from .build_paths import BuildPaths
from .errors import Failure

# Not libhmalloc_paper.so: that is a baseline.
_HMALLOC = re.compile(r"libhmalloc(-\w+)?\.so")
# The loader splits LD_PRELOAD at both.
_SEPARATORS = re.compile(r"[ :]+")
_ACTIVE = re.compile(r"^hmalloc (?P<version>\S+)( checked| hardened)?: active in process (?P<pid>\d+)", re.MULTILINE)
_OPTIONS = re.compile(r"^hmalloc: options (?P<options>.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Allocator:
    """A name for the tables, and the library to preload; None for the program's own malloc."""

    name: str
    library: Path | None

    @property
    def is_hmalloc(self) -> bool:
        return self.library is not None and is_hmalloc(self.library)

    def preload(self, already: str) -> str:
        """LD_PRELOAD for a program: this library before what the user preloads anyway."""
        others = [entry for entry in _SEPARATORS.split(already) if entry and not is_hmalloc(entry)]
        return ":".join(([str(self.library)] if self.library else []) + others)


def is_hmalloc(library: Path | str) -> bool:
    return _HMALLOC.match(os.path.basename(library)) is not None


def choose(what: str, built: BuildPaths) -> Allocator:
    """The allocator that the user means by `hmalloc`, `checked`, `hardened`, `system`, `glibc`, a baseline's or a peer's
    name, or a path."""
    if what == "system":
        return Allocator("system", None)
    if what == "glibc":
        return Allocator("glibc", own_libc())
    if what in ("hmalloc", "checked", "hardened"):
        if built.library is None:
            raise Failure("libhmalloc.so has not been built")
        library = built.library if what == "hmalloc" else built.library.with_name(f"libhmalloc-{what}.so")
        return Allocator(what, usable(library.resolve()))
    known = built.baselines | built.peers
    if what in known:
        return Allocator(what, usable(known[what].resolve()))
    if "/" not in what and not what.endswith(".so"):
        names = ", ".join(["hmalloc", "checked", "hardened", "system", "glibc", *known])
        raise Failure(f"{what}: no such allocator ({names}, or the path of a library)")
    path = Path(what).resolve()
    return Allocator(path.name.removeprefix("lib").split(".so")[0], usable(path))


def choose_several(words: list[str], built: BuildPaths) -> list[Allocator]:
    """Each word is one or several of them, with commas between; who is named twice counts once."""
    named = [name for word in words for name in ([word] if Path(word).is_file() else word.split(","))]
    chosen = list(dict.fromkeys(choose(name, built) for name in named if name))
    if not chosen:
        raise Failure("--allocator: which one? (hmalloc compare --help)")
    return chosen


def told_apart(chosen: list[Allocator]) -> list[Allocator]:
    """Namesakes from two folders by their paths."""
    libraries = {each.name: {other.library for other in chosen if other.name == each.name} for each in chosen}
    return [Allocator(str(each.library), each.library) if len(libraries[each.name]) > 1 else each for each in chosen]


def own_libc() -> Path:
    """Preloaded, glibc comes before whatever allocator a program links."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = Path(line.split(maxsplit=5)[-1])
        if path.name.startswith(("libc.so", "libc-")):
            return path
    raise Failure("these tools do not run on glibc")


def usable(library: Path) -> Path:
    """The loader only warns of a library that it cannot preload and goes on without: here that is an error."""
    if not library.is_file():
        raise Failure(f"{library}: no such library")
    if _SEPARATORS.search(str(library)):
        raise Failure(f"{library}: cannot be preloaded, its path has a space or a colon")
    try:
        trial = subprocess.run(
            ["/bin/true"], env={"LD_PRELOAD": str(library)}, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, errors="replace", timeout=20)
    except subprocess.TimeoutExpired as error:
        raise Failure(f"{library}: unusable library, /bin/true hangs with it") from error
    if "cannot be preloaded" in trial.stderr:
        reason = re.search(r"cannot be preloaded \((.*?)\)", trial.stderr)
        raise Failure(f"{library}: unusable library: {reason[1] if reason else trial.stderr.strip()}")
    if trial.returncode != 0:
        raise Failure(f"{library}: unusable library, /bin/true fails with it: {_last_line(trial.stderr)}")
    return library


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["it prints nothing"])[-1]


def active_pids(stderr: str) -> set[int]:
    """The processes in which hmalloc said that it is active."""
    return {int(match["pid"]) for match in _ACTIVE.finditer(stderr)}


@dataclass(frozen=True)
class Answer:
    """What hmalloc says about itself under HMALLOC_VERBOSE=1, in the user's environment."""

    version: str
    options: str
    remarks: list[str]


def ask(hmalloc: Path) -> Answer | None:
    environment = os.environ | {"LD_PRELOAD": str(hmalloc), "HMALLOC_VERBOSE": "1"}
    environment.pop("HMALLOC_SHOW_STATS", None)
    said = subprocess.run(
        ["/bin/true"], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        errors="replace", timeout=20).stderr
    active, options = _ACTIVE.search(said), _OPTIONS.search(said)
    if not active:
        return None
    remarks = [
        line for line in said.splitlines()
        if line.startswith("hmalloc") and not _ACTIVE.match(line) and not _OPTIONS.match(line)]
    # VERBOSE is our own doing.
    words = [word for word in options["options"].split() if not word.startswith("VERBOSE=")] if options else []
    return Answer(active["version"], " ".join(words), remarks)
