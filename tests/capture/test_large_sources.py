"""Huge, deep and hostile sources: capture takes time in proportion to their size, and says what is too large."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hyperpod_jlab.capture import capture
from hyperpod_jlab.capture.files import run_name
from hyperpod_jlab.capture.magic_lines import inspect_cell
from hyperpod_jlab.capture.notebook import MAX_CELLS, read_notebook
from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.core.spec import JobSpec
from tests.capture.bundles import notebook_of, notebook_spec

UNITS = {
    "blanks in a syntax error": lambda n: inspect_cell("x = (\n" + " " * n + "y"),
    "blanks after a name": lambda n: inspect_cell("a" + " " * n + "y\nz"),
    "a name before help": lambda n: inspect_cell("a" * n + " b?"),
    "brackets before help": lambda n: inspect_cell("a" + "[0]" * (n // 3) + " ?"),
    "await that is none": lambda n: inspect_cell("x = (\n" + "a." * (n // 2) + "await"),
    "magics": lambda n: inspect_cell("!a\n" * (n // 3)),
    "cell magics": lambda n: inspect_cell("%%time\n" * (n // 7)),
    "blank lines": lambda n: inspect_cell("\r\n" * (n // 2) + "%%time"),
    "prompts": lambda n: inspect_cell(">>> a\n" * (n // 6)),
    "characters by name": lambda n: inspect_cell("f'" + "\\N{" * (n // 3)),
    "quotes": lambda n: inspect_cell("f'{" * (n // 3)),
    "brackets": lambda n: inspect_cell("(" * n),
    "minus": lambda n: inspect_cell("-" * n + "1"),
    "a shell line of blanks": lambda n: inspect_cell("!" + " " * n + "x"),
    "a shell line of options": lambda n: inspect_cell("!sudo " + "-a " * (n // 3)),
    "a shell line of words": lambda n: inspect_cell("!apt " + "a " * (n // 2)),
    "an option of env": lambda n: inspect_cell("%env " + "a" * n),
    "a word of script": lambda n: inspect_cell("%%script " + "a" * n),
    "an unknown magic": lambda n: inspect_cell("%" + "a" * n),
    "accents": lambda n: run_name(None, "\u0344\u0327" * (n // 2)),
}


@pytest.mark.parametrize("unit", UNITS)
def test_time_is_in_proportion_to_size(unit: str):
    """Eight times the size takes less than 24 times as long, or less than a second; by the square it would take 64 times."""
    work: Callable[[int], object] = UNITS[unit]
    small = min(_seconds(work, 8_000) for _ in range(3))
    large = min(_seconds(work, 64_000) for _ in range(3))
    assert large < max(24 * small, 1.0), (small, large)


def _seconds(work: Callable[[int], object], size: int) -> float:
    begin = time.process_time()
    work(size)
    return time.process_time() - begin


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "(" * 10_000,
        "x = " + "-" * 100_000 + "1",
        "x = " + "+".join(["1"] * 2_000),
        "x = " + "+".join(["1"] * 50_000),
        "x = a" + ".b" * 50_000,
        "%time " + "+".join(["1"] * 1_000) + " # c",
        "x = %time " + "(" * 300 + ")" * 300 + " # c",
        "\n".join(" " * n + "if a:" for n in range(200)),
        "x = f'" + "{" * 5_000,
        "x = '''" + "a" * 100_000,
        "get_ipython(" * 500 + ")" * 500,
    ],
)
def test_code_that_is_nested_too_deeply_is_no_bug(text: str, tmp_path: Path):
    captured = capture(notebook_spec(), base=tmp_path, notebook=notebook_of(text))
    assert captured.files


def too_large(document: dict[str, Any], tmp_path: Path) -> InvalidInputError:
    with pytest.raises(InvalidInputError) as caught:
        capture(notebook_spec(), base=tmp_path, notebook=document)
    return caught.value


def test_too_much_code_and_too_many_cells_are_refused(tmp_path: Path):
    code = too_large(notebook_of("a = 1\n" * 800_000), tmp_path)
    cells = too_large(notebook_of(*["a"] * (MAX_CELLS + 1)), tmp_path)
    assert {code.code, cells.code} == {"too_large"}


@pytest.mark.parametrize("kind", ["script", "native"])
def test_a_file_that_is_too_large_is_refused(tmp_path: Path, kind: str):
    (tmp_path / "a.sbatch").write_bytes(b"#" * (9 << 20))
    spec = JobSpec.model_validate({"source": {"kind": kind, "path": "a.sbatch"}})
    with pytest.raises(InvalidInputError, match="larger than 8 MiB") as caught:
        capture(spec, base=tmp_path)
    assert caught.value.code == "too_large"


def test_a_notebook_that_is_too_large_is_refused(tmp_path: Path):
    with (tmp_path / "a.ipynb").open("wb") as file:
        file.truncate(65 << 20)
    with pytest.raises(InvalidInputError, match="larger than 64 MiB") as caught:
        read_notebook(tmp_path / "a.ipynb")
    assert caught.value.hint == "clear its outputs"


def test_megabytes_of_markdown_stay_out_of_the_run(tmp_path: Path):
    markdown = {"cell_type": "markdown", "id": "m", "metadata": {}, "source": "x" * (17 << 20)}
    captured = capture(notebook_spec(), base=tmp_path, notebook=notebook_of("a", markdown))
    sent = next(file.data for file in captured.files if file.path == "code/notebook.ipynb")
    assert [cell["cell_type"] for cell in json.loads(sent)["cells"]] == ["code"]
