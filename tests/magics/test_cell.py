"""``%%hyperpod`` in plain IPython: what it sends, what it says, what it refuses."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
import time

import pytest

import hyperpod_jlab
from hyperpod_jlab.run.submit import Submitter

from .conftest import log_of


def test_the_last_value_of_a_cell_shows_the_same_card(shell):
    sent = shell.run("%%hyperpod -o run --name 'my run'\nprint(1)")
    assert sent.card == {"version": 1, "run_id": sent.card["run_id"], "name": "my run"}
    formatted, _ = shell.shell.display_formatter.format(shell.shell.user_ns["run"])
    assert formatted == sent.data[0]


def test_a_run_that_is_gone_still_has_a_card(shell):
    shell.run("%%hyperpod -o run --wait\nprint(1)")
    run = shell.shell.user_ns["run"]
    gone = type(run)(run._hyperpod, "20200101-000000-aaaaaa")
    formatted, _ = shell.shell.display_formatter.format(gone)
    assert formatted["text/plain"].endswith("hpj logs 20200101-000000-aaaaaa")


def test_words_behind_the_dashes_are_the_jobs(shell):
    shown = shell.run("%%hyperpod -- --lr 0.1 'two words'\nimport sys\nprint(sys.argv[1:])")
    assert log_of(shown.card["run_id"]) == ["0|['--lr', '0.1', 'two words']"]


def test_options_take_the_kernels_values(shell):
    shell.run("n = 2")
    shown = shell.run("%%hyperpod --nodes {n} --env WORD=$n --launcher python\nimport os\nprint(os.environ['WORD'])")
    assert sorted(log_of(shown.card["run_id"])) == ["0|2", "1|2"]


def test_a_spec_file_goes_under_the_options(shell, project):
    (project / "run.toml").write_text('name = "told"\n[resources]\nnodes = 3\n')
    shown = shell.run("%%hyperpod --spec run.toml --nodes 1\nprint(1)")
    run = hyperpod_jlab.get(shown.card["run_id"])
    assert (run.view.name, run.view.nodes) == ("told", 1)


def test_a_dry_run_shows_what_would_run_and_sends_nothing(shell):
    shell.run("x = 1")
    shown = shell.run("%%hyperpod --nodes 2 --launcher python --dry-run\nprint(x)\n!echo hi")
    assert '"--nodes=2"' in shown.out
    assert "print(x)" in shown.out
    assert "!echo hi" in shown.out
    assert "names of this kernel that do not exist in the job: x" in shown.out
    assert (shown.err, shown.data, shown.error) == ("", [], None)
    document = json.loads(shell.run("%%hyperpod --dry-run --json\nprint(x)").out)
    assert [found["code"] for found in document["findings"]][-1] == "kernel_names"
    assert hyperpod_jlab.runs(limit=None) == []


@pytest.mark.parametrize(
    ("cell", "code", "words"),
    [
        ("%%hyperpod --nods 2\n1", "usage", "did you mean '--nodes'?"),
        ("%%hyperpod --nodes x\n1", "invalid_spec", "--nodes: must be a whole number, not 'x'"),
        ("%%hyperpod --cluster lokal\n1", "unknown_cluster", "lokal"),
        ("%%hyperpod --array 9-0\n1", "invalid_spec", "--array: "),
        ("%%hyperpod --env X\n1", "invalid_spec", "--env: 'X' has no '='"),
        ("%%hyperpod --secret NOT_THERE\n1", "secret_missing", "has neither a value here"),
        ("%%hyperpod -o a-b\n1", "usage", "'a-b' is not a Python name"),
        ("%%hyperpod 'open\n1", "usage", "no closing quotation"),
        ("%%hyperpod logs\n1", "usage", "unexpected extra argument"),
        ("%%hyperpod\n  \n", "empty_cells", "no code below %%hyperpod"),
        ("%%hyperpod --cells 7\n1", "no_such_cell", "but no cell 7"),
        ("%%hyperpod --cells 0\n1", "invalid_spec", "numbered from 1"),
        ("%%hyperpod --spec nothing.toml\n1", "invalid_spec_file", "nothing.toml"),
        ("%hyperpod clster", "usage", "did you mean 'clusters'?"),
        ("%hyperpod --nodes 2", "usage", "write %%hyperpod, with two %"),
        ("%hyperpod show 20200101-000000-aaaaaa", "no_such_run", "no run or cluster named"),
    ],
)
def test_what_is_wrong_is_told_in_words_and_nothing_is_sent(shell, cell, code, words):
    shown = shell.run(cell)
    assert f"[{code}]" in shown.error
    assert words in shown.error
    assert "Traceback" not in shown.error
    assert shown.data == []
    assert hyperpod_jlab.runs(limit=None) == []


def test_errors_are_json_when_asked_for(shell):
    error = json.loads(shell.run("%%hyperpod --json --nods 2\n1").error)
    assert (error["code"], error["hint"]) == ("usage", "did you mean '--nodes'?")


def test_json_prints_the_run(shell):
    shown = shell.run("%%hyperpod --json\nprint(1)")
    assert json.loads(shown.out)["name"] == "cell"
    assert shown.data == []


def test_a_magic_above_is_the_kernels_business(shell):
    shown = shell.run("%%capture kept\n%%hyperpod -o run\n\nprint(1)\n1 / 0")
    assert shown.data == []
    run = shell.shell.user_ns["run"].wait(60)
    assert log_of(run.run_id)[0] == "0|1"
    assert run.view.status.reason.endswith("line 5: division by zero")


def test_the_commands_of_hpj_are_there(shell):
    assert "no runs" in shell.run("%hyperpod").err
    run_id = shell.run("%%hyperpod --name first\nimport time\ntime.sleep(60)").card["run_id"]
    assert f"{run_id}  first" in shell.run("%hyperpod").out
    assert "local" in shell.run("%hyperpod clusters").out
    assert json.loads(shell.run(f"%hyperpod show {run_id} --json").out)["run_id"] == run_id
    assert shell.run("%hyperpod why last").error is None
    assert shell.run(f"%hyperpod cancel {run_id}").error is None
    assert hyperpod_jlab.get(run_id).wait(30).state == "cancelled"
    assert "Usage: %hyperpod logs" in shell.run("%hyperpod logs --help").out


def test_lines_of_a_log_go_to_the_cell(shell):
    run_id = shell.run("%%hyperpod --wait\nprint('h\u00e9')").card["run_id"]
    assert shell.run(f"%hyperpod logs {run_id}").out == "0|h\u00e9\n"
    assert json.loads(shell.run(f"%hyperpod logs {run_id} --json").out)["line"] == "h\u00e9"


def test_loading_twice_changes_nothing(shell):
    assert shell.run("%reload_ext hyperpod_jlab").error is None
    matchers = shell.shell.Completer.custom_matchers
    assert len({id(one) for one in matchers}) == len(matchers)


def test_a_run_id_again_is_the_same_run(shell):
    cell = "%%hyperpod --run-id once\nprint(1)"
    assert shell.run(cell).card["run_id"] == "once"
    shell.run("1")
    assert shell.run(cell).card["run_id"] == "once"
    assert len(hyperpod_jlab.runs(limit=None)) == 1
    assert "[run_id_taken]" in shell.run("%%hyperpod --run-id once\nprint(2)").error


def test_another_configuration_counts_from_the_next_cell_on(shell, home, monkeypatch):
    shell.run("%%hyperpod --wait\nprint(1)")
    config = home / "other.toml"
    config.write_text(f"[storage]\npath = '{home / 'elsewhere'}'\n")
    (home / "elsewhere").mkdir()
    monkeypatch.setenv("HYPERPOD_CONFIG", str(config))
    shown = shell.run("%%hyperpod --wait -o run --name second\nprint(1)")
    assert shown.error is None
    assert shown.card["name"] == "second"
    assert shell.shell.user_ns["run"].bundle.is_relative_to(home / "elsewhere")


def test_a_current_folder_that_is_gone_is_told(shell, project, monkeypatch):
    monkeypatch.setenv("JPY_SESSION_NAME", "train.ipynb")
    gone = project / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    shown = shell.run("%%hyperpod\nprint(1)")
    assert "the current folder cannot be used" in shown.error
    assert "[no_current_folder]" in shown.error
    monkeypatch.chdir(project)


def test_an_interrupt_before_anything_is_sent(shell, monkeypatch):
    async def slow(*_, **__):
        await asyncio.sleep(60)

    monkeypatch.setattr(Submitter, "preview", slow)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    begin = time.monotonic()
    shown = shell.run("%%hyperpod\nprint(1)")
    assert time.monotonic() - begin < 10
    assert shown.error == "interrupted; nothing was submitted [interrupted]"


def test_a_fault_of_ours_is_no_stack_trace(shell, monkeypatch, capfd):
    async def broken(*_, **__):
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(Submitter, "preview", broken)
    shown = shell.run("%%hyperpod\nprint(1)")
    assert shown.error.startswith("error: internal error: ZeroDivisionError: oh [internal]")
    assert shown.err == ""
    monkeypatch.setenv("HYPERPOD_DEBUG", "1")
    assert "in broken" in shell.run("%%hyperpod\nprint(1)").err


def test_an_earlier_cell_that_no_file_can_hold_is_no_hindrance(shell):
    shell.run("x = '\\ud800'")
    shell.shell.history_manager.input_hist_raw[-1] = "x = '\ud800'"
    assert shell.run("%%hyperpod --wait\nprint(1)").error is None
