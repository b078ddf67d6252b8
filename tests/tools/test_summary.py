"""The campaign in the terminal and as Markdown."""

from dataclasses import replace
from io import StringIO

import pytest
from fabricate import fabricate
from hmalloc_lab.bench import statistics, summary, tables
from hmalloc_lab.bench.results import Results
from hmalloc_lab.bench.store import Campaign
from hmalloc_lab.errors import Failure
from rich.console import Console
from rich.text import Text


def shown(results, width=80, reference=None, terminal=False):
    text = StringIO()
    summary.show(Console(file=text, width=width, highlight=False, force_terminal=terminal), results, reference)
    return text.getvalue()


@pytest.fixture(scope="module")
def text(results) -> str:
    return shown(results)


@pytest.mark.parametrize(("width", "reference"), [(80, "glibc"), (100, None), (140, None)])
def test_tables_fit_the_width(results, width, reference):
    plain = Text.from_ansi(shown(results, width, reference, terminal=True)).plain
    assert max(len(line) for line in plain.splitlines()) <= width and "…" not in plain


def test_plain_where_nobody_looks(text):
    assert "\x1b" not in text and "10 rounds (2 noisy: 3, 7)" in text


def test_who_is_best_comes_first(results, text):
    names = [line.split()[0] for line in text.splitlines() if line.split()[:1] and line.split()[0] in results.allocators]
    assert names[:9] == tables.best_first(statistics.family_means(results), [row.name for row in results.drop_ins])


def test_lost_cells_are_named_worst_first(results, text):
    duels = statistics.duels(results, "hmalloc")
    behind = text[text.index("behind, worst first"):].splitlines()
    assert behind[1].startswith(duels[0].cell.name) and duels[0].peer in behind[1]
    won, even, lost, few = tables.counted(duels)
    assert few == 0 and f"won {won}, even {even}, lost {lost}\n" in text
    assert won + even + lost + few == sum(not cell.is_study for cell in results.cells.values())
    assert f"and {lost - 12} more cells" in text


def test_failures_are_told_with_their_reason(text):
    assert "rpmalloc crashed in larson" in text and "SIGSEGV" in text
    assert "gperftools hung in barnes-hut threads=8 (round 5): no end after 900 s" in text
    assert "runs of snmalloc did not, and do not count" in text


def test_reference_shows_every_cell_with_its_verdict(results):
    text = shown(results, 100, reference="glibc")
    part = text[text.index("hmalloc / glibc"):text.index("hmalloc-explicit / glibc")]
    assert sum(line.endswith(("faster", "slower", "distinguishable", "rounds", "leaner", "fatter"))
               for line in part.splitlines()) == sum(not cell.is_study for cell in results.cells.values())
    with pytest.raises(Failure, match="nobody: not in this campaign"):
        shown(results, reference="nobody")


def test_others_are_as_if_they_had_not_taken_part(results, bench, fabricated, tmp_path):
    alone, everybody = (statistics.family_means(each)["all"] for each in (results.among(["glibc", "hmalloc"]), results))
    assert set(alone) == {"glibc", "hmalloc"} and alone["hmalloc"].value < everybody["hmalloc"].value
    for names in ("glibc,hmalloc", "glibc,hmalloc,"):
        done = bench("show", "--db", fabricated, "--allocators", names)
        assert (done.returncode, done.stderr) == (0, "") and "mimalloc" not in done.stdout, done
    assert bench("export", "--db", fabricated, "--allocators", "glibc,hmalloc", "--formats", "md",
                 "--out", tmp_path).returncode == 0
    assert "mimalloc" not in (tmp_path / "tables.md").read_text()
    done = bench("show", "--db", fabricated, "--allocators", "glibc,nobody")
    assert done.returncode == 2 and done.stderr.startswith("hmalloc: nobody: not in this campaign, which has glibc, ")


def test_few_rounds_give_no_verdict(tmp_path):
    results = Results.read(fabricate(tmp_path / "few.db", "quick", rounds=2))
    text = shown(results)
    assert f"won 0, even 0, lost 0, too few rounds {len(results.cells)}" in text and "rounds prove nothing" in text
    assert "[" not in text[text.index("behind, worst first"):text.index("Failures")]


def test_nothing_measured():
    results = Results(Campaign(1, "2026-11-21T12:00:00", None, "quick", "", 1, 10, {}, [], [], [], []))
    assert "Nothing was measured." in shown(results) and "not finished" in shown(results)
    assert tables.markdown(results).startswith("# Benchmark results")


def test_markdown_has_everything_but_the_raw_runs(results):
    text = tables.markdown(results)
    named = [f"| {name} |" for name in (*results.cells, *results.campaign.environment)]
    named += [part for row in results.allocators.values() for part in (row.name, row.version, row.sha256[:16])]
    assert [part for part in named if part not in text] == []
    noisy = text[text.index("## Noisy rounds"):]
    assert "SIGSEGV" in text and "| 7 |" in noisy and "| 6 |" not in noisy


def test_markdown_tables_are_rectangular(results):
    results = Results(replace(results.campaign, command="bench | tee", environment={"CPU": "a|b"}))
    lines = tables.markdown(results).splitlines()
    for line, after in zip(lines, lines[1:]):
        if line.startswith("|") and after.startswith("|"):
            assert line.count("|") == after.count("|"), after


def test_mean_over_fewer_cells_is_marked(quick):
    runs = [run for run in quick.campaign.runs if run.allocator != "rpmalloc" or not run.cell.startswith("pairs")]
    text = shown(Results(replace(quick.campaign, runs=runs)))
    line = next(line for line in text.splitlines() if line.startswith("rpmalloc "))
    assert "*" in line and "*: over fewer cells than the others" in text
