"""Pictures of the report for README and docs."""

import xml.etree.ElementTree as xml

import pytest
from browsing import written  # noqa: F401
from hmalloc_lab.errors import Failure
from hmalloc_lab.page import export


def test_figures_are_exported(written, tmp_path):
    files = export.export(written, tmp_path / "figures")
    assert {"overview.svg", "overview.png", "report.png", "heatmap.png", "hmalloc-fig-11-a.svg"} <= {p.name for p in files}
    for path in files:
        if path.suffix == ".svg":
            assert xml.parse(path).getroot().tag == "{http://www.w3.org/2000/svg}svg"
        else:
            assert path.suffix == ".png" and path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("path, page, formats, said", [
    ("/nowhere", "report.html", export.FORMATS, "chromium, chromium-browser, google-chrome"),
    (None, "report.html", ["gif"], "gif"), (None, "none.html", export.FORMATS, "no such page")])
def test_what_cannot_be_exported_is_one_line(written, tmp_path, monkeypatch, path, page, formats, said):
    if path:
        monkeypatch.setenv("PATH", path)
    with pytest.raises(Failure, match=rf"^[^\n]*{said}[^\n]*$"):
        export.export(written.with_name(page), tmp_path / "figures", formats)
