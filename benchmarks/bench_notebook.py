"""Notebooks: time per cell beside nbclient and papermill, and outputs of many notebooks compared with nbclient's.

    python benchmarks/bench_notebook.py [--json] [--notebooks 200]

Ours is the program that each rank starts, on this machine, without a scheduler. papermill lives in an environment of its own under .bench/.
The notebooks to compare are made of the cells of ``tests/capture/output_cells.py``, by a seeded choice.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import nbformat

from tests.capture.bundles import Laboratory, notebook_of
from tests.capture.output_cells import OUTPUT_CELLS
from tests.capture.test_outputs import comparable, execute_with_nbclient, executed, run_recorded

ROUNDS, CELLS, EACH = 3, 300, 6
ENVIRONMENT = Path(__file__).parent.parent / ".bench" / "papermill"
KINDS = {
    "an assignment": "x = {n}",
    "one printed line": "print('line', {n})",
    "a display of HTML": "display({{'text/plain': '{n}', 'text/html': '<b>{n}</b>'}}, raw=True)",
}
#: Cells that run first if a chosen cell contains the word.
NEEDED = {
    "pd.": "import pandas as pd",
    "frame": "import pandas as pd\nframe = pd.DataFrame({'a': [1, 2], 'b': ['x', 'y']})",
    "np.": "import numpy as np",
    "plt.": "import matplotlib.pyplot as plt",
    "fig": "import matplotlib.pyplot as plt\nfig, ax = plt.subplots()",
    "sys": "import sys",
    "PIXEL": OUTPUT_CELLS["png"],
    "asyncio": "import asyncio",
    "logging": "import logging",
}
DISPLAY = "from IPython.display import HTML, Markdown, Latex, SVG, Image, JSON, Javascript, Math, Code, Pretty, clear_output, display, update_display"
#: They need the very cell before them, or end the notebook.
LEFT_OUT = {"capture-shown", "captured-text", "display-updated-later", "last", "class-of-rich"}
LEFT_OUT |= {"counter", "deque", "defaultdict", "namedtuple"}


def peer_python() -> Path:
    """The interpreter of the environment with papermill, which is made when it is not there."""
    python = ENVIRONMENT / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENT)], check=True)
        command = [str(python), "-m", "pip", "install", "--quiet", "papermill", "ipykernel"]
        subprocess.run(command, check=True)
    return python


def ours(document: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Run a notebook as a rank does; the executed one."""
    (folder / "base").mkdir()
    sources = [cell["source"] for cell in document["cells"]]
    bundle = Laboratory(folder / "base", folder / "partition").cells(*sources)
    assert run_recorded(bundle) == 0
    return executed(bundle)


def papermill(document: dict[str, Any], folder: Path) -> None:
    """Run a notebook with papermill's program."""
    document["metadata"] = {"kernelspec": {"name": "python3", "language": "python", "display_name": "x"}}
    nbformat.write(nbformat.from_dict(document), folder / "in.ipynb")
    options = ("--no-progress-bar", "--kernel", "python3", "in.ipynb", "out.ipynb")
    subprocess.run([peer_python(), "-m", "papermill", *options], cwd=folder, check=True, capture_output=True)


def seconds(run: Callable[[dict[str, Any], Path], object], cells: list[str]) -> float:
    """How long a notebook takes, start included."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        run(notebook_of(*cells), Path(folder))
        return time.perf_counter() - start


def per_cell() -> list[dict[str, Any]]:
    """Milliseconds of a cell, and of the start, for each program; medians of rounds in turn."""
    peers = {"hyperpod_jlab": ours, "nbclient": execute_with_nbclient, "papermill": papermill}
    peer_python()
    rows = []
    for kind, template in KINDS.items():
        many = [template.format(n=number) for number in range(CELLS)]
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in peers}
        for _ in range(ROUNDS):
            for name, run in peers.items():
                base = seconds(run, many[:1])
                found[name].append((base, (seconds(run, many) - base) / (CELLS - 1)))
        for name, rounds in found.items():
            rows.append(
                {
                    "cell": kind,
                    "program": name,
                    "cell ms": round(statistics.median(each for _, each in rounds) * 1000, 2),
                    "start ms": round(statistics.median(base for base, _ in rounds) * 1000),
                }
            )
    return rows


def compare(count: int) -> list[str]:
    """Execute so many notebooks both ways; what is different, by notebook and cell."""
    names = sorted(set(OUTPUT_CELLS) - LEFT_OUT)
    different = []
    for seed in range(count):
        chosen = random.Random(seed).sample(names, EACH)
        cells = [OUTPUT_CELLS[name] for name in chosen]
        needed = [text for word, text in NEEDED.items() if any(word in cell for cell in cells)]
        cells = [DISPLAY, *needed, *cells]
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "ours").mkdir()
            (root / "theirs").mkdir()
            mine = ours(notebook_of(*cells), root / "ours")
            theirs = execute_with_nbclient(notebook_of(*cells), root / "theirs")
        for name, one, other in zip(chosen, mine["cells"][-EACH:], theirs["cells"][-EACH:], strict=True):
            if comparable(one["outputs"]) != comparable(other["outputs"]):
                different.append(f"notebook {seed}, {name}")
    return different


def main() -> None:
    """Measure, compare, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--notebooks", type=int, default=200)
    options = parser.parse_args()
    rows = per_cell()
    different = compare(options.notebooks)
    if options.json:
        print(json.dumps({"rows": rows, "notebooks": options.notebooks, "different": different}))
        return
    for row in rows:
        print(f"{row['cell']:20} {row['program']:14} {row['cell ms']:>7} ms a cell, {row['start ms']:>5} ms to start")
    print(f"{options.notebooks} notebooks, {EACH} cells each: {len(different)} outputs differ {different}")


if __name__ == "__main__":
    main()
