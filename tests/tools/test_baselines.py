"""The papers' allocators in the laboratory: who they are, what they count, and the campaign that compares them."""

import shutil
from dataclasses import replace

import pytest
from fabricate import BASELINES, DEFAULT, fabricate
from hmalloc_lab.bench import baselines, catalogue, commands, counters, participants, session, statistics, store
from hmalloc_lab.bench.catalogue import Cell
from hmalloc_lab.bench.results import Results
from hmalloc_lab.bench.store import AllocatorRow
from hmalloc_lab.build_paths import BuildPaths
from hmalloc_lab.errors import Failure
from hmalloc_lab.page import page, palette
from typer.testing import CliRunner

NAMES = ["ar_malloc", "ar_malloc-lock", "hmalloc_paper", "hoard", "one_lock", "vvmalloc-1", "vvmalloc-2", "vvmalloc-3",
         "vvmalloc-4"]
VARIANTS = {"hoard-f8": {"HOARD_EMPTY_FRACTION": "1/8"}, "hoard-f2": {"HOARD_EMPTY_FRACTION": "1/2"},
            "ar_malloc-nocache": {"AR_MALLOC_CACHE": "0"}}
ALL = {*NAMES, *VARIANTS, "hmalloc_paper-explicit", "hmalloc_paper-all-shared"}
USUALLY = ["glibc", "hmalloc", "hmalloc-explicit", "hmalloc-all-shared", "no-allocator"]


@pytest.fixture(scope="module")
def pretended(built, tmp_path_factory) -> BuildPaths:
    """A build with every baseline; they are looked at, not run."""
    natives = tmp_path_factory.mktemp("build") / "release"
    (natives / "baselines").mkdir(parents=True)
    for name in NAMES:
        (natives / "baselines" / f"lib{name}.so").write_text(name)
    return BuildPaths(built.library, natives / "hmalloc-measure")


@pytest.fixture(scope="module")
def rows(pretended):
    return {row.name: row for row in participants.everybody(pretended, with_peers=False)}


# ---- Who they are. --------------------------------------------------------------------------------------------------


def test_every_library_of_the_build_is_an_allocator_by_name(built, rows):
    assert [name for name, row in rows.items() if row.kind == "baseline"] == NAMES
    assert rows["hoard"].version == "from the paper" and rows["hoard"].environment == {}
    assert len({rows[name].sha256 for name in NAMES}) == len(NAMES)
    assert {row.name for row in rows.values() if participants.is_baseline(row)} == ALL
    really = {row.name for row in participants.everybody(built, with_peers=False) if row.kind == "baseline"}
    assert really == set(built.baselines) and "one_lock" in really


def test_a_variant_is_the_same_library_under_other_options(rows):
    assert {name: row.environment for name, row in rows.items() if row.kind == "variant"} == VARIANTS
    assert rows["hoard-f8"].sha256 == rows["hoard"].sha256


ANY = {"glibc", "hmalloc", *NAMES}


@pytest.mark.parametrize("cell, serving", [
    (Cell("larson", "shared", {}), ANY),
    (Cell("larson", "shared", {}, variants=("hoard-f8",)), ANY | {"hoard-f8"}),
    (Cell("larson", "shared", {}, apis=("explicit",)), ANY | {"hmalloc-explicit", "hmalloc_paper-explicit"}),
    (Cell("larson", "shared", {}, apis=("all-shared",)), ANY | {"hmalloc-all-shared", "hmalloc_paper-all-shared"}),
    (Cell("ring", "shared", {}, apis=("no-allocator",)), ANY | {"no-allocator"}),
    (Cell("phold", "simulation", {}, apis=("explicit",)), ANY | {"hmalloc-explicit"}),
    (Cell("ar-random", "local", {"arenas": 3}), {"glibc", "ar_malloc"}),
    # glibc's library is more than an allocator.
    (Cell("redis", "servers", {"share": 1}), ANY - {"glibc"})])
def test_who_serves_which_cell(rows, cell, serving):
    assert {name for name, row in rows.items() if participants.serves(row, cell)} == serving


@pytest.mark.parametrize("name, program, preloaded, arenas", [
    ("glibc", "larson", "", {"MALLOC_ARENA_MAX": "3"}), ("ar_malloc", "larson", "ar_malloc", {"AR_MALLOC_ARENAS": "3"}),
    ("hmalloc", "larson", "hmalloc", None), ("hoard", "larson", "hoard", None), ("hoard-f8", "larson", "hoard", None),
    ("hmalloc-explicit", "larson-explicit", "", None), ("hmalloc-all-shared", "larson-all-shared", "", None),
    ("hmalloc_paper-explicit", "larson-paper", "", None), ("no-allocator", "larson-no-allocator", "", None),
    ("hmalloc_paper-all-shared", "larson-paper-all-shared", "", None)])
def test_how_one_is_put_under_a_program(rows, name, program, preloaded, arenas):
    cell = Cell("larson", "shared", {})
    assert participants.executable(rows[name], cell) == program
    assert participants.preload(rows[name]) == (rows[preloaded].library if preloaded else "")
    assert participants.environment(rows[name], cell) == VARIANTS.get(name, {})
    if arenas:
        assert participants.environment(rows[name], replace(cell, point={"arenas": 3})) == arenas


# ---- Who is measured. -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wanted, chosen", [
    ([""], {*USUALLY}), (["", True], {*USUALLY, *ALL}), (["baselines"], ALL), (["glibc,hoard"], {"glibc", "hoard"}),
    (["glibc", True], {"glibc", *ALL}), (["", True, baselines.USUAL], {*USUALLY[:4], *ALL})], ids=str)
def test_they_take_part_where_they_are_asked_for(rows, wanted, chosen):
    assert {row.name for row in participants.choose(list(rows.values()), *wanted)} == chosen


def test_an_unknown_name_is_told_of_the_group(rows):
    with pytest.raises(Failure, match="no allocator frob here; there are glibc, .* and baselines for all of the papers'"):
        participants.choose(list(rows.values()), "frob")
    with pytest.raises(Failure, match="no allocator baselines here"):
        participants.choose([row for row in rows.values() if not participants.is_baseline(row)], "baselines")


class Begun(Exception):
    """A campaign was about to begin: args are its cells and its allocators."""


@pytest.fixture
def begun(pretended, monkeypatch):
    """What `hmalloc bench ...` would measure: its cells, and the names of its allocators."""

    def begin(_, __, ___, cells, rows, *more):
        raise Begun(cells, {row.name for row in rows})

    monkeypatch.setattr(session, "begin", begin)
    return lambda *arguments: CliRunner().invoke(commands.app, arguments, obj=pretended).exception.args


@pytest.mark.parametrize("arguments, takes_part", [
    ("quick", False), ("paper", False), ("quick --baselines", True), ("full", True), ("baselines", True),
    ("quick --allocators glibc,baselines", True), ("full --allocators glibc", False),
    ("baselines --allocators glibc", False), ("baselines --allocators glibc --baselines", True)])
def test_the_profiles(begun, arguments, takes_part):
    _, names = begun(*arguments.split(), "--no-peers")
    assert names & ALL == (ALL if takes_part else set()) and "glibc" in names


def test_the_profile_of_the_papers_measures_those_that_they_compare(begun):
    cells, names = begun("baselines")
    assert [cell.name for cell in cells] == [cell.name for cell in baselines.cells()]
    assert names - {"gperftools"} == {*USUALLY[:4], *ALL}


# ---- What they count. -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name, prefix", [
    ("hoard", "HOARD"), ("hoard-f8", "HOARD"), ("vvmalloc-2", "VVMALLOC"), ("ar_malloc-lock", "AR_MALLOC"),
    ("one_lock", "ONE_LOCK"), ("hmalloc_paper-explicit", "HMALLOC_PAPER")])
def test_they_alone_are_told_where_to_write(rows, tmp_path, name, prefix):
    assert participants.counting(rows[name], tmp_path / "file") == {f"{prefix}_STATS_FILE": str(tmp_path / "file")}
    assert {name for name, row in rows.items() if not participants.counting(row, tmp_path)} == set(USUALLY)


@pytest.mark.parametrize("text, said", [
    ("", {}), ('{"calls":1}\n{"allocator":"hoard","calls":7,"share":0.5,"on":true,"list":[1]}\n',
               {"counter_calls": 7, "counter_share": 0.5}),
    ("{", None), ("[1]\n", None), ('{"calls":1}\n{"calls":', None)])
def test_the_last_line_is_the_programs_own(tmp_path, text, said):
    file = tmp_path / "counters"
    assert counters.read(file) == {}
    file.write_text(text)
    if said is not None:
        assert counters.read(file) == said
    else:
        with pytest.raises(ValueError):
            counters.read(file)


@pytest.fixture
def counting(library, tmp_path):
    """A stand-in for a baseline."""

    def row(*options) -> AllocatorRow:
        (tmp_path / "baselines").mkdir(exist_ok=True)
        path = shutil.copy(library("counts", *options), tmp_path / "baselines" / "libcounts.so")
        return AllocatorRow("counts", "baseline", "", str(path), participants.checksum(path))

    return row


def test_counters_are_metrics_of_the_run(measure, counting):
    cell = Cell("threadtest", "local", {"size": 64}, {"objects": 1000, "rounds": 3})
    results = measure([cell], [counting()])
    # Of this run: the warm-up's are not in it.
    assert 3000 <= results.median(cell, "counts", "counter_calls") < 3200


def test_processes_that_a_program_starts_do_not_count(measure, counting):
    cell = Cell("linux-workers", "local", {"mode": "processes", "size": 512, "threads": 2}, {"pairs": 5000})
    assert measure([cell], [counting()]).median(cell, "counts", "counter_calls") < 1000


def test_counters_that_cannot_be_read_are_a_failure(measure, counting):
    failed, = measure([Cell("nothing", "memory", {"size": 0}, metric="rss_kb")], [counting("-DDAMAGED")]).failures()
    assert failed.status == store.FAILED and failed.reason.startswith("its counters cannot be read: ")


def test_every_baseline_that_is_built_counts(measure, built):
    cell = Cell("threadtest", "local", {"size": 8, "threads": 2}, {"objects": 10_000, "rounds": 4},
                apis=("explicit", "all-shared"), variants=tuple(VARIANTS))
    rows = participants.choose(participants.everybody(built, with_peers=False), "glibc,baselines")
    results = measure([cell], rows)
    assert {(run.allocator, run.reason) for run in results.failures()} == set()
    assert results.median(cell, "glibc", "counter_mapped") is None
    assert set(built.baselines) <= {row.name for row in rows}
    for row in filter(participants.is_baseline, rows):
        assert results.median(cell, row.name, "counter_mapped") > 0, row.name


# ---- The campaign. --------------------------------------------------------------------------------------------------


def test_the_campaign_has_the_cells_of_the_figures_shorter():
    cells, paper = baselines.cells(), {cell.name: cell for cell in catalogue.cells("paper")}
    assert {cell.workload for cell in cells} == set(baselines._FIGURES)
    for workload in ("threadtest", "shbench", "larson", "barnes-hut", "vvmalloc", "ar-random", "linux-scalability"):
        assert {cell.threads for cell in cells if cell.workload == workload} == {1, 2, 4, 8}
    assert "latency" not in {cell.family for cell in cells}
    for cell in cells:
        before = paper[cell.name].repeat
        assert cell.limit_s <= 10 and cell.repeat.keys() == before.keys()
        assert all(0 < value <= before[key] and type(value) is type(before[key]) for key, value in cell.repeat.items())
        shorter = baselines._SHORTER.get(cell.workload, ("", 1))
        assert shorter[0] == "" or cell.repeat[shorter[0]] < before[shorter[0]]


@pytest.mark.parametrize("profile", [*catalogue.PROFILES, baselines.PROFILE])
def test_hoards_empty_fraction_varies_where_its_tables_have_it(profile):
    cells = baselines.cells() if profile == baselines.PROFILE else catalogue.cells(profile)
    varied = {cell.name for cell in cells if "hoard-f8" in cell.variants}
    assert all(cell.variants == ("hoard-f8", "hoard-f2") for cell in cells if cell.name in varied)
    assert [cell for cell in cells if "ar_malloc-nocache" in cell.variants] == [
        cell for cell in cells if "arenas" in cell.point]
    assert {name.split()[0] for name in varied} == {"threadtest", "shbench", "larson", "barnes-hut"} - (
        {"larson", "threadtest"} if profile == "quick" else set())
    assert not [name for name in varied if "threads=1" in name.split() or "size=64" in name or "max=512" in name]


# ---- Looking at it. -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    made = fabricate(tmp_path_factory.mktemp("made") / "lab.db", baselines.PROFILE, 2, DEFAULT + BASELINES, failing=False)
    return Results.read(made)


def test_the_baselines_stand_among_those_that_serve_any_program(rows):
    found = Results(store.Campaign(1, "", None, "baselines", "", 1, 1, {}, [], list(rows.values()), [], []))
    assert {row.name for row in found.drop_ins} == {"glibc", "hmalloc", *NAMES}
    assert {row.name for row in found.peers} == {"glibc", *NAMES}


def test_an_interface_is_compared_with_its_own_allocator(results):
    cell, = results.select("shbench", threads=1)
    shown = statistics.explicit_means(results)
    assert shown.keys() == {"hmalloc-explicit", "hmalloc-all-shared", "hmalloc_paper-explicit", "hmalloc_paper-all-shared"}
    only = Results(replace(results.campaign, cells=[cell]))
    for name, plain in (("hmalloc-explicit", "hmalloc"), ("hmalloc_paper-explicit", "hmalloc_paper")):
        expected = statistics.ratio(only, cell, name, plain).median
        assert statistics.explicit_means(only)[name]["local"].value == pytest.approx(expected)


def test_the_page_groups_them_and_gives_each_a_look(results):
    groups = {title: [row.name for row in rows] for title, rows in page._kinds(results)}
    assert sorted(groups["Baselines"]) == sorted(ALL) and groups["Peers"][0] == "glibc"
    assert sum(groups.values(), []).count("hmalloc_paper-explicit") == 1
    looks = palette.looks(results.allocators.values())
    for paper in ("light", "dark"):
        assert len({getattr(look, paper) for look in looks.values()}) == len(looks)
