"""The database: nothing measured is lost, and what is no such database is refused in one line."""

import sqlite3
import subprocess
import sys
import textwrap

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


def begin(path):
    db = Store(path, create=True)
    environment = {"CPU": "x", "CPUs": 2}
    return db, db.begin("2026-11-21T12:00:00", "quick", "bench quick", 7, 10, environment, CELLS, ALLOCATORS)


def test_round_trip(tmp_path):
    db, number = begin(tmp_path / "new" / "a.db")
    row = RoundRow(1, "2026-11-21T12:00:01", 0.02, 900.0, True)
    failed = Run(2, CELLS[1].name, "tcmalloc", "2026-11-21T12:00:02", store.CRASHED, "killed by signal 11")
    with db:
        db.add_round(number, row)
        db.add(number, run())
        db.add(number, failed)
        db.finish(number, "2026-11-21T12:01:00")
        assert db.done(number) == {(1, CELLS[0].name, "glibc"), (2, CELLS[1].name, "tcmalloc")}
    found = store.load(tmp_path / "new" / "a.db")
    assert (found.started, found.finished, found.profile, found.command, found.seed, found.rounds) == (
        "2026-11-21T12:00:00", "2026-11-21T12:01:00", "quick", "bench quick", 7, 10)
    assert found.environment == {"CPU": "x", "CPUs": 2}
    assert [(cell.name, cell.arguments, cell.apis, cell.variants, cell.limit_s) for cell in found.cells] == [
        (cell.name, cell.arguments, cell.apis, cell.variants, cell.limit_s) for cell in CELLS]
    assert found.allocators == ALLOCATORS and found.allocators[1].environment == ALLOCATORS[1].environment
    assert found.round_rows == [row] and found.runs == [run(), failed]
    assert (found.runs[0].metrics, found.runs[0].resident, found.runs[0].latency) == (
        run().metrics, run().resident, run().latency)


def test_a_run_that_is_made_again_replaces_the_first(tmp_path):
    db, number = begin(tmp_path / "a.db")
    with db:
        db.add(number, run(reason="first"))
        db.add(number, run(reason="second"))
        assert [each.reason for each in db.load().runs] == ["second"]


def test_the_last_campaign_is_meant_or_the_one_asked_for(tmp_path):
    db, first = begin(tmp_path / "a.db")
    with db:
        second = db.begin("2026-11-22T12:00:00", "paper", "", 1, 10, {}, [], [])
        assert (db.load().id, db.load(first).profile) == (second, "quick")
        assert [row[0] for row in db.campaigns()] == [first, second]
        with pytest.raises(Failure, match="no campaign 9 in it"):
            db.load(9)


def test_what_cannot_be_written_whole_is_not_written(tmp_path):
    db, number = begin(tmp_path / "a.db")
    with db:
        with pytest.raises(Failure, match="UNIQUE.*; what was measured before is kept"):
            db.begin("2026-11-22T12:00:00", "paper", "", 1, 10, {}, [CELLS[0], CELLS[0]], [])
        assert [row[0] for row in db.campaigns()] == [number]


def test_readers_beside_the_writer(tmp_path):
    db, number = begin(tmp_path / "a.db")
    with db:
        db.add(number, run())
        assert len(Results.read(tmp_path / "a.db").campaign.runs) == 1
        db.add(number, run(2))
    assert len(store.load(tmp_path / "a.db").runs) == 2


def test_another_version_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "old.db"
    begin(path)[0].__exit__()
    raw = sqlite3.connect(path)
    raw.execute("PRAGMA user_version = 0")
    raw.close()
    before = path.read_bytes()
    for create in (False, True):
        with pytest.raises(Failure, match="a database of version 0, this hmalloc reads and writes version 2"):
            Store(path, create)
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"name,value\n" * 500, b"SQLite format 3\0" + b"\xff" * 5000])
def test_not_a_database(tmp_path, content):
    path = tmp_path / "other.db"
    path.write_bytes(content)
    with pytest.raises(Failure, match="other.db: ") as failure:
        store.load(path)
    assert "\n" not in str(failure.value) and path.read_bytes() == content


def test_a_database_of_something_else(tmp_path):
    raw = sqlite3.connect(tmp_path / "other.db")
    raw.execute("CREATE TABLE campaign (id INTEGER)")
    raw.close()
    with pytest.raises(Failure, match="not a database of hmalloc bench"):
        Store(tmp_path / "other.db", create=True)


def test_no_file(tmp_path):
    with pytest.raises(Failure, match="no such database"):
        store.load(tmp_path / "none.db")
    assert not (tmp_path / "none.db").exists()


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(Failure, match="file"):
        Store(tmp_path / "file" / "a.db", create=True)


def test_a_damaged_file(tmp_path, fabricated):
    path = tmp_path / "torn.db"
    whole = fabricated.read_bytes()
    path.write_bytes(whole[:40_000] + b"\xa5" * 40_000 + whole[80_000:])
    with pytest.raises(Failure, match="torn.db: damaged: ") as failure:
        store.load(path)
    assert "\n" not in str(failure.value)


def test_cut_off_file(tmp_path, fabricated):
    path = tmp_path / "cut.db"
    path.write_bytes(fabricated.read_bytes()[:100_000])
    with pytest.raises(Failure, match="cut.db: "):
        store.load(path)


FILL = textwrap.dedent("""
    import resource, signal, sys
    sys.path[:0] = sys.argv[2:]
    from pathlib import Path
    from test_store import begin, run
    from hmalloc_lab.errors import Failure
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    db, number = begin(Path(sys.argv[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
    for count in range(100_000):
        try:
            db.add(number, run(count))
        except Failure as failure:
            print(count, failure.code, failure)
            break
""")


def test_a_full_disk_keeps_what_was_there(tmp_path):
    path = tmp_path / "full.db"
    child = subprocess.run([sys.executable, "-B", "-c", FILL, path, *sys.path], capture_output=True, text=True,
                           timeout=60)
    assert child.returncode == 0, child.stderr
    count, code, message = child.stdout.split(" ", 2)
    assert int(count) > 10 and code == "1" and message.strip().endswith("what was measured before is kept")
    assert len(message.strip().splitlines()) == 1
    assert len(store.load(path).runs) == int(count)
