"""The runner: values shown, exit codes, tracebacks and records, event loop, sources."""

from __future__ import annotations

import json
import signal
import sys
import textwrap
from pathlib import Path

import pytest

from tests.capture.bundles import Laboratory, notebook_of, notebook_spec

pytestmark = pytest.mark.local


def cell(text: str) -> str:
    return textwrap.dedent(text).strip("\n")


def test_the_last_expression_is_shown_once_for_the_job(lab: Laboratory):
    bundle = lab.cells("x = [1]\nx", "None", "'quiet';", "print('all')\nprint", "'\u00e9'")
    first, second = bundle.run_ranks(2)
    assert first.out == "[1]\nall\n<function print(*args, sep=' ', end='\\n', file=None, flush=False)>\n'\u00e9'\n"
    assert second.out == "all\n"


def test_display_prints_on_every_rank(lab: Laboratory):
    outs = [done.out for done in lab.cells("display([1], 'a')").run_ranks(2)]
    assert outs == ["[1]\n'a'\n"] * 2


def test_a_faulty_repr_does_not_end_the_job(lab: Laboratory):
    bad = "class Bad:\n    def __repr__(self): raise ValueError('no repr')\nBad()"
    done = lab.run(bad, "print('went on')")
    assert (done.code, done.out) == (0, "went on\n")
    assert "no repr" in done.err


def test_arguments_names_and_file(lab: Laboratory):
    text = "import sys\nprint(sys.argv[1:], __name__, __file__)\nprint(sorted(n for n in dir() if n[0] != '_'))"
    bundle = lab.cells(text, args=["--lr", "a b $x"])
    done = bundle.run()
    first, names = done.out.splitlines()
    assert first == f"['--lr', 'a b $x'] __main__ {bundle.folder}/code/main.py"
    assert names == "['In', 'Out', 'exit', 'get_ipython', 'open', 'quit', 'sys']"


def test_modules_beside_the_notebook_are_found(lab: Laboratory):
    (lab.base / "beside.py").write_text("VALUE = 7")
    done = lab.run("import beside, os\nprint(beside.VALUE)", "import sys\n'code' in sys.path[0]")
    assert done.out == "7\nFalse\n"


def test_a_notebook_below_the_project_root_starts_in_its_own_folder(lab: Laboratory):
    (lab.base / "notebooks").mkdir()
    (lab.base / "notebooks" / "beside.py").write_text("VALUE = 8")
    (lab.base / "data.txt").write_text("data")
    done = lab.run(
        "import beside\nprint(beside.VALUE, open('../data.txt').read())",
        source={"path": "notebooks/train.ipynb"},
        files={"root": "."},
    )
    assert (done.code, done.out) == (0, "8 data\n")


def test_a_traceback_names_the_cell_and_shows_its_line(lab: Laboratory):
    bundle = lab.cells("x = 1", "def f(x):\r\n\treturn 1 / x  # caf\u00e9\r\n", "# first\n\nf(0)")
    done = bundle.run()
    folder = bundle.folder / "code" / "train.ipynb"
    assert done.code == 1
    assert done.out == ""
    lines = [line for line in done.err.splitlines() if "^" not in line]
    assert lines == [
        "Traceback (most recent call last):",
        f'  File "{folder}/cell-03.py", line 3, in <module>',
        "    f(0)",
        f'  File "{folder}/cell-02.py", line 2, in f',
        "    return 1 / x  # caf\u00e9",
        "ZeroDivisionError: division by zero",
    ]
    assert done.error is not None
    assert done.error["traceback"].rstrip("\n") == done.err.rstrip("\n")
    del done.error["traceback"], done.error["time"]
    assert done.error == {
        "rank": 0,
        "node_rank": 0,
        "local_rank": 0,
        "type": "ZeroDivisionError",
        "message": "division by zero",
        "cell": 2,
        "line": 2,
        "file": "code/train.ipynb/cell-02.py",
    }


def test_the_record_names_the_cell_when_the_error_comes_from_a_library(lab: Laboratory):
    done = lab.run("import json", "x = 1\njson.loads('{')")
    assert done.error is not None
    assert (done.error["type"], done.error["cell"], done.error["line"]) == ("json.decoder.JSONDecodeError", 2, 2)
    assert "hyperpod_runtime" not in done.err
    assert "main.py" not in done.err


def test_causes_and_groups_are_trimmed_too(lab: Laboratory):
    text = cell("""
        try:
            try:
                1 / 0
            except ZeroDivisionError as error:
                raise ValueError("second") from error
        except ValueError as error:
            raise ExceptionGroup("group", [error, KeyError("third")])
    """)
    done = lab.run(text)
    assert "second" in done.err
    assert "third" in done.err
    assert "hyperpod_runtime" not in done.err


def test_a_failing_await_shows_the_cell_and_no_event_loop(lab: Laboratory):
    done = lab.run("async def f():\n    raise OSError('x')", "await f()")
    assert done.code == 1
    assert "asyncio" not in done.err
    assert done.err.count("File ") == 2


@pytest.mark.parametrize("text", ["x = 1\nif x\n  y", "x = 1\nreturn 3", "x = 1\nbreak"])
def test_an_awaiting_notebook_that_cannot_be_compiled_shows_the_cell_and_no_event_loop(lab: Laboratory, text: str):
    done = lab.run("import asyncio\nawait asyncio.sleep(0)", text)
    assert done.code == 1
    assert "asyncio" not in done.err
    assert done.err.count("File ") == 1
    assert "cell-02.py" in done.err
    assert done.error is not None
    assert (done.error["cell"], done.error["line"]) == (2, 2)
    assert "asyncio" not in done.error["traceback"]


@pytest.mark.parametrize(
    ("text", "code", "err"),
    [
        ("import sys\nsys.exit(3)", 3, ""),
        ("raise SystemExit('words')", 1, "words\n"),
        ("import sys\nsys.exit()", 0, ""),
        ("exit(4)", 4, ""),
    ],
)
def test_system_exit_is_honoured(lab: Laboratory, text: str, code: int, err: str):
    done = lab.run(text, "print('never')")
    assert (done.code, done.out, done.err) == (code, "", err)
    assert (done.error is None) == (code == 0)


def test_an_interrupt_ends_as_python_ends(lab: Laboratory):
    done = lab.run("raise KeyboardInterrupt")
    assert done.code == -signal.SIGINT
    assert done.err.rstrip().endswith("KeyboardInterrupt")


def test_a_syntax_error_shows_the_cell_and_runs_nothing_of_it(lab: Laboratory):
    done = lab.run("print('first')", "print('never')\nx = (1,")
    assert (done.code, done.out) == (1, "first\n")
    assert done.error is not None
    assert (done.error["type"], done.error["cell"], done.error["line"]) == ("SyntaxError", 2, 2)
    assert "x = (1," in done.err
    assert "hyperpod_runtime" not in done.err


def test_a_rewritten_line_is_shown_as_the_user_wrote_it(lab: Laboratory):
    done = lab.run("x = 0\n%time 1 / x")
    assert "    %time 1 / x\n" in done.err
    assert "^" not in done.err
    assert done.error is not None
    assert (done.error["cell"], done.error["line"]) == (1, 2)


def test_excepthooks_and_atexit_of_libraries_still_work(lab: Laboratory):
    text = cell("""
        import atexit, sys
        sys.excepthook = lambda kind, value, trace: print("hook", kind.__name__, trace.tb_frame.f_code.co_name, trace.tb_lineno)
        atexit.register(print, "bye")
        1 / 0
    """)
    done = lab.run(text)
    assert (done.code, done.out) == (1, "hook ZeroDivisionError <module> 4\nbye\n")


def test_a_message_that_is_too_long_is_shortened_in_the_record_only(lab: Laboratory):
    done = lab.run("raise ValueError('a' * 100_000 + 'end')")
    assert done.error is not None
    assert len(done.error["message"]) < 10_000
    assert done.error["message"].endswith("end")
    assert len(done.err) > 100_000


def test_exceptions_whose_text_fails_are_recorded(lab: Laboratory):
    bad = "class Bad(Exception):\n    def __str__(self): raise ValueError\nraise Bad"
    done = lab.run(bad)
    assert done.code == 1
    assert done.error is not None
    assert done.error["type"] == "Bad"


def test_future_flags_go_on_to_later_cells_and_not_back(lab: Laboratory):
    done = lab.run(
        "def a(x: int): ...",
        "from __future__ import annotations\nfrom __future__ import division",
        "def b(x: Nope): ...",
        "print(a.__annotations__, b.__annotations__)",
    )
    assert done.out == "{'x': <class 'int'>} {'x': 'Nope'}\n"


def test_tasks_live_on_between_cells_and_end_with_the_job(lab: Laboratory):
    done = lab.run(
        "import asyncio\nseen = []\nasync def work():\n    for i in range(100):\n        seen.append(i)\n        await asyncio.sleep(0)",
        "task = asyncio.create_task(work())",
        "await asyncio.sleep(0.01)\nprint(len(seen) > 2)",
        "other = asyncio.create_task(asyncio.sleep(1000))",
    )
    assert (done.code, done.out, done.err) == (0, "True\n", "")


def test_asyncio_run_works_where_nothing_awaits(lab: Laboratory):
    done = lab.run("import asyncio\nasync def f(): return await asyncio.sleep(0, 5)\nasyncio.run(f())")
    assert (done.code, done.out) == (0, "5\n")


def test_sources_of_functions(lab: Laboratory):
    done = lab.run(
        "import inspect\nclass Plain:\n    def method(self):\n        return '$HOME'",
        "!true\ndef after():\n    return 2",
        "print(repr(inspect.getsource(Plain.method)), repr(inspect.getsource(after)))\n"
        "print(inspect.getsourcefile(after).rpartition('/')[2], inspect.getsourcelines(after)[1])",
    )
    assert done.out.splitlines() == [
        "\"    def method(self):\\n        return '$HOME'\\n\" 'def after():\\n    return 2\\n'",
        "cell-02.py 2",
    ], done.err


NODE_PYTHON = f"{sys.base_prefix}/bin/python3"
"""Without the packages of our environment."""


def test_ipython_goes_along_to_nodes_that_have_none(lab: Laboratory, tmp_path: Path):
    # The base interpreter of a developer may have one.
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\nsys.path[:] = [path for path in sys.path if 'site-packages' not in path]\n"
    )
    bundle = lab.cells(
        "import IPython\nprint(IPython.__file__)",
        "from IPython.display import HTML\nx = !echo shell\nprint(x)\nHTML('x')",
        "import multiprocessing as mp\ndef f(x): return x + 1\n"
        "with mp.get_context('spawn').Pool(1) as pool:\n    print(pool.map(f, [1]))",
    )
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    for _ in range(2):
        done = bundle.run(NODE_PYTHON, PYTHONPATH=str(tmp_path), TMPDIR=str(temporary))
        place, *rest = done.out.splitlines()
        assert place.startswith(f"{temporary}/hyperpod-ipython-"), done.err
        assert rest == ["['shell']", "<IPython.core.display.HTML object>", "[2]"]
    (kept,) = temporary.iterdir()
    (kept / "IPython" / "display.py").unlink()
    assert bundle.run(NODE_PYTHON, PYTHONPATH=str(tmp_path), TMPDIR=str(temporary)).code == 0


def test_cells_are_plain_python_where_no_ipython_runs(lab: Laboratory):
    bundle = lab.cells(
        "\n\nx = [1]\nx",
        "import multiprocessing as mp\ndef f(x): return x + 1\n"
        "with mp.get_context('spawn').Pool(1) as pool:\n    print(pool.map(f, [1]))",
        "y = 1\n%time y",
    )
    (bundle.folder / "code" / "lib" / "ipython.zip").write_bytes(b"")
    block = bundle.folder / "site"
    block.mkdir()
    (block / "IPython.py").write_text("raise ImportError('not for this Python')")
    done = bundle.run(PYTHONPATH=str(block))
    assert (done.code, done.out) == (1, "[1]\n[2]\n")
    assert "cells run as plain Python" in done.err
    assert done.error is not None
    assert (done.error["type"], done.error["cell"], done.error["line"]) == ("SyntaxError", 3, 2)


def test_the_plan_is_data_and_the_runner_is_the_same_for_all(lab: Laboratory):
    one = lab.capture(notebook_spec(), notebook_of("x"))
    two = lab.capture(notebook_spec(), notebook_of("y = '''\n\"\"\"'''", "%time 1"))
    main_of = {file.path: file.data for file in one.files if "runtime" in file.path or "main" in file.path}
    assert main_of == {file.path: file.data for file in two.files if file.path in main_of}
    plan = next(json.loads(file.data) for file in two.files if file.path == "code/cells.json")
    assert plan["cells"][1]["file"] == "train.ipynb/cell-02.py"
    assert two.command == ({"python": True}, "-u", {"bundle": "code/main.py"})


def test_it_runs_by_hand_without_a_job_around(lab: Laboratory):
    bundle = lab.cells("print(1)\n1 / 0")
    done = bundle.run(HYPERPOD_RECORDS="", HYPERPOD_BUNDLE="", RANK="")
    assert (done.code, done.out, done.error) == (1, "1\n", None)


def test_notebook_bars_are_drawn_as_text(lab: Laboratory):
    package = lab.base / "tqdm"
    package.mkdir()
    (package / "__init__.py").write_text(
        "def tqdm(it, **_): print('bar'); return it\ndef trange(n): return tqdm(range(n))"
    )
    (package / "notebook.py").write_text("raise ImportError('no widgets here')")
    done = lab.run(
        "from tqdm.notebook import tqdm, trange\nimport tqdm.notebook as t", "list(tqdm([1])) + list(t.trange(2))"
    )
    assert (done.code, done.out) == (0, "bar\nbar\n[1, 0, 1]\n"), done.err


def test_a_task_that_will_not_end_does_not_hold_the_job(lab: Laboratory):
    done = lab.run(
        cell("""
            import asyncio
            async def stubborn():
                while True:
                    try:
                        await asyncio.sleep(100)
                    except asyncio.CancelledError:
                        pass
            task = asyncio.create_task(stubborn())
        """)
    )
    assert done.code == 0


def test_cells_without_statements(lab: Laboratory):
    assert lab.run("# only words", "%%time\n# nothing", "print(1)").out.endswith("1\n")


def test_a_lone_string_is_shown_and_a_docstring_is_none(lab: Laboratory):
    assert lab.run("'''text'''", "'''doc'''\nx = 1").out == "'text'\n"


def test_it_answers_the_launchers_question_where_it_is(lab: Laboratory):
    number = signal.SIGRTMIN + 8
    asks = f"""
        import os, sys, io
        sys.stderr = io.StringIO()

        def waits_here():
            os.kill(os.getpid(), {number})

        waits_here()
        print("went on")
    """
    done = lab.cells(cell(asks)).run(HYPERPOD_STACK_SIGNAL=str(int(number)))
    assert (done.code, done.out) == (0, "went on\n")
    assert "in waits_here" in done.err
