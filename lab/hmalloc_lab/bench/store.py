"""Where every raw run is kept: one SQLite file, written after each run, so that nothing measured is ever lost.

A file holds one or more campaigns; a campaign is one call of `bench quick|paper|full`, with its environment, cells and
allocators as they were.  Files of another version are refused, never converted in place.
"""

import json
import os
import sqlite3
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ..errors import Failure
from .catalogue import Cell

VERSION = 2
_APPLICATION = 0x686D616C  # "hmal"

_SCHEMA = """
CREATE TABLE campaign (
  id INTEGER PRIMARY KEY, started TEXT NOT NULL, finished TEXT, profile TEXT NOT NULL, command TEXT NOT NULL,
  seed INTEGER NOT NULL, rounds INTEGER NOT NULL, environment TEXT NOT NULL);
CREATE TABLE cell (
  campaign INTEGER NOT NULL REFERENCES campaign, position INTEGER NOT NULL, name TEXT NOT NULL, definition TEXT NOT NULL,
  PRIMARY KEY (campaign, name));
CREATE TABLE allocator (
  campaign INTEGER NOT NULL REFERENCES campaign, position INTEGER NOT NULL, name TEXT NOT NULL, kind TEXT NOT NULL,
  version TEXT NOT NULL, library TEXT NOT NULL, sha256 TEXT NOT NULL, environment TEXT NOT NULL,
  PRIMARY KEY (campaign, name));
CREATE TABLE round (
  campaign INTEGER NOT NULL REFERENCES campaign, number INTEGER NOT NULL, started TEXT NOT NULL,
  lost_share REAL, longest_gap_us REAL, noisy INTEGER NOT NULL, PRIMARY KEY (campaign, number));
CREATE TABLE run (
  id INTEGER PRIMARY KEY, campaign INTEGER NOT NULL REFERENCES campaign, round INTEGER NOT NULL, cell TEXT NOT NULL,
  allocator TEXT NOT NULL, started TEXT NOT NULL, status TEXT NOT NULL, reason TEXT NOT NULL, metrics TEXT NOT NULL,
  resident TEXT NOT NULL, latency TEXT NOT NULL);
CREATE UNIQUE INDEX run_of ON run (campaign, round, cell, allocator);
"""

# How a run ended.  Anything but OK has a reason, and no metrics that count.
OK, CRASHED, HUNG, NOT_LOADED, FAILED = "ok", "crashed", "hung", "not loaded", "failed"


@dataclass(frozen=True)
class AllocatorRow:
    """Who was measured.  kind: system | peer | hmalloc | explicit | baseline | variant (of a baseline) | user (a library
    that the user named) | no-allocator."""

    name: str
    kind: str
    version: str
    library: str = ""
    sha256: str = ""
    environment: dict[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class RoundRow:
    """What was found by the probe before the round: CPU time lost to others, the longest pause."""

    number: int
    started: str
    lost_share: float | None = None
    longest_gap_us: float | None = None
    noisy: bool = False


@dataclass(frozen=True)
class Run:
    round: int
    cell: str
    allocator: str
    started: str
    status: str = OK
    reason: str = ""
    metrics: dict = field(default_factory=dict, hash=False)    # numbers by name; `series`: [[x, y], ...]
    resident: list = field(default_factory=list, hash=False)   # [[milliseconds since the start, KB], ...]
    latency: dict = field(default_factory=dict, hash=False)    # "malloc", "free": HdrHistograms, encoded


@dataclass
class Campaign:
    """One campaign as it is in the file."""

    id: int
    started: str
    finished: str | None
    profile: str
    command: str
    seed: int
    rounds: int                       # planned
    environment: dict
    cells: list[Cell]
    allocators: list[AllocatorRow]
    round_rows: list[RoundRow]
    runs: list[Run]


class Store:
    """An open file.  One writer; any number of readers beside it."""

    def __init__(self, path: Path, create: bool = False) -> None:
        self.path = path
        if not create and not path.is_file():
            raise Failure(f"{path}: no such database (hmalloc bench quick makes one)")
        self._may_write = create or os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)
        try:
            if create:
                path.parent.mkdir(parents=True, exist_ok=True)
            # Of a file that is somebody else's, or lies where nothing may be written, nobody changes anything.
            name = str(path) if self._may_write else f"{path.resolve().as_uri()}?immutable=1"
            self._db = sqlite3.connect(name, isolation_level=None, timeout=10, uri=not self._may_write)
            self._open(create)
        except (OSError, sqlite3.Error) as error:
            raise Failure(f"{path}: {_plain(error)}") from error

    def _open(self, create: bool) -> None:
        tables = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if create and tables == 0:
            self._db.executescript(f"{_SCHEMA} PRAGMA application_id = {_APPLICATION}; PRAGMA user_version = {VERSION};")
        application = self._db.execute("PRAGMA application_id").fetchone()[0]
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if application != _APPLICATION:
            raise Failure(f"{self.path}: not a database of hmalloc bench")
        if version != VERSION:
            raise Failure(f"{self.path}: a database of version {version}, this hmalloc reads and writes version "
                          f"{VERSION}: give another file with --db")
        if self._may_write:  # a crash may lose the last run, never the file
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = NORMAL")

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_) -> None:
        self._db.close()

    # ---- Writing. ---------------------------------------------------------------------------------------------------

    def begin(self, started: str, profile: str, command: str, seed: int, rounds: int, environment: dict,
              cells: Iterable[Cell], allocators: Iterable[AllocatorRow]) -> int:
        """A new campaign; its number."""
        with self._transaction() as db:
            number = db.execute(
                "INSERT INTO campaign (started, profile, command, seed, rounds, environment) VALUES (?, ?, ?, ?, ?, ?)",
                (started, profile, command, seed, rounds, json.dumps(environment))).lastrowid
            db.executemany("INSERT INTO cell VALUES (?, ?, ?, ?)",
                           [(number, at, cell.name, json.dumps(asdict(cell))) for at, cell in enumerate(cells)])
            db.executemany("INSERT INTO allocator VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                           [(number, at, row.name, row.kind, row.version, row.library, row.sha256,
                             json.dumps(row.environment)) for at, row in enumerate(allocators)])
        return number

    def add_round(self, campaign: int, row: RoundRow) -> None:
        with self._transaction() as db:
            db.execute("INSERT OR REPLACE INTO round VALUES (?, ?, ?, ?, ?, ?)",
                       (campaign, row.number, row.started, row.lost_share, row.longest_gap_us, row.noisy))

    def add(self, campaign: int, run: Run) -> None:
        with self._transaction() as db:
            db.execute(
                "INSERT OR REPLACE INTO run (campaign, round, cell, allocator, started, status, reason, metrics, "
                "resident, latency) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (campaign, run.round, run.cell, run.allocator, run.started, run.status, run.reason,
                 json.dumps(run.metrics), json.dumps(run.resident), json.dumps(run.latency)))

    def finish(self, campaign: int, finished: str, rounds: int | None = None) -> None:
        """rounds: as many as there was time for, where that was the plan."""
        with self._transaction() as db:
            db.execute("UPDATE campaign SET finished = ?, rounds = coalesce(?, rounds) WHERE id = ?",
                       (finished, rounds, campaign))

    def _transaction(self) -> "_Transaction":
        return _Transaction(self._db, self.path)

    # ---- Reading. ---------------------------------------------------------------------------------------------------

    def campaigns(self) -> list[tuple[int, str, str]]:
        """(number, started, profile) of each, oldest first."""
        return self._db.execute("SELECT id, started, profile FROM campaign ORDER BY id").fetchall()

    def unfinished(self, profile: str = "") -> int | None:
        """The last campaign, of that profile, that has not come to its end."""
        return self._db.execute("SELECT max(id) FROM campaign WHERE finished IS NULL AND ? IN ('', profile)",
                                (profile,)).fetchone()[0]

    def finished(self, profile: str) -> int | None:
        """The last campaign of that profile that has come to its end."""
        return self._db.execute("SELECT max(id) FROM campaign WHERE finished IS NOT NULL AND profile = ?",
                                (profile,)).fetchone()[0]

    def done(self, campaign: int) -> set[tuple[int, str, str]]:
        """(round, cell, allocator) of the runs that are there already."""
        return set(self._db.execute("SELECT round, cell, allocator FROM run WHERE campaign = ?", (campaign,)))

    def load(self, campaign: int | None = None) -> Campaign:
        """That campaign; by default the last one."""
        try:
            return self._load(campaign)
        except (sqlite3.Error, ValueError, TypeError, AttributeError, KeyError) as error:
            raise Failure(f"{self.path}: damaged: {_plain(error)}") from error

    def _load(self, campaign: int | None) -> Campaign:
        wanted = "ORDER BY id DESC LIMIT 1" if campaign is None else "WHERE id = ?"
        found = self._db.execute(
            f"SELECT id, started, finished, profile, command, seed, rounds, environment FROM campaign {wanted}",
            () if campaign is None else (campaign,)).fetchone()
        if found is None:
            raise Failure(f"{self.path}: no campaign {campaign} in it" if campaign else f"{self.path}: empty")
        number = found[0]
        cells = [_cell(json.loads(text)) for (text,) in self._db.execute(
            "SELECT definition FROM cell WHERE campaign = ? ORDER BY position", (number,))]
        allocators = [AllocatorRow(*row[:5], json.loads(row[5])) for row in self._db.execute(
            "SELECT name, kind, version, library, sha256, environment FROM allocator WHERE campaign = ? "
            "ORDER BY position", (number,))]
        rounds = [RoundRow(*row[:4], bool(row[4])) for row in self._db.execute(
            "SELECT number, started, lost_share, longest_gap_us, noisy FROM round WHERE campaign = ? ORDER BY number",
            (number,))]
        runs = [Run(*row[:6], *map(json.loads, row[6:])) for row in self._db.execute(
            "SELECT round, cell, allocator, started, status, reason, metrics, resident, latency FROM run "
            "WHERE campaign = ? ORDER BY id", (number,))]
        environment = json.loads(found[7])
        if not isinstance(environment, dict):
            raise ValueError("what is said of the machine is no table")
        return Campaign(*found[:7], environment, cells, allocators, rounds, runs)


class _Transaction:
    """All or nothing; a full disk is a Failure, what was written before it stays."""

    def __init__(self, db: sqlite3.Connection, path: Path) -> None:
        self._db, self._path = db, path

    def __enter__(self) -> sqlite3.Connection:
        try:
            self._db.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            raise Failure(f"{self._path}: {_plain(error)}", 1) from error
        return self._db

    def __exit__(self, kind, error, _) -> None:
        try:
            self._db.execute("COMMIT" if kind is None else "ROLLBACK")
        except sqlite3.Error as second:
            if error is None:
                error = second
        if isinstance(error, sqlite3.Error):
            raise Failure(f"{self._path}: {_plain(error)}; what was measured before is kept", 1) from error


def _cell(definition: dict) -> Cell:
    return Cell(**definition | {key: tuple(definition.get(key, ())) for key in ("apis", "only", "variants")})


def _plain(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def load(path: Path, campaign: int | None = None) -> Campaign:
    with Store(path) as store:
        return store.load(campaign)
