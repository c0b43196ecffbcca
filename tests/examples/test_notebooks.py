"""What the example notebooks look like."""

import json

import nbformat
import pytest

from tests.examples.conftest import ROOT

EXAMPLES = ROOT / "examples"
NOTEBOOKS = sorted([*EXAMPLES.glob("*.ipynb"), *EXAMPLES.glob("*/*.ipynb")])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_is_valid_explained_and_clean(path):
    document = json.loads(path.read_text(encoding="utf-8"))
    nbformat.validate(document)
    cells = document["cells"]
    assert cells[0]["cell_type"] == "markdown"
    assert cells[0]["source"][0].startswith("# ")
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    assert all(len(cell["source"]) <= 25 for cell in code)
    assert len({cell["id"] for cell in cells}) == len(cells)


def test_the_data_are_small_and_say_where_they_come_from():
    folder = ROOT / "examples" / "data"
    assert (folder / "digits.npz").stat().st_size < 150_000
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert "UCI" in text
    assert "CC BY 4.0" in text
