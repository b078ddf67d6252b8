"""Who can be measured, and how the user's own libraries are looked at first."""

import json
import subprocess
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader

import pytest
from conftest import ROOT
from hmalloc_lab.bench import participants
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
    (tmp_path / "libpeer.so").write_bytes(b"library")
    manifest = tmp_path / "peers" / "peers.json"
    manifest.parent.mkdir()
    peer = {"name": "mimalloc2", "version": "9", "path": "libpeer.so", "environment": {"A": "b"}, "sha256": ""}
    manifest.write_text(json.dumps([peer, peer | {"name": "gone", "path": "gone.so"}]))
    here = BuildPaths(built.library, tmp_path / "release" / "hmalloc-measure")
    found = {row.name: row for row in participants.everybody(here)}
    assert found["mimalloc2"].version == "9, age unknown" and found["mimalloc2"].environment == {"A": "b"}
    assert "gone" not in found
    manifest.write_text('[{"name": 1')
    with pytest.raises(Failure, match="damaged"):
        participants.everybody(here)


@pytest.fixture(scope="module")
def peers():
    """The program that builds them."""
    loader = SourceFileLoader("peers", str(ROOT / "bench" / "peers"))
    module = module_from_spec(spec_from_loader("peers", loader))
    loader.exec_module(module)
    return module


@pytest.mark.parametrize("text", [b"", b"[{", b"\xff", b"null", b"1", b"{}", b"[1]", b'{"name": 1}', b'[{"version": "9"}]'])
def test_a_damaged_manifest_is_as_an_empty_one(peers, tmp_path, text):
    manifest = tmp_path / "peers.json"
    assert peers.recorded(manifest) == {}
    manifest.write_bytes(b'[{"name": "jemalloc"}]')
    assert peers.recorded(manifest) == {"jemalloc": {"name": "jemalloc"}}
    manifest.write_bytes(text)
    assert peers.recorded(manifest) == {}


def test_sources_that_were_fetched_in_part_are_fetched_again(peers, tmp_path, monkeypatch):
    monkeypatch.setattr(peers, "SOURCES", tmp_path / "sources")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    cargo, crate = tmp_path / "cargo", f"snmalloc-sys-{peers.CRATES['snmalloc-sys']}"
    copies = f'#!/bin/sh\nmkdir -p "$3/{crate}" && cd "$3/{crate}" && touch '
    for script in (f"{copies} half && exit 1", f"{copies} whole"):
        cargo.write_text(script)
        cargo.chmod(0o755)
        if script.endswith("1"):
            with pytest.raises(peers.BuildError, match="cargo failed"):
                peers.fetch("snmalloc-sys")
    assert [path.name for path in peers.fetch("snmalloc-sys").iterdir()] == ["whole"]
    cargo.unlink()
    assert peers.fetch("snmalloc-sys") == tmp_path / "sources/snmalloc-sys/vendor" / crate


def test_a_packaged_library_stands_in_for_a_peer_that_is_not_built(monkeypatch, tmp_path):
    library = tmp_path / "libjemalloc.so.2"
    library.write_bytes(b"library")
    said = {"/sbin/ldconfig": f"\tlibjemalloc.so.2 (libc6,x86-64) => {library}", "dpkg-query": "5.3.0-1"}
    monkeypatch.setattr(participants, "_said", lambda program, *_: said.get(program, ""))
    assert [(row.name, row.version) for row in participants._peers(tmp_path)] == [("jemalloc", "5.3.0-1 (package), 2022-05, upstream is at 5.3.1")]


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


def test_the_list_has_every_allocator(bench, rows):
    done = subprocess.run(bench.command("list", "quick"), capture_output=True, text=True, check=True)
    assert [name for name in rows if f"  {name} " not in done.stdout] == [], done.stdout
    assert "  threadtest size=64 threads=2" in done.stdout
