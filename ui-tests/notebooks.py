"""Notebooks as the tests need them, and what stands in their outputs."""

from __future__ import annotations

import json
from pathlib import Path

MIME_TYPE = "application/vnd.hyperpod.run+json"
LOAD = "%load_ext hyperpod_jlab"
#: A cell in which each rank says four steps.
STEPS = (
    "import os\nimport time\n"
    "for step in range(4):\n"
    "    print('rank', os.environ['RANK'], 'step', step)\n"
    "    time.sleep(0.3)\n"
)


def code_cell(source: str, data: object = None) -> dict[str, object]:
    """A code cell; with data, its output is a run."""
    outputs: list[object] = []
    if data is not None:
        outputs.append(
            {"output_type": "display_data", "metadata": {}, "data": {MIME_TYPE: data, "text/plain": ["a run"]}}
        )
    return {"cell_type": "code", "metadata": {}, "execution_count": None, "source": source, "outputs": outputs}


def write_notebook(folder: Path, name: str, cells: list[dict[str, object]]) -> str:
    """Write a notebook, which is not trusted as nobody has signed it; returns its name."""
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    document = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    (folder / name).write_text(json.dumps(document))
    return name


def counting(lines: int, pause: float, option: str = "") -> str:
    """A magic's cell that prints `line 0`, `line 1`, ... with a pause after each."""
    body = f"import time\nfor n in range({lines}):\n    print('line', n)\n    time.sleep({pause})\n"
    return f"%%hyperpod {option}\n{body}"


def run_output(run_id: str, name: str = "a-run") -> dict[str, object]:
    """An output's data."""
    return {"version": 1, "run_id": run_id, "name": name}


def saved_outputs(folder: Path, name: str) -> str:
    """All outputs of a saved notebook, as text."""
    document = json.loads((folder / name).read_text())
    return json.dumps([cell.get("outputs") for cell in document["cells"]])
