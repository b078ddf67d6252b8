"""The papers' claims as Markdown: every figure with claim and verdict, tables set, pictures only where they are."""

import re

from hmalloc_lab.page import claims
from hmalloc_lab.page.papers import all_figures
from hmalloc_lab.page.verdicts import show


def test_every_figure_has_its_claim_and_its_verdict(results, tmp_path):
    text = claims.markdown(results, tmp_path)
    blocks = re.split(r"^### ", text, flags=re.M)[1:]
    figures = all_figures()
    assert len(blocks) == len(figures)
    for block, figure in zip(blocks, figures, strict=True):
        verdict = show(results, figure).verdict
        assert block.startswith(f"{figure.label}: {figure.title}\n")
        assert figure.claim in block and verdict.reason in block and f"**{verdict.outcome.capitalize()}.**" in block


def test_tables_have_as_many_cells_in_every_line(results, tmp_path):
    text = claims.markdown(results, tmp_path)
    tables = [table for table in re.findall(r"(?:^\|.*\n)+", text, flags=re.M)]
    assert tables
    for table in tables:
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(widths) == 1, table


def test_only_pictures_that_exist_are_shown(results, tmp_path):
    assert "![" not in claims.markdown(results, tmp_path)
    (tmp_path / "hmalloc-fig-11-a.svg").write_text("<svg/>")
    assert claims.markdown(results, tmp_path).count("![Fig. 11 (a)](hmalloc-fig-11-a.svg)") == 1


def test_a_folder_that_cannot_be_written_is_one_line(bench, fabricated):
    done = bench("export", "--out", "/proc/no", "--formats", "md", "--db", fabricated)
    assert (done.returncode, done.stderr) == (1, "hmalloc: /proc/no: No such file or directory\n")
