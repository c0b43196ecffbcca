"""Which cells go along, and what is said of names that stay behind."""

from __future__ import annotations

import json

import pytest

import hyperpod_jlab
from hyperpod_jlab.magics.cell import find_missing_names, parse_names
from hyperpod_jlab.magics.kernel import restore_exact_text

from .conftest import log_of

SETUP = "import math\nscale = 3"
DEFINITION = "def area(r):\n    return scale * math.floor(r)"
CELL = "%%hyperpod\nprint(area(2.5))"


def test_names_of_the_kernel_are_told_with_the_cells_that_make_them(shell, save, monkeypatch):
    save(SETUP, "unused = 1", DEFINITION, CELL)
    monkeypatch.setenv("JPY_SESSION_NAME", "train.ipynb")
    for text in (SETUP, "unused = 1", DEFINITION):
        shell.run(text)
    shown = shell.run(CELL)
    assert "names of this kernel that do not exist in the job: area" in shown.err
    assert "--cells 1,3" in shown.err
    assert "name 'area' is not defined" in "\n".join(log_of(shown.card["run_id"]))


def test_cells_go_along_and_keep_their_numbers(shell, save, project, monkeypatch):
    cell = CELL.replace("%%hyperpod", "%%hyperpod --cells 1,3 --name all") + "\n1 / 0"
    save(SETUP, "unused = 1", DEFINITION, cell)
    monkeypatch.setenv("JPY_SESSION_NAME", str(project / "train.ipynb"))
    for text in (SETUP, DEFINITION):
        shell.run(text)
    shown = shell.run(cell)
    assert shown.err == ""
    run = hyperpod_jlab.get(shown.card["run_id"]).wait(60)
    assert log_of(run.run_id)[0] == "0|6"
    assert run.view.status.reason.endswith("in cell 4 line 3: division by zero")
    code = run.bundle / "code" / "train.ipynb"
    assert sorted(path.name for path in code.glob("cell-0?.py")) == ["cell-01.py", "cell-03.py", "cell-04.py"]
    assert (code / "cell-04.py").read_text() == cell
    assert run.to_dict()["notebook"] == str(project / "train.ipynb")
    plan = json.loads((run.bundle / "code" / "cells.json").read_text())
    assert [one["id"] for one in plan["cells"]] == ["c1", "c3", "c4"]


def test_cells_with_a_tag_go_along(shell, save, monkeypatch):
    save(SETUP, DEFINITION, "1", tags=(1, 2))
    monkeypatch.setenv("JPY_SESSION_NAME", "train.ipynb")
    shell.run(SETUP)
    shell.run(DEFINITION)
    shown = shell.run(CELL.replace("%%hyperpod", "%%hyperpod --tag setup"))
    assert shown.err == ""
    assert log_of(shown.card["run_id"]) == ["0|6"]


def test_without_a_notebook_cells_are_the_kernels_inputs(shell):
    shell.run(SETUP)  # In [2]: In [1] loaded the extension
    shell.run(DEFINITION)
    assert "--cells 2,3" in shell.run(CELL).err
    shown = shell.run(CELL.replace("%%hyperpod", "%%hyperpod --cells 1-3"))
    assert shown.err == ""
    assert log_of(shown.card["run_id"]) == ["0|6"]


def test_what_was_saved_otherwise_than_run_is_told(shell, save, monkeypatch):
    save("scale = 2", CELL)
    monkeypatch.setenv("JPY_SESSION_NAME", "train.ipynb")
    shell.run("scale = 3")
    shown = shell.run("%%hyperpod --cells 1 --dry-run\nprint(scale)")
    assert "cell 1 is included as saved, but this kernel did not run that version" in shown.out


def test_a_cell_that_is_a_job_of_its_own_does_not_go_along(shell):
    shell.run(SETUP)
    shell.run("%%hyperpod --dry-run\nraise SystemExit(3)")
    shown = shell.run("%%hyperpod --cells 2-3 --dry-run\nprint(scale)")
    assert "cell 3 is a separate job and is not included" in shown.out
    assert "SystemExit" not in shown.out
    assert "kernel_names" not in shown.out


def test_a_cell_below_cannot_go_along(shell, save, monkeypatch):
    monkeypatch.setenv("JPY_SESSION_NAME", "train.ipynb")
    save("%%hyperpod --cells 2\n1", DEFINITION)
    assert "[cell_below]" in shell.run("%%hyperpod --cells 2\n1").error


@pytest.mark.parametrize("content", ["", "{", '{"nbformat": 4, "cells": []}'])
def test_a_notebook_that_cannot_be_read_is_no_hindrance(shell, project, monkeypatch, content):
    (project / "train.ipynb").write_text(content)
    monkeypatch.setenv("JPY_SESSION_NAME", "train.ipynb")
    shown = shell.run("%%hyperpod\nprint(1)")
    assert shown.card["name"] == "train"
    assert log_of(shown.card["run_id"]) == ["0|1"]


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("print(x)", {"x"}),
        ("x = 1\nprint(x)", set()),
        ("x = x + 1", {"x"}),
        ("x += 1", {"x"}),
        ("def f():\n    return x\nx = 1", set()),
        ("def f():\n    return x", {"x"}),
        ("def f(x):\n    return [x for _ in y]", {"y"}),
        ("class A(B):\n    c = 1\n    d = c", {"B"}),
        ("def f():\n    global x\n    x = 1\nf()\nprint(x)", set()),
        ("import a.b\nfrom c import d as e\na, e", set()),
        ("from a import *\nx", set()),
        ("for i in range(3):\n    print(i)", set()),
        ("try:\n    import a\nexcept ImportError as error:\n    print(error)", set()),
        ("await x", {"x"}),
        ("print([n for n in range(m)])", {"m"}),
        ("lambda a: a + b", {"b"}),
        ("__name__, display, print", set()),
        ("(", set()),
        ("get_ipython().run_line_magic('run', 'a.py')\nx", set()),
    ],
)
def test_names_that_are_missing(text, missing):
    assert find_missing_names([parse_names(text)]) == missing


def test_names_come_from_the_cells_before_and_not_after():
    assert find_missing_names([parse_names("a = 1"), parse_names("print(a, b)"), parse_names("b = 1")]) == {"b"}
    assert find_missing_names([parse_names("def f(): return b"), parse_names("b = 1\nf()")]) == set()


@pytest.mark.parametrize(
    ("sent", "text"),
    [
        (["%%hyperpod -x\na\nb"], "%%hyperpod -x\na\nb"),
        (["\n\n  %%hyperpod -x\n  a\n  b\n"], "\n\n  %%hyperpod -x\n  a\n  b\n"),
        (["%%time\n%%hyperpod -x\na\nb"], "\n%%hyperpod -x\na\nb"),
        (["something else", "%%hyperpod {y}\na\nb"], "%%hyperpod {y}\na\nb"),
        ([], "%%hyperpod -x\na\nb\n"),
        (["f()\n%%hyperpod -x\na\nb"], "%%hyperpod -x\na\nb\n"),
    ],
)
def test_the_text_is_the_authors(sent, text):
    body = "a\nb\n" if "  a" not in "".join(sent) else "  a\n  b\n"
    assert restore_exact_text(sent, "-x", body) == text
