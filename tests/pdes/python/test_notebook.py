"""The notebooks, which are documentation, run as they are."""

from pathlib import Path

import nbclient
import nbformat
import pytest

FOLDER = Path(__file__).resolve().parents[3] / "pdes" / "python" / "notebooks"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebook(path):
    notebook = nbformat.read(path, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "clear its outputs: they would be of one machine"
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("image/png" in output.get("data", {}) for output in outputs)
