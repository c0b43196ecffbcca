"""Shell lines and magics as they run in the job."""

from __future__ import annotations

import sys

import pytest

from tests.capture.bundles import Laboratory


def test_a_failing_shell_line_is_said_and_the_job_goes_on(lab: Laboratory):
    done = lab.run("x = 1\n!exit 7", "print(_exit_code)\n!true\nprint(_exit_code)")
    assert (done.code, done.out) == (0, "7\n0\n")
    assert done.err == "hyperpod: cell-01.py, line 2: exit code 7: exit 7\n"


def test_shell_lines_see_local_variables_and_keep_the_order_of_output(lab: Laboratory):
    done = lab.run("def f(name):\n    print('before')\n    !echo {name} $name\n    print('after')\nf('a b')")
    assert done.out == "before\na b a b\nafter\n"


def test_the_jobs_own_python_comes_first(lab: Laboratory):
    done = lab.run(
        "import sys, os\nx = !which python\nprint(x[0] == os.path.join(os.path.dirname(sys.executable), 'python'))"
    )
    assert done.out == "True\n"


def test_lines_have_the_short_forms(lab: Laboratory):
    done = lab.run("x = !printf 'a\\nb\\n'; true\nprint(x, x.l, x.s, repr(x.n), len(x))\ny = !true\nprint(y)")
    assert done.out == "['a', 'b'] ['a', 'b'] a b 'a\\nb' 2\n[]\n"


def test_pip_runs_once_for_ranks_that_share_the_environment(lab: Laboratory):
    bundle = lab.cells("%pip --version", "!pip --version | cut -c1-3", "print('went on')")
    done = bundle.run_ranks(3)
    assert [one.code for one in done] == [0, 0, 0]
    out = "".join(one.out for one in done)
    assert out.count("went on") == 3
    assert len([line for line in out.splitlines() if line.startswith("pip ")]) == 1
    assert out.splitlines().count("pip") == 1
    # It is pip of the very interpreter.
    assert sys.prefix in out


def test_a_failing_install_fails_in_all_ranks_alike(lab: Laboratory):
    bundle = lab.cells("!uv install 2>/dev/null; exit 5", "print(_exit_code)")
    assert [one.out for one in bundle.run_ranks(2)] == ["5\n", "5\n"]


def test_the_same_line_in_a_loop_runs_each_time(lab: Laboratory):
    bundle = lab.cells("for i in range(3):\n    !uv install {i} 2>> log; echo {i} >> done")
    assert [one.code for one in bundle.run_ranks(2)] == [0, 0]
    assert (bundle.folder / "work" / "done").read_text() == "0\n1\n2\n"


def test_environment_folder_and_files(lab: Laboratory):
    done = lab.run(
        "import os\nname = 'sub'\n%env A=x $name\nprint(os.environ['A'])\ny = %env A\nprint(y)",
        "os.mkdir('sub')\n%cd {name}\nprint(os.path.basename(os.getcwd()))\n%cd -\nz = %pwd\nprint(z == os.getcwd())",
        "%%writefile sub/a.py\nimport sys\nvalue = sys.argv[1:]\n",
        "%run sub/a.py x 'y z'\nprint(value, __name__)",
        "%%writefile -a sub/a.py\nvalue = 'appended ' + name",
        "%run -i sub/a\nprint(value)",
    )
    assert done.code == 0, done.err
    lines = [line for line in done.out.splitlines() if line[0] not in "/WA"]
    assert lines == ["x sub", "x sub", "sub", "True", "['x', 'y z'] __main__", "appended sub"]


def test_appending_from_several_ranks_adds_once(lab: Laboratory):
    bundle = lab.cells("%%writefile new.txt\na\n", "%%writefile -a new.txt\nb\n", "%%writefile -a old.txt\nc\n")
    (bundle.folder / "work" / "old.txt").write_text("old\n")
    assert [one.code for one in bundle.run_ranks(3)] == [0, 0, 0]
    assert (bundle.folder / "work" / "new.txt").read_text() == "a\nb\n"
    assert (bundle.folder / "work" / "old.txt").read_text() == "old\nc\n"


def test_appending_to_a_file_that_another_rank_has_just_made(lab: Laboratory):
    bundle = lab.cells("import os, time\ntime.sleep(int(os.environ['RANK']) / 2)", "%%writefile -a new.txt\na\n")
    assert [one.code for one in bundle.run_ranks(2)] == [0, 0]
    assert (bundle.folder / "work" / "new.txt").read_text() == "a\n"


def test_bash_cells_end_the_job_when_they_fail_unless_told_not_to(lab: Laboratory):
    done = lab.run(
        "%%bash --no-raise-error\nexit 3",
        "%%bash --out o --err e\necho out; echo err >&2",
        "print(repr(o), repr(e))",
        "%%bash\n\nnosuchcommand",
        "print('never')",
    )
    assert done.code == 1
    assert done.out == "'out\\n' 'err\\n'\n"
    assert "line 2: nosuchcommand" in done.err
    assert done.error is not None
    assert (done.error["type"], done.error["cell"]) == ("subprocess.CalledProcessError", 4)


def test_other_interpreters(lab: Laboratory):
    done = lab.run(
        "%%python -\nimport sys; print(sys.executable)",
        "import sys\nprint(sys.executable)",
        "%%script cat\nas it is $x `y`",
    )
    first, second, third = done.out.splitlines()
    assert first == second
    assert third == "as it is $x `y`"


def test_time_and_timeit(lab: Laboratory):
    done = lab.run(
        "%%time\nx = 1\n'value'",
        "n = 0\n%time n = n + 1\n%timeit -n 1 -r 1 n + 5\nprint(n)",
        "%%timeit -n 1 -r 1\nm = n + 100",
        "print(n)",
        "%time n",
    )
    assert done.code == 0, done.err
    assert done.out.count("Wall time") == 3
    assert done.out.count("per loop") == 2
    assert [line for line in done.out.splitlines() if "time" not in line and "loop" not in line] == [
        "'value'",
        "1",
        "1",
        "1",
    ]


def test_captured_output_is_kept_and_printed_when_the_cell_fails(lab: Laboratory):
    done = lab.run(
        "%%capture out\nprint('a')\n!echo b\nimport sys; print('c', file=sys.stderr)",
        "print(repr(out.stdout), repr(out.stderr))",
        "%%capture\nprint('lost?')\n1/0",
    )
    assert done.out == "'a\\nb\\n' 'c\\n'\nlost?\n"
    assert done.code == 1


def test_figures_are_drawn_without_a_screen(lab: Laboratory):
    cells = ("%matplotlib inline\nimport matplotlib.pyplot as plt\nplt.plot([1]);", "len(plt.get_fignums())")
    assert lab.run(*cells).out == "<Figure size 640x480 with 1 Axes>\n0\n"


def test_help_prints_nothing_and_extensions_load(lab: Laboratory):
    done = lab.run("%load_ext autoreload\nif True:\n    %autoreload 2\nfor i in range(2):\n    print?\nprint('end')")
    assert (done.code, done.out) == (0, "end\n")


def test_the_value_of_a_variable_is_not_printed(lab: Laboratory):
    done = lab.run("%env A_TOKEN=hunter2\n%set_env B hunter2\nimport os\nprint(os.environ['B'][:2])")
    assert (done.code, done.out) == (0, "hu\n")


def test_a_magic_that_does_not_exist_ends_the_job_at_its_line(lab: Laboratory):
    done = lab.run("x = 1\n%nosuch y", "print('never')")
    assert (done.code, done.out) == (1, "")
    assert "Line magic function `%nosuch` not found" in done.err
    assert done.error is not None
    assert (done.error["cell"], done.error["line"]) == (1, 2)


@pytest.mark.parametrize(
    "cells",
    [
        ("%%time\nx = 1\n1 / 0",),
        ("\n%%time\n1 / 0",),
        ("%%capture\n\n1 / 0",),
        ("%%hyperpod --nodes 2\n%%time\n1 / 0",),
        ("\n\n1 / 0",),
        ("x = 1\n\n%time 1 / 0",),
    ],
)
def test_an_error_below_a_magic_is_at_its_line(lab: Laboratory, cells):
    done = lab.run(*cells)
    assert done.error is not None
    assert (done.error["type"], done.error["line"]) == ("ZeroDivisionError", 3)
    assert "1 / 0\n" in done.err


@pytest.mark.parametrize("cells", [("%%capture\nx = (1,",), ("%%writefile a.py\n1 / 0", "%run a.py")])
def test_an_error_that_a_notebook_would_only_show_ends_the_job(lab: Laboratory, cells):
    done = lab.run(*cells, "print('never')")
    assert done.code == 1
    assert "never" not in done.out
    assert done.error is not None
    assert done.error["cell"] == len(cells)


def test_ranks_time_the_same_number_of_loops(lab: Laboratory):
    cells = ("n = [0]\n%timeit n.__setitem__(0, n[0] + 1)\nprint(n)",)
    assert all(done.out.splitlines()[-1] == "[1]" for done in lab.cells(*cells).run_ranks(2))


@pytest.mark.parametrize(("options", "loops"), [("-n 3", 3), ("-n3 -r 2", 6), ("-r 2", 2), ("-q -n 2 ", 2)])
def test_ranks_time_as_many_loops_as_they_are_told(lab: Laboratory, options: str, loops: int):
    cells = (f"n = [0]\n%timeit {options} n.__setitem__(0, n[0] + 1)\nprint(n)",)
    assert all(done.out.splitlines()[-1] == f"[{loops}]" for done in lab.cells(*cells).run_ranks(2))


@pytest.mark.parametrize(("options", "loops"), [("-n3", 3), ("-n 2 -r2", 4), ("", 1)])
def test_ranks_time_a_cell_as_many_times_as_they_are_told(lab: Laboratory, options: str, loops: int):
    cells = ("n = [0]", f"%%timeit {options}\nn[0] += 1", "print(n)")
    assert all(done.out.splitlines()[-1] == f"[{loops}]" for done in lab.cells(*cells).run_ranks(2))


def test_an_error_whose_text_is_no_utf_8_is_recorded(lab: Laboratory):
    error = lab.run("raise ValueError('file \\udcff of x')").error
    assert error is not None
    assert (error["type"], error["message"], error["cell"]) == ("ValueError", "file ? of x", 1)


def test_ipython_writes_nothing_into_the_users_folder(lab: Laboratory):
    bundle = lab.cells("1", "%history")
    home = bundle.folder / "home"
    home.mkdir()
    assert bundle.run(HOME=str(home)).code == 0
    assert list(home.iterdir()) == []


def test_our_own_magic_is_taken_off(lab: Laboratory):
    done = lab.run("%%hyperpod --nodes 2 --name 'x y'\n%%time\nprint(__name__)")
    assert done.out.splitlines()[0] == "__main__"
