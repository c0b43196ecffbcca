"""What becomes of each magic and shell line: the Python in its place, the note, and the finding."""

from __future__ import annotations

import ast

import pytest

from hyperpod_jlab.capture.notebook import CodeCell
from hyperpod_jlab.capture.transform import Transformed, transform_cell
from tests.capture.bundles import Laboratory, notebook_of, notebook_spec


def transform(text: str) -> Transformed:
    return transform_cell(CodeCell(3, text, frozenset(), None), "nb.ipynb/cell-03")


def only(text: str):
    """The one finding of a cell, and its Python."""
    done = transform(text)
    (finding,) = done.findings
    (note,) = done.notes
    assert note.partition(": ")[2] in finding.message
    return finding, done.text


@pytest.mark.parametrize(
    ("text", "python"),
    [
        ("!ls $HOME {x}", "__hyperpod__.shell('ls $HOME {x}')"),
        ("x = !ls 'a b'", "x = __hyperpod__.lines(\"ls 'a b'\")"),
        ("!!ls", "__hyperpod__.lines('ls')"),
        ("%sx ls", "__hyperpod__.lines('ls')"),
        ("%ls -l", "__hyperpod__.shell('ls -l')"),
        ("%pip install x", "__hyperpod__.pip('install x')"),
        ("!pip install x", "__hyperpod__.pip('install x')"),
        ("!pip3 install -q x | tail -1", "__hyperpod__.pip('install -q x | tail -1')"),
        ("!python -m pip install x", "__hyperpod__.pip('install x')"),
        ("!{sys.executable} -m pip install x", "__hyperpod__.pip('install x')"),
        ("pip install x", "__hyperpod__.pip('install x')"),
        ("!apt-get install -y x", "__hyperpod__.once('apt-get install -y x')"),
        ("!conda install x", "__hyperpod__.once('conda install x')"),
        ("%uv pip install x", "__hyperpod__.once('uv pip install x')"),
        ("%env A=b c", "__hyperpod__.set_env('A', 'b c')"),
        ("%env A b", "__hyperpod__.set_env('A', 'b')"),
        ("%set_env A=b", "__hyperpod__.set_env('A', 'b')"),
        ("x = %env A", "x = __hyperpod__.env('A')"),
        ("%cd sub", "__hyperpod__.cd('sub')"),
        ("x = %pwd", "x = __hyperpod__.pwd()"),
        ("%matplotlib inline", "__hyperpod__.matplotlib('inline')"),
        ("%time f(x)", "__hyperpod__.timer().stop((f(x)))"),
        ("%time f(x)  # why", "__hyperpod__.timer().stop((f(x)))"),
        ("%time x = f()", "with __hyperpod__.timer(): x = f()"),
        ("x = %time await f()", "x = __hyperpod__.timer().stop((await f()))"),
        ("%run -i a.py b", "__hyperpod__.run('-i a.py b')"),
        ("if x:\n    !ls", "if x:\n    __hyperpod__.shell('ls')"),
        ("%%bash\nls", "__hyperpod__.script(['bash'], 'nb.ipynb/cell-03.sh')\n"),
        ("%%bash --out o\nls", "__hyperpod__.script(['bash'], 'nb.ipynb/cell-03.sh', out='o')\n"),
        ("%%sh -e\nls", "__hyperpod__.script(['sh', '-e'], 'nb.ipynb/cell-03.sh')\n"),
        ("%%script perl -w\nx", "__hyperpod__.script(['perl', '-w'], 'nb.ipynb/cell-03.txt')\n"),
        ("%%!\nls", "__hyperpod__.script_lines('nb.ipynb/cell-03.sh')\n"),
        ("%%writefile a.py\nx", "__hyperpod__.writefile('a.py', 'nb.ipynb/cell-03.txt', False)\n"),
        ("%%file -a a.py\nx", "__hyperpod__.writefile('a.py', 'nb.ipynb/cell-03.txt', True)\n"),
        ("%%time\nx = 1", "\nx = 1"),
        ("%%capture out\nx = 1", "\nx = 1"),
    ],
)
def test_what_runs(text, python):
    finding, code = only(text)
    assert (finding.level, finding.code) == ("info", "magic_runs")
    assert code == python


@pytest.mark.parametrize(
    "text",
    [
        "%autoreload 2",
        "%load_ext autoreload",
        "%reload_ext tensorboard",
        "%aimport x",
        "%config InlineBackend.figure_format = 'retina'",
        "%who",
        "%hyperpod runs",
        "%env",
        "?print",
        "print?",
        "x.y??",
        "%time?",
        "%%hyperpod --nodes 2\nx = 1",
    ],
)
def test_what_has_no_effect_is_said(text):
    finding, _ = only(text)
    assert (finding.level, finding.code) == ("info", "magic_without_effect")


@pytest.mark.parametrize(
    ("text", "python", "words"),
    [
        ("%timeit -n 3 f(x)", "__hyperpod__.timeit('f(x)')", "once"),
        ("%%timeit -r 2\nf(x)", "\nf(x)", "once"),
        (
            "%cd /home/me/project",
            "__hyperpod__.cd('/home/me/project')",
            "missing or different on the nodes",
        ),
        ("!cd sub", "__hyperpod__.shell('cd sub')", "affects only its own line"),
        ("!export A=1", "__hyperpod__.shell('export A=1')", "affects only its own line"),
    ],
)
def test_what_runs_otherwise_is_warned_of(text, python, words):
    finding, code = only(text)
    assert (finding.level, finding.code) == ("warning", "magic_differs")
    assert words in finding.message
    assert code == python


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("%nosuch x", "Python code"),
        ("%autoreloda 2", "%autoreload"),
        ("%%cython\nx", "leave the cell out"),
        ("%%tmie\nx", "%%time"),
        ("%dotenv", "--secret"),
        ("%conda install x", "--setup"),
        ("%run other.ipynb", ".py file"),
        ("%run -d x.py", "%run FILE"),
        ("%reset -f", "empty namespace"),
        ("%time for i in x: f(i)", "%%time"),
        ("x = %who_ls", "Python code"),
        ("%%bash --bg\nls", "leave the option out"),
        ("%%capture a b\nx", "%%capture"),
        ("%%writefile\nx", "%%writefile"),
        ("/f a", "parentheses"),
        (",f a", "parentheses"),
        ("% time x", "Python code"),
    ],
)
def test_what_cannot_run_refuses_the_run_with_a_hint(text, hint):
    finding, code = only(text)
    assert (finding.level, finding.code) == ("error", "unknown_magic")
    assert finding.message.startswith("cell 3, line 1: ")
    assert finding.hint is not None
    assert hint in finding.hint
    ast.parse(code)


def test_a_cell_magic_below_the_first_line_is_misplaced():
    finding, _ = only("x = 1\n%%time\ny = 2")
    assert (finding.level, finding.code) == ("error", "misplaced_magic")


def test_cell_magics_nest():
    done = transform("\n%%time\n%%capture out --no-stderr\n!ls\nx")
    assert done.text == "\n\n\n__hyperpod__.shell('ls')\nx"
    assert [around["magic"] for around in done.around] == ["time", "capture"]
    assert done.around[1]["name"] == "out"
    assert done.around[1]["stderr"] is False
    assert len(done.notes) == 3


def test_line_numbers_stay():
    text = "%%hyperpod\n\n!a \\\n  b \\\n  c\nx = 1\n%env A=1\ny"
    done = transform(text)
    lines = done.text.split("\n")
    assert len(lines) == text.count("\n") + 1
    assert (lines[5], lines[7]) == ("x = 1", "y")
    assert done.rewritten == [1, 3, 7]


def test_bodies_keep_their_bytes_and_shell_bodies_their_line_numbers():
    assert transform("%%writefile a\nx\r\n\ty\n").bodies == {".txt": "x\r\n\ty\n"}
    assert transform("\n%%bash\necho 'a\nb'").bodies == {".sh": "\n\necho 'a\nb'"}


def test_a_secret_in_env_is_warned_of_and_not_repeated():
    done = transform("%env HF_TOKEN=verysecret")
    assert {finding.code for finding in done.findings} == {"secret_in_variable", "magic_runs"}
    told = " ".join([*done.notes, *(finding.message for finding in done.findings)])
    assert "verysecret" not in told
    assert "HF_TOKEN" in told


def test_plain_python_stays_as_it_is():
    text = "x = '''\n%foo\n'''\r\n\tif_ = f\"{x['a']}\" % 3\n"
    done = transform(text)
    assert (done.text, done.notes, done.rewritten) == (text, [], [])


def test_the_preview_shows_what_runs_with_notes(lab: Laboratory):
    captured = lab.capture(notebook_spec(), notebook_of("x = 1", "!ls\nx", "%nosuch"))
    first, second, third = captured.parts
    assert (first.title, first.text, first.notes) == ("Cell 1", "x = 1", ())
    assert second.text == "__hyperpod__.shell('ls')\nx"
    assert second.notes[0].startswith("line 1: !ls: runs through /bin/bash -c on every rank")
    assert third.notes
    assert [finding.level for finding in captured.findings] == ["info", "error"]


def test_python_that_does_not_compile_here_is_warned_of(lab: Laboratory):
    captured = lab.capture(notebook_spec(), notebook_of("x = 1", "y = 2\nif x\n    y"))
    (finding,) = captured.findings
    assert (finding.level, finding.code) == ("warning", "syntax")
    assert finding.message.startswith("syntax error in cell 2, line 2: ")


def test_get_ipython_is_warned_of_unless_it_is_guarded(lab: Laboratory):
    guarded = "try:\n    get_ipython()\nexcept NameError:\n    pass"
    captured = lab.capture(
        notebook_spec(), notebook_of(guarded, "x = 1\nget_ipython().system('ls')")
    )
    (finding,) = captured.findings
    assert (finding.level, finding.code) == ("warning", "get_ipython")
    assert finding.message.startswith("cell 2, line 2: ")
