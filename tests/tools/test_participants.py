"""Who can be measured, and how the user's own libraries are looked at first."""

import json
import subprocess

import pytest
from hmalloc_lab.bench import participants
from hmalloc_lab.bench.catalogue import Cell
from hmalloc_lab.build_paths import BuildPaths
from hmalloc_lab.errors import Failure


@pytest.fixture(scope="module")
def rows(built):
    return {row.name: row for row in participants.everybody(built)}


def test_the_system_and_hmalloc_are_always_there(rows):
    assert rows["glibc"].kind == "system" and rows["glibc"].library.endswith("libc.so.6")
    assert rows["hmalloc"].kind == "hmalloc" and len(rows["hmalloc"].sha256) == 64
    assert {"hmalloc-explicit", "hmalloc-all-shared"} <= {name for name, row in rows.items() if row.kind == "explicit"}
    assert rows["no-allocator"].library == ""


def test_peers_come_from_their_manifest(built, tmp_path, monkeypatch):
    monkeypatch.setattr(participants, "SOURCE", tmp_path)
    library = tmp_path / "libpeer.so"
    library.write_bytes(b"library")
    natives = tmp_path / "release"
    (tmp_path / "peers").mkdir()
    peer = {"name": "mimalloc2", "version": "9", "path": "libpeer.so", "environment": {"A": "b"}, "sha256": ""}
    (tmp_path / "peers" / "peers.json").write_text(json.dumps([peer, peer | {"name": "gone", "path": "gone.so"}]))
    found = {row.name: row for row in participants.everybody(BuildPaths(built.library, natives / "hmalloc-measure"))}
    assert found["mimalloc2"].version == "9" and found["mimalloc2"].environment == {"A": "b"}
    assert "gone" not in found


def test_a_packaged_library_stands_in_for_a_peer_that_is_not_built(monkeypatch, tmp_path):
    library = tmp_path / "libjemalloc.so.2"
    library.write_bytes(b"library")
    said = {"/sbin/ldconfig": f"\tlibjemalloc.so.2 (libc6,x86-64) => {library}", "dpkg-query": "5.3.0-1"}
    monkeypatch.setattr(participants, "_said", lambda program, *_: said.get(program, ""))
    assert [(row.name, row.version) for row in participants._peers(tmp_path)] == [("jemalloc", "5.3.0-1 (package)")]


def test_a_damaged_manifest_is_one_line(tmp_path):
    (tmp_path / "peers").mkdir()
    (tmp_path / "peers" / "peers.json").write_text('[{"name": 1')
    with pytest.raises(Failure, match="damaged"):
        participants._peers(tmp_path)


def test_who_serves_which_cell(rows):
    rows = {name: row for name, row in rows.items() if not participants.is_baseline(row)}
    plain, explicit, floor = (Cell("x", "local", {}, apis=apis) for apis in ((), ("explicit",), ("no-allocator",)))
    arenas = Cell("x", "local", {"arenas": 3}, apis=())

    def serving(cell):
        return {name for name, row in rows.items() if participants.serves(row, cell)}

    assert "glibc" in serving(plain) and not serving(plain) & {"hmalloc-explicit", "no-allocator"}
    assert serving(explicit) - serving(plain) == {"hmalloc-explicit"}
    assert serving(floor) - serving(plain) == {"no-allocator"}
    assert serving(arenas) <= {"glibc", "jemalloc"}
    assert participants.environment(rows["glibc"], arenas) == {"MALLOC_ARENA_MAX": "3"}


def test_how_one_is_put_under_a_program(rows):
    cell = Cell("ring", "shared", {})
    assert (participants.executable(rows["hmalloc"], cell), participants.preload(rows["hmalloc"])) \
        == ("ring", rows["hmalloc"].library)
    assert (participants.executable(rows["hmalloc-explicit"], cell), participants.preload(rows["hmalloc-explicit"])) \
        == ("ring-explicit", "")
    assert (participants.executable(rows["no-allocator"], cell), participants.preload(rows["glibc"])) == ("ring-no-allocator", "")


@pytest.mark.parametrize("given, said", [
    ("mine=/nowhere/lib.so", "/nowhere/lib.so: no such library"),
    ("mine", "--allocator mine: expected NAME=PATH.so"),
    ("=lib.so", "--allocator =lib.so: expected NAME=PATH.so"),
    ("two words=lib.so", "--allocator two words=lib.so: expected NAME=PATH.so"),
    ("hmalloc=lib.so", "--allocator hmalloc=lib.so: there is an allocator hmalloc already, give it another name"),
    ("mine={text}", "{text}: unusable library: file too short"),
    ("mine={spaced}", "{spaced}: cannot be preloaded, its path has a space or a colon"),
])
def test_a_library_that_cannot_be_used_is_one_line(bench, tmp_path, given, said):
    paths = {"text": tmp_path / "libtext.so", "spaced": tmp_path / "lib with space.so"}
    for path in paths.values():
        path.write_text("not an ELF file")
    done = bench("quick", "--no-peers", "--allocator", given.format(**paths))
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"hmalloc: {said.format(**paths)}\n")
    assert not (tmp_path / "lab.db").exists()


def test_an_unknown_allocator_names_those_there_are(bench):
    done = bench("quick", "--no-peers", "--allocators", "hmalloc,frobnicate")
    assert done.returncode == 2
    assert done.stderr.startswith("hmalloc: no allocator frobnicate here; there are glibc, hmalloc,")
    assert len(done.stderr.splitlines()) == 1


def test_the_list_has_every_allocator(bench, rows):
    done = subprocess.run(bench.command("list", "quick"), capture_output=True, text=True, check=True)
    assert [name for name in rows if f"  {name} " not in done.stdout] == [], done.stdout
    assert "  threadtest size=64 threads=2" in done.stdout
