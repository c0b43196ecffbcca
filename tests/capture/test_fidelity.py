"""Cells reach the job byte for byte, and do there what they do in IPython."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hyperpod_jlab.core.errors import InvalidInputError
from tests.capture.awkward_cells import CELLS, SETUP
from tests.capture.bundles import Bundle, Laboratory, notebook_of, notebook_spec

REPORT = "print('RESULTS ' + json.dumps([repr(one) for one in results]))"

IPYTHON = """
import asyncio, json, sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
async def main():
    for cell in json.load(open(sys.argv[1])):
        done = await shell.run_cell_async(cell, store_history=False, transformed_cell=shell.transform_cell(cell))
        done.raise_error()
asyncio.run(main())
"""


def results_of(text: str) -> list[str]:
    line = next(line for line in text.split("\n") if line.startswith("RESULTS "))
    return json.loads(line.removeprefix("RESULTS "))


@pytest.fixture(scope="module")
def bundle(tmp_path_factory) -> Bundle:
    folder = tmp_path_factory.mktemp("fidelity")
    (folder / "base").mkdir()
    lab = Laboratory(folder / "base", folder / "partition")
    return lab.cells(SETUP, *CELLS.values(), REPORT)


def test_there_are_enough_of_them():
    assert len(CELLS) >= 40


@pytest.mark.parametrize("name", CELLS)
def test_each_cell_arrives_byte_for_byte(bundle: Bundle, name: str):
    number = list(CELLS).index(name) + 2
    found = bundle.folder / "code" / "train.ipynb" / f"cell-{number:02d}.py"
    assert found.read_bytes() == CELLS[name].encode()


def test_they_do_what_they_do_in_ipython(bundle: Bundle, tmp_path: Path):
    cells = tmp_path / "cells.json"
    cells.write_text(json.dumps([SETUP, *CELLS.values(), REPORT]))
    environment = {**bundle.environment(), "IPYTHONDIR": str(tmp_path / "ipython")}
    command = [sys.executable, "-c", IPYTHON, str(cells)]
    reference = subprocess.run(command, capture_output=True, cwd=tmp_path, env=environment, text=True, timeout=60)
    assert reference.returncode == 0, reference.stdout + reference.stderr
    done = bundle.run()
    assert done.code == 0, done.err
    assert results_of(done.out) == results_of(reference.stdout)


def test_every_cell_keeps_its_place_whatever_its_name(lab: Laboratory):
    captured = lab.capture(
        notebook_spec(source={"path": "my n\u00f6tebook #1 $x.ipynb"}), notebook_of("print(__file__)\n1/0")
    )
    bundle = lab.bundle(captured)
    done = bundle.run()
    assert done.error is not None
    assert done.error["file"] == "code/my n\u00f6tebook #1 $x.ipynb/cell-01.py"
    assert captured.name == "my notebook -1 -x"


def test_a_notebook_from_the_screen_needs_a_files_name(lab: Laboratory):
    with pytest.raises(InvalidInputError, match="is a folder"):
        lab.capture(notebook_spec(source={"path": "a/.."}), notebook_of("x"))


def test_a_notebook_called_like_our_own_files_does_not_hide_them(lab: Laboratory):
    spec = notebook_spec(source={"path": "main.py"})
    done = lab.bundle(lab.capture(spec, notebook_of("print('ran')"))).run()
    assert (done.code, done.out) == (0, "ran\n")
