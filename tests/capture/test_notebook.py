"""Reading notebooks: what is none is refused in words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hyperpod_jlab.capture.notebook import read_notebook
from hyperpod_jlab.core.errors import InvalidInputError
from tests.capture.bundles import notebook_of

MARKDOWN = {"cell_type": "markdown", "id": "md", "metadata": {}, "source": "# words"}


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "nb.ipynb"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_code_cells_are_counted_from_one_without_markdown():
    notebook = read_notebook(Path("nb.ipynb"), notebook_of(MARKDOWN, "a", MARKDOWN, "b"))
    assert [(cell.number, cell.text) for cell in notebook.cells] == [(1, "a"), (2, "b")]
    assert notebook.other_ids == {"md"}


def test_source_as_lines_is_joined_exactly(tmp_path: Path):
    cell = {"cell_type": "code", "metadata": {"tags": ["t"]}, "source": ["a\r\n", "b\t\n", "\U0001f600"]}
    path = write(tmp_path, json.dumps(notebook_of(cell)))
    (found,) = read_notebook(path).cells
    assert found.text == "a\r\nb\t\n\U0001f600"
    assert found.tags == {"t"}
    assert found.id is None


def test_a_byte_order_mark_is_fine(tmp_path: Path):
    path = write(tmp_path, b"\xef\xbb\xbf" + json.dumps(notebook_of("a")).encode())
    assert read_notebook(path).cells[0].text == "a"


@pytest.mark.parametrize(
    ("content", "code", "words"),
    [
        (b"\xff\xfe", "not_a_notebook", "not UTF-8"),
        (b"{", "not_a_notebook", "not JSON"),
        (b"[" * 100_000, "not_a_notebook", "not JSON"),
        (b"[]", "not_a_notebook", "not an object"),
        (b"{}", "not_a_notebook", "no cells"),
        (b'{"cells": []}', "not_a_notebook", "nbformat"),
        (b'{"nbformat": 4}', "not_a_notebook", "no cells"),
        (b'{"nbformat": 4, "cells": []}', "no_cells", "no code cells"),
        (b'{"nbformat": 4, "cells": [3]}', "not_a_notebook", "position 1"),
        (b'{"nbformat": 4, "cells": [{"cell_type": "code", "source": 3}]}', "not_a_notebook", "cell 1"),
        (b'{"nbformat": 3, "worksheets": []}', "notebook_format", "old notebook format 3"),
        (b'{"nbformat": 5, "cells": []}', "notebook_format", "newer than 4"),
    ],
)
def test_what_is_no_notebook_is_refused(tmp_path: Path, content: bytes, code: str, words: str):
    with pytest.raises(InvalidInputError, match=words) as caught:
        read_notebook(write(tmp_path, content))
    assert caught.value.code == code
    assert caught.value.detail["field"] == "source.path"


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path):
    with pytest.raises(InvalidInputError, match=r"notebook .* not found") as caught:
        read_notebook(tmp_path / "none.ipynb")
    assert caught.value.code == "no_such_file"
    with pytest.raises(InvalidInputError, match="is a folder"):
        read_notebook(tmp_path)
    with pytest.raises(InvalidInputError, match="not a valid file name"):
        read_notebook(tmp_path / "a\0b")


def test_half_a_character_is_refused_with_its_cell_and_line():
    with pytest.raises(InvalidInputError, match=r"cell 2 of nb\.ipynb") as caught:
        read_notebook(Path("nb.ipynb"), notebook_of("fine \U0001f600", "x\ny = '\ud83d'"))
    assert caught.value.code == "lone_surrogate"
    assert caught.value.detail["cell"] == 2
    assert caught.value.detail["line"] == 2


def test_a_nul_is_refused_with_its_cell_and_line():
    with pytest.raises(InvalidInputError, match=r"cell 2 of nb\.ipynb has a NUL") as caught:
        read_notebook(Path("nb.ipynb"), notebook_of("fine = '\\0'", "x\n\ny = '\0'"))
    assert (caught.value.code, caught.value.exit_code) == ("nul_character", 2)
    assert (caught.value.detail["cell"], caught.value.detail["line"]) == (2, 3)
    assert "\0" not in str(caught.value)


@pytest.mark.parametrize("metadata", [{"kernelspec": {"language": "R"}}, {"language_info": {"name": "julia"}}])
def test_other_languages_are_refused(metadata):
    with pytest.raises(InvalidInputError, match="jobs run Python"):
        read_notebook(Path("nb.ipynb"), notebook_of("a", **metadata))


def test_python_under_any_of_its_names_is_fine():
    metadata = {"kernelspec": {"language": "python"}, "language_info": {"name": "ipython"}}
    assert read_notebook(Path("nb.ipynb"), notebook_of("a", **metadata)).cells
