"""The papers' claims as Markdown: every figure with claim and verdict, tables set, pictures only where they are."""

import re

import pytest
from hmalloc_lab.page import claims
from hmalloc_lab.page.figure import UNTOLD
from hmalloc_lab.page.papers import all_figures
from hmalloc_lab.page.verdicts import Shown, show


@pytest.fixture(scope="module")
def shown(results) -> list[Shown]:
    return [show(results, figure) for figure in all_figures()]


def test_what_is_told_has_its_claim_and_its_verdict_and_the_rest_a_line_with_what_it_would_take(results, shown, tmp_path):
    told, untold = claims.markdown(results, tmp_path).split("\n## Cannot be told here\n")
    blocks, lines = re.split(r"^### ", told, flags=re.M)[1:], untold.strip().splitlines()[2:]
    expected = [each for each in shown if each.verdict.outcome != UNTOLD], [
        each for each in shown if each.verdict.outcome == UNTOLD]
    assert [len(blocks), len(lines)] == [len(each) for each in expected] and blocks and lines
    for block, each in zip(blocks, expected[0], strict=True):
        figure, verdict = each.figure, each.verdict
        assert block.startswith(f"{figure.label}: {figure.title}\n")
        assert figure.claim in block and verdict.reason in block and f"**{verdict.outcome.capitalize()}.**" in block
    for line, each in zip(lines, expected[1], strict=True):
        assert line == f"- {each.paper}, {each.figure.label}, {each.figure.title}: takes {each.verdict.takes}"


def test_tables_are_whole_and_only_pictures_that_exist_are_shown(results, shown, tmp_path):
    text = claims.markdown(results, tmp_path)
    tables = re.findall(r"(?:^\|.*\n)+", text, flags=re.M)
    widths = [{len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()} for table in tables]
    assert tables and all(len(each) == 1 for each in widths) and "![" not in text
    drawn = next(each.figure for each in shown if each.charts and each.verdict.outcome != UNTOLD)
    (tmp_path / f"{drawn.id}.svg").write_text("<svg/>")
    assert claims.markdown(results, tmp_path).count(f"![{drawn.label}]({drawn.id}.svg)") == 1


def test_a_folder_that_cannot_be_written_is_one_line(bench, fabricated):
    done = bench("export", "--out", "/proc/no", "--formats", "md", "--db", fabricated)
    assert (done.returncode, done.stderr) == (1, "hmalloc: /proc/no: No such file or directory\n")
