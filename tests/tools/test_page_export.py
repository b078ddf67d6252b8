"""Pictures of the report for README and docs."""

import xml.etree.ElementTree as xml

import pytest
from browsing import campaign, written  # noqa: F401
from hmalloc_lab.errors import Failure
from hmalloc_lab.page import export


def test_figures_are_exported(written, tmp_path):
    files = export.export(written, tmp_path / "figures")
    assert {path.suffix for path in files} == {".svg", ".png"}
    assert {"overview.svg", "overview.png", "report.png", "heatmap.png", "hmalloc-fig-11-a.svg"} <= {p.name for p in files}
    for path in files:
        if path.suffix == ".svg":
            assert xml.parse(path).getroot().tag == "{http://www.w3.org/2000/svg}svg"
        else:
            assert path.read_bytes().startswith(b"\x89PNG")


def test_without_a_browser_one_line_says_which_are_looked_for(written, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Failure, match=r"^[^\n]*chromium, chromium-browser, google-chrome[^\n]*$"):
        export.export(written, tmp_path / "figures")


def test_an_unknown_format_and_a_missing_page_are_one_line_each(written, tmp_path):
    with pytest.raises(Failure, match="gif"):
        export.export(written, tmp_path, ["gif"])
    with pytest.raises(Failure, match="no such page"):
        export.export(tmp_path / "none.html", tmp_path)
