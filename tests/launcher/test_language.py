"""One file for the node's own Python, whatever that is."""

import ast
import re
import subprocess
import sys
from pathlib import Path

from hyperpod_jlab.launcher import assemble, launcher_source
from hyperpod_jlab.launcher.assemble import PARTS

from .conftest import NODE_PYTHON

TREE = ast.parse(launcher_source(), feature_version=(3, 8))


def test_every_name_is_there_once():
    """The parts become one file, so a name that two of them define would be lost."""
    names = [
        name
        for node in TREE.body
        for name in (
            [node.name]
            if isinstance(node, ast.ClassDef | ast.FunctionDef)
            else [target.id for target in node.targets if isinstance(target, ast.Name)]
            if isinstance(node, ast.Assign)
            else []
        )
    ]
    assert sorted(names) == sorted(set(names))
    folder = Path(assemble.__file__).parent
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__", "assemble", "guard", "parsing"}
    assert modules == set(PARTS)


def test_only_the_standard_library_is_imported():
    names = {
        name.split(".")[0]
        for node in ast.walk(TREE)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module])
    }
    # torch itself only in the process that is torchrun's agent
    assert names - {"torch"} <= set(sys.stdlib_module_names)


def test_every_api_is_there_in_python_3_8(tmp_path):
    (tmp_path / "launcher.py").write_bytes(launcher_source())
    vermin = Path(sys.executable).with_name("vermin")
    words = [str(vermin), "--target=3.8-", "--violations", "--no-tips", str(tmp_path / "launcher.py")]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_annotations_are_legal_in_python_3_8():
    # They are not evaluated, but a reader of them on 3.8 would stumble.
    text = launcher_source().decode()
    assert not re.search(r"\b(list|dict|set|tuple|type)\[(?=[A-Z])", text)
    assert not re.search(r"(->|: )\w+ \| \w+", text)


def test_functions_are_short():
    long = [
        node.name
        for node in ast.walk(TREE)
        if isinstance(node, ast.FunctionDef) and (node.end_lineno or 0) - node.lineno >= 50
    ]
    assert long == []


def test_it_runs_isolated_and_without_site_packages(bundle):
    bundle.plan("true", python=None)
    done = bundle.start()
    done.communicate(timeout=30)
    words = [NODE_PYTHON, "-I", "-S", *done.args[1:]]
    assert subprocess.run(words, stdout=subprocess.DEVNULL, timeout=30).returncode == 0
