"""Choosing cells by number, tag and id."""

from __future__ import annotations

from pathlib import Path

import pytest

from hyperpod_jlab.capture.notebook import read_notebook, select_cells
from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.core.spec import NotebookSource


def code(identity: str, text: str, *tags: str) -> dict:
    return {"cell_type": "code", "id": identity, "metadata": {"tags": list(tags)}, "source": text}


NOTEBOOK = read_notebook(
    Path("nb.ipynb"),
    {
        "nbformat": 4,
        "cells": [
            {"cell_type": "markdown", "id": "words", "source": "# text"},
            code("one", "1", "setup"),
            code("two", "2", "train", "slow"),
            code("three", "3", "train"),
            code("empty", "  \n"),
        ],
    },
)


def chosen(**fields) -> list[int]:
    cells = select_cells(NOTEBOOK, NotebookSource(path="nb.ipynb", **fields))
    return [cell.number for cell in cells]


def test_all_cells_without_a_selection():
    assert chosen() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("fields", "numbers"),
    [
        ({"cells": "2-3"}, [2, 3]),
        ({"cells": "3,1"}, [1, 3]),
        ({"tag": "train"}, [2, 3]),
        ({"cell_ids": ["three", "one"]}, [1, 3]),
        ({"cell_ids": ["words", "two"]}, [2]),
        ({"cells": "1-2", "tag": "train"}, [2]),
    ],
)
def test_selections_and_their_meet(fields, numbers):
    assert chosen(**fields) == numbers


@pytest.mark.parametrize(
    ("fields", "code", "field", "words"),
    [
        ({"cells": "13"}, "no_such_cell", "source.cells", "4 code cells, but no cell 13"),
        ({"cells": "2-7"}, "no_such_cell", "source.cells", "no cell 5"),
        ({"tag": "trian"}, "no_such_tag", "source.tag", "the tag 'trian'"),
        ({"cell_ids": ["gone"]}, "no_such_cell", "source.cell_ids", "the id 'gone'"),
        ({"cell_ids": ["words"]}, "no_code_cells", "source.cell_ids", "only markdown"),
        ({"cell_ids": []}, "no_cells", "source.cell_ids", "no cell is selected"),
        ({"cells": "1", "tag": "train"}, "no_cells", "source", "matches all selections"),
        ({"cells": "4"}, "empty_cells", "source.path", "cell 4 is empty"),
    ],
)
def test_a_selection_that_does_not_fit_is_refused(fields, code, field, words):
    with pytest.raises(InvalidInputError, match=words) as caught:
        chosen(**fields)
    assert (caught.value.code, caught.value.detail["field"]) == (code, field)


def test_the_hint_lists_the_tags():
    with pytest.raises(InvalidInputError) as caught:
        chosen(tag="x")
    assert caught.value.hint == "tags in it: setup, slow, train"


def test_a_notebook_without_ids_says_so():
    notebook = read_notebook(Path("old.ipynb"), {"nbformat": 4, "cells": [{"cell_type": "code", "source": "1"}]})
    with pytest.raises(InvalidInputError, match="have no ids"):
        select_cells(notebook, NotebookSource(path="old.ipynb", cell_ids=["a"]))
