"""The database: nothing measured is lost, and what is no such database is refused in one line."""

import sqlite3

import pytest
from hmalloc_lab.bench import store
from hmalloc_lab.bench.catalogue import Cell, cells
from hmalloc_lab.bench.results import Results
from hmalloc_lab.bench.store import AllocatorRow, RoundRow, Run, Store
from hmalloc_lab.errors import Failure

CELLS = [*cells("quick")[:3], Cell("shbench", "local", {"threads": 2}, variants=("hoard-f2",))]
ALLOCATORS = [AllocatorRow("glibc", "system", "2.36", "libc.so.6", "abc"),
              AllocatorRow("tcmalloc", "peer", "1", "x.so", "def", {"GLIBC_TUNABLES": "glibc.pthread.rseq=0"})]


def run(number=1, **rest):
    return Run(number, CELLS[0].name, "glibc", "2026-11-21T12:00:00", metrics={"ns_per_op": 1.5, "series": [[3, 1.0]]},
               resident=[[0.5, 100]], latency={"malloc": "HIST"}, **rest)


@pytest.fixture
def begun(tmp_path):
    """An open file, and the campaign that was begun in it."""
    with Store(tmp_path / "new" / "a.db", create=True) as db:
        yield db, db.begin("2026-11-21T12:00:00", "quick", "bench quick", 7, 10, {"CPU": "x", "CPUs": 2}, CELLS, ALLOCATORS)


def test_round_trip(begun):
    db, number = begun
    row = RoundRow(1, "2026-11-21T12:00:01", 0.02, 900.0, True)
    failed = Run(2, CELLS[1].name, "tcmalloc", "2026-11-21T12:00:02", store.CRASHED, "killed by signal 11")
    db.add_round(number, row)
    for each in (run(), failed):
        db.add(number, each)
    db.finish(number, "2026-11-21T12:01:00")
    assert db.done(number) == {(1, CELLS[0].name, "glibc"), (2, CELLS[1].name, "tcmalloc")}
    # The repetition of a cell is no part of what makes two of them equal.
    assert [vars(cell) for cell in store.load(db.path).cells] == [vars(cell) for cell in CELLS]
    assert vars(store.load(db.path)) == vars(store.Campaign(
        number, "2026-11-21T12:00:00", "2026-11-21T12:01:00", "quick", "bench quick", 7, 10, {"CPU": "x", "CPUs": 2},
        CELLS, ALLOCATORS, [row], [run(), failed]))


def test_a_run_that_is_made_again_replaces_the_first(begun):
    db, number = begun
    db.add(number, run(reason="first"))
    db.add(number, run(reason="second"))
    assert [each.reason for each in db.load().runs] == ["second"]


def test_the_last_campaign_is_meant_or_the_one_asked_for(begun):
    db, first = begun
    second = db.begin("2026-11-22T12:00:00", "paper", "", 1, 10, {}, [], [])
    assert (db.load().id, db.load(first).profile) == (second, "quick")
    assert [row[0] for row in db.campaigns()] == [first, second]
    with pytest.raises(Failure, match="no campaign 9 in it"):
        db.load(9)


def test_what_cannot_be_written_whole_is_not_written(begun):
    db, number = begun
    with pytest.raises(Failure, match="UNIQUE.*; what was measured before is kept"):
        db.begin("2026-11-22T12:00:00", "paper", "", 1, 10, {}, [CELLS[0], CELLS[0]], [])
    assert [row[0] for row in db.campaigns()] == [number]


def test_readers_beside_the_writer(begun):
    db, number = begun
    for count in (1, 2):
        db.add(number, run(count))
        assert len(Results.read(db.path).campaign.runs) == count


def after(statement: str):
    def spoil(path):
        with sqlite3.connect(path) as db:
            db.execute(statement)

    return spoil


def content(change):
    return lambda path: path.write_bytes(change(path.read_bytes()))


@pytest.fixture
def spoilt(tmp_path, fabricated):
    def make(spoil):
        path = tmp_path / "other.db"
        path.write_bytes(fabricated.read_bytes())
        spoil(path)
        return path, path.read_bytes()

    return make


@pytest.mark.parametrize("create", [False, True])
@pytest.mark.parametrize("spoil, said", [
    pytest.param(content(lambda _: b"name,value\n" * 500), "file is not a database", id="text"),
    pytest.param(after("PRAGMA application_id = 1"), "not a database of hmalloc bench", id="something else"),
    pytest.param(after("PRAGMA user_version = 0"), "a database of version 0, this hmalloc reads and writes version 2",
                 id="another version")])
def test_what_is_no_database_of_ours_is_refused_and_left_alone(spoilt, spoil, said, create):
    path, before = spoilt(spoil)
    with pytest.raises(Failure, match=f"^[^\n]*other.db: {said}[^\n]*$"):
        Store(path, create)
    assert path.read_bytes() == before


@pytest.mark.parametrize("change, said", [
    pytest.param(lambda _: b"", "", id="empty"),
    pytest.param(lambda _: b"SQLite format 3\0" + b"\xff" * 5000, "", id="a header alone"),
    pytest.param(lambda whole: whole[:40_000] + b"\xa5" * 40_000 + whole[80_000:], "damaged: ", id="torn"),
    pytest.param(lambda whole: whole[:100_000], "", id="cut off")])
def test_a_damaged_database_is_one_line(spoilt, change, said):
    path, before = spoilt(content(change))
    with pytest.raises(Failure, match=f"^[^\n]*other.db: {said}[^\n]*$"):
        store.load(path)
    assert path.read_bytes() == before


def test_no_file_is_made_by_reading(tmp_path):
    with pytest.raises(Failure, match="no such database"):
        store.load(tmp_path / "none.db")
    assert not (tmp_path / "none.db").exists()


def test_a_file_that_may_only_be_read_is_read_and_left_alone(begun, monkeypatch):
    db, _ = begun
    db.__exit__()  # with the journal of a writer, the file alone would not be whole
    before = db.path.read_bytes()
    monkeypatch.setattr(store.os, "access", lambda *_: False)
    assert store.load(db.path).profile == "quick"
    with Store(db.path) as kept, pytest.raises(Failure, match="readonly"):
        kept.begin("", "quick", "", 1, 1, {}, [], [])
    assert db.path.read_bytes() == before and [path.name for path in db.path.parent.iterdir()] == ["a.db"]


@pytest.mark.parametrize("table, column, value", [("cell", "definition", "[]"), ("campaign", "environment", "3")])
def test_what_is_no_such_value_is_damage(begun, table, column, value):
    db, _ = begun
    with sqlite3.connect(db.path) as raw:
        raw.execute(f"UPDATE {table} SET {column} = ?", (value,))
    with pytest.raises(Failure, match="a.db: damaged: "):
        store.load(db.path)


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(Failure, match="file"):
        Store(tmp_path / "file" / "a.db", create=True)
