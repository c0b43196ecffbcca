"""The far side's files stand alone: old grammar, the standard library only, and all of them travel."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from hyperpod_jlab.capture import runtime
from hyperpod_jlab.capture.captured import MAIN, PACKAGE, runtime_files

FOLDER = Path(runtime.__file__).parent
FILES = sorted(FOLDER.glob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_grammar_is_that_of_python_3_8(path: Path):
    ast.parse(path.read_text(), feature_version=(3, 8))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_only_the_standard_library_is_imported(path: Path):
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(str(node.module).partition(".")[0])
    # IPython and cloudpickle go with the run.
    own = {"IPython", "traitlets"} if path.name == "shell.py" else {"cloudpickle"}
    assert names <= set(sys.stdlib_module_names) | own


@pytest.mark.parametrize("kind", ["notebook", "function"])
def test_each_runner_brings_all_that_it_imports(kind):
    files = {file.path: file.data.decode() for file in runtime_files(kind)}
    assert MAIN in files
    for path, text in files.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.level:
                wanted = [node.module] if node.module else [alias.name for alias in node.names]
                assert {f"{PACKAGE}/{name}.py" for name in wanted} <= files.keys(), path


def test_no_file_is_left_behind():
    taken = {Path(file.path).name for kind in ("notebook", "function") for file in runtime_files(kind)}
    assert {path.name for path in FILES} - taken == {"notebook_main.py", "function_main.py"}
