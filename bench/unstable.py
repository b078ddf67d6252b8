"""A library from Debian's unstable distribution, where crates lag behind: fetched with apt from the archive that this
machine uses, checked by its signatures, into a folder of ours.  Nothing of the system is changed."""

import re
import subprocess
from pathlib import Path

import older_glibc

_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


class Unavailable(Exception):
    pass


def fetch(package: str, version: str, pattern: str, folder: Path, target: Path) -> None:
    """The file of the package's library that matches, as `target`, so that this machine's glibc loads it."""
    downloaded = _download(package, version, folder)
    _said("dpkg", "-x", str(downloaded), str(folder / "unpacked"))
    found = [path for path in sorted((folder / "unpacked").rglob(pattern)) if not path.is_symlink()]
    if not found:
        raise Unavailable(f"{downloaded.name} has no {pattern}")
    target.write_bytes(found[0].read_bytes())
    glibc = _said("getconf", "GNU_LIBC_VERSION").split()[-1].split(".")
    try:
        older_glibc.let_load(target, (int(glibc[0]), int(glibc[1])))
    except older_glibc.TooNew as error:
        target.unlink()
        raise Unavailable(str(error)) from error


def _download(package: str, version: str, folder: Path) -> Path:
    sources = folder / "sources"
    for made in (sources, folder / "lists" / "partial", folder / "cache" / "archives" / "partial"):
        made.mkdir(parents=True, exist_ok=True)
    (sources / "unstable.sources").write_text(f"Types: deb\nURIs: {_archive()}\nSuites: unstable\nComponents: main\n"
                                              f"Signed-By: {_KEYRING}\n")
    options = [word for name, value in {
        "Dir::Etc::sourcelist": "/dev/null", "Dir::Etc::sourceparts": sources, "Dir::State::lists": folder / "lists",
        "Dir::Cache": folder / "cache", "APT::Sandbox::User": "root"}.items() for word in ("-o", f"{name}={value}")]
    _said("apt-get", *options, "update")
    _said("apt-get", *options, "download", f"{package}={version}", cwd=folder)
    return next(folder.glob(f"{package}_*.deb"))


def _archive() -> str:
    """Where this machine has its packages from, if it is a Debian."""
    listed = _said("apt-get", "indextargets", "--format", "$(ORIGIN) $(CODENAME) $(REPO_URI)", "Created-By: Packages")
    found = re.search(r"^Debian [a-z]+ (\S+)$", listed, re.MULTILINE)
    if not found or not Path(_KEYRING).is_file():
        raise Unavailable("this machine has no Debian archive")
    return found[1]


def _said(*command: str, cwd: Path | None = None) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, timeout=300)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{command[0]}: {error}") from error
    if done.returncode != 0:
        raise Unavailable((done.stderr.strip().splitlines() or [f"{command[0]} failed"])[-1])
    return done.stdout
