"""The studies (bench/studies) whose rows are kept: what is fitted to them is what their pages show."""

import subprocess
import sys

import pytest
from conftest import ROOT

PAGE = ROOT / "docs" / "results" / "ranks.md"


def fit(page):
    return subprocess.run([sys.executable, ROOT / "bench" / "studies" / "ranks.py", "--fit", page], capture_output=True, text=True,
                          check=True).stdout


def test_the_model_of_ranks_is_the_one_that_is_shown():
    assert fit(PAGE) in PAGE.read_text()


@pytest.mark.parametrize("cell, instead, further", [
    ("650.02 (618.59–682.33)", "1300 (1300–1300)", "all"), ("147.06 (118.59–160.09)", "300 (300–300)", "needed")])
def test_what_fails_its_check_is_not_modelled_further(tmp_path, cell, instead, further):
    """With another cell of the 64 ranks."""
    page = tmp_path / "ranks.md"
    page.write_text(PAGE.read_text().replace(cell, instead))
    check, beyond = fit(page).split("which were not fitted: ")
    assert beyond.startswith(f"{further}.\n") and "| all |" in check and "| needed |" in check
    assert [line for line in beyond.splitlines() if line.startswith(("| all", "| needed"))] == [
        line for line in beyond.splitlines() if line.startswith(f"| {further} |")]
