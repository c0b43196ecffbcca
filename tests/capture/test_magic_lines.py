"""What is known of magics and shell lines before the submit."""

from __future__ import annotations

import pytest

from hyperpod_jlab.capture.magic_lines import inspect_cell, to_python
from tests.capture.bundles import Laboratory, notebook_of, notebook_spec


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("%pip install x", "install x"),
        ("!pip install x", "install x"),
        ("!pip3 install -q x | tail -1", "install -q x | tail -1"),
        ("!python -m pip install x", "install x"),
        ("!{sys.executable} -m pip install x", "install x"),
        ("!sudo -H pip install x", "install x"),
        ("if a:\n    %pip install 'x>1'", "install 'x>1'"),
        ("%%hyperpod --nodes 2\n\npip install x", "install x"),
    ],
)
def test_lines_of_pip(text, arguments):
    assert inspect_cell(text).pip_lines == (arguments,)


@pytest.mark.parametrize("text", ["!ls pip", "x = '%pip install x'", "!echo pip install x", "1"])
def test_other_lines(text):
    assert inspect_cell(text).pip_lines == ()


def test_a_secret_in_env_is_warned_of_and_not_repeated(lab: Laboratory):
    cell = "\nx = 1\n%env HF_TOKEN=verysecret\n%set_env A b"
    captured = lab.capture(notebook_spec(), notebook_of("1", cell))
    (finding,) = captured.findings
    assert finding.code == "secret_in_variable"
    assert finding.message.startswith("cell 2, line 3: HF_TOKEN looks like a secret")


def test_python_that_does_not_compile_here_is_warned_of(lab: Laboratory):
    captured = lab.capture(notebook_spec(), notebook_of("!ls", "%time 1\ny = 2\nif x\n    y"))
    (finding,) = captured.findings
    assert (finding.level, finding.code) == ("warning", "syntax")
    assert finding.message.startswith("syntax error in cell 2, line 3: ")


def test_plain_python_stays_as_it_is():
    text = "x = '''\n%foo\n'''\r\nif_ = f\"{x['a']}\" % 3\n"
    assert to_python(text) == (text, 0)
    assert to_python("\n%%hyperpod --nodes 2\n\n" + text) == (text, 3)


def test_the_preview_shows_the_cells_as_they_are(lab: Laboratory):
    captured = lab.capture(notebook_spec(), notebook_of("x = 1", "!ls\nx"))
    assert [(part.title, part.text) for part in captured.parts] == [("Cell 1", "x = 1"), ("Cell 2", "!ls\nx")]
