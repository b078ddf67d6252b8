"""Who is measured: the system's malloc, the peers that bench/peers built, hmalloc preloaded and through its own API."""
import hashlib
import json
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Allocator:
    name: str
    version: str
    library: Path | None = None     # preloaded; for an explicit API: what the program is linked with
    api: str = ""                   # local, shared or floor: another executable, nothing preloaded
    environment: dict = field(default_factory=dict, hash=False, compare=False)

    @property
    def is_peer(self):
        return not self.name.startswith(("hmalloc", "floor"))

    @property
    def preload(self):
        return self.library if not self.api else None

    def serves(self, cell):
        return not self.api or self.api in cell.apis

    def sha256(self):
        return hashlib.sha256(self.library.read_bytes()).hexdigest() if self.library else ""


def glibc():
    text = subprocess.run(["getconf", "GNU_LIBC_VERSION"], capture_output=True, text=True, check=False).stdout
    return Allocator("glibc", text.strip().removeprefix("glibc ") or "?")


def peers():
    manifest = ROOT / "build" / "peers" / "peers.json"
    if not manifest.exists():
        return []
    rows = json.loads(manifest.read_text())
    return [Allocator(row["name"], row["version"], ROOT / row["path"], environment=row["environment"]) for row in rows
            if (ROOT / row["path"]).exists()]


def hmallocs(library, executables):
    if not library.exists():
        return []
    floor = Allocator("floor", "no allocator: an array's blocks in turn", api="floor")
    header = (ROOT / "include" / "hmalloc" / "hmalloc.h").read_text()
    commit = subprocess.run(["git", "-C", str(ROOT), "describe", "--always", "--dirty"], capture_output=True, text=True,
                            check=False).stdout.strip()
    version = re.search(r'HM_VERSION_STRING "([^"]+)"', header)[1] + (f" ({commit})" if commit else "")
    found = [Allocator("hmalloc", version, library)]
    for api in ("local", "shared"):
        if any(executables.glob(f"*-{api}")):
            found.append(Allocator(f"hmalloc-{api}", version, library, api))
    return [*found, floor]


def named(text):
    """NAME=PATH of --lib."""
    name, _, path = text.partition("=")
    library = Path(path).resolve()
    if not name or not library.is_file():
        raise ValueError(f"--lib {text}: expected NAME=PATH of a library that exists")
    return Allocator(name, "as given", library)


def chosen(everybody, wanted):
    known = {allocator.name: allocator for allocator in everybody}
    if not wanted:
        return list(known.values())
    names = wanted.split(",")
    missing = [name for name in names if name not in known]
    if missing:
        raise ValueError(f"no allocator {', '.join(missing)}; known: {', '.join(known)} (bench/peers builds the peers)")
    return [known[name] for name in names]
