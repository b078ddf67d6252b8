"""The made inputs: the same bytes each time, on every machine.  Kept in build/bench/programs, one for each size."""

import json
import random
import shutil
import subprocess
from pathlib import Path

from ...build_paths import SOURCE
from ...errors import Failure

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def make(name: str, folder: Path, size: int) -> None:
    """What is there is left alone; Failure if it cannot be made."""
    folder.mkdir(parents=True, exist_ok=True)
    {"records": _records, "repository": _repository, "crates": _crates}[name](folder, size)


def _words(chance: random.Random, count: int) -> list[str]:
    return ["".join(chance.choices(_LETTERS, k=chance.randint(2, 11))) for _ in range(count)]


def _records(folder: Path, size: int) -> None:
    """The same records as JSON, as XML, and as lines with tabs; these also in a folder for sqlite3."""
    last = folder / f"records-{size}" / "records.tsv"
    if last.is_file():
        return
    chance = random.Random(1)
    words = _words(chance, 3000)
    records = [{"id": number, "name": " ".join(chance.choices(words, k=3)), "price": round(chance.expovariate(0.01), 2),
                "tags": chance.choices(words, k=chance.randint(0, 6)),
                "parts": [{"part": chance.choice(words), "count": chance.randint(1, 99)}
                          for _ in range(chance.randint(0, 4))]} for number in range(size)]
    lines = "".join(f"{each['id']}\t{each['name']}\t{','.join(each['tags'])}\t{each['price']}\n" for each in records)
    elements = "".join(_element(each) for each in records)
    (folder / f"records-{size}.json").write_text(json.dumps(records))
    (folder / f"records-{size}.xml").write_text(f"<records>\n{elements}</records>\n")
    (folder / f"records-{size}.tsv").write_text(lines)
    last.parent.mkdir(exist_ok=True)
    _replace(last, lines)


def _element(record: dict) -> str:
    tags = "".join(f"<tag>{tag}</tag>" for tag in record["tags"])
    parts = "".join(f'<part count="{part["count"]}">{part["part"]}</part>' for part in record["parts"])
    name = f'<name>{record["name"]}</name><price>{record["price"]}</price>'
    return f'<record id="{record["id"]}">{name}{tags}{parts}</record>\n'


def _replace(path: Path, text: str) -> None:
    """Whole or not at all: it tells that everything before it is there."""
    part = path.with_suffix(".part")
    part.write_text(text)
    part.rename(path)


def _repository(folder: Path, size: int) -> None:
    """A repository of so many commits, each of which edits a few of 40 files."""
    target, part = folder / f"repository-{size}", folder / f"repository-{size}.part"
    if target.is_dir():
        return
    shutil.rmtree(part, ignore_errors=True)
    stream = _history(size).encode()
    for command, given in ((["init", "--quiet", "--bare", str(part)], b""),
                           (["-C", str(part), "fast-import", "--quiet"], stream)):
        done = subprocess.run(["git", *command], input=given, capture_output=True, check=False)
        if done.returncode != 0:
            raise Failure(f"git {command[-2]}: {done.stderr.decode(errors='replace').strip()[-200:]}")
    (part / "HEAD").write_text("ref: refs/heads/main\n")
    part.rename(target)


def _history(commits: int) -> str:
    chance = random.Random(2)
    words = _words(chance, 1000)
    files = {f"folder{at % 5}/file{at}.txt": [" ".join(chance.choices(words, k=8)) for _ in range(200)] for at in range(40)}
    said = []
    for number in range(commits):
        message = " ".join(chance.choices(words, k=12))
        said.append(f"commit refs/heads/main\ncommitter A <a@b> {1_600_000_000 + 3600 * number} +0000\n"
                    f"data {len(message)}\n{message}\n")
        changed = chance.sample(sorted(files), 3) if number else sorted(files)
        for name in changed:
            lines = files[name]
            at = chance.randrange(len(lines))
            lines[at:at + chance.randint(0, 4)] = [" ".join(chance.choices(words, k=8)) for _ in range(chance.randint(1, 5))]
            text = "\n".join(lines) + "\n"
            said.append(f"M 644 inline {name}\ndata {len(text)}\n{text}\n")
    return "".join(said)


def _crates(folder: Path, _: int) -> None:
    """The crates that bench/programs/crates asks for, fetched by cargo in the versions of its lock file."""
    source, target = SOURCE / "bench" / "programs" / "crates", folder / "crates"
    lock, home = source / "Cargo.lock", target / "home"
    if (home / "Cargo.lock").is_file() and (home / "Cargo.lock").read_bytes() == lock.read_bytes():
        return
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    try:
        done = subprocess.run(["cargo", "vendor", "--locked", "--versioned-dirs", str(target / "vendor")], cwd=target,
                              capture_output=True, text=True, timeout=300, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Failure(f"cargo vendor: {error}") from error
    if done.returncode != 0:
        raise Failure(f"cargo vendor: {(done.stderr.strip().splitlines() or ['failed'])[-1]}")
    home.mkdir()
    (home / "config.toml").write_text(done.stdout)
    shutil.copy(lock, home)  # last: all is there
