"""What is different when a person sits at a terminal: questions, tables that fit, ages instead of dates."""

from __future__ import annotations

import re
import subprocess

import pytest

from .conftest import make_home
from .terminal import on_terminal

pytestmark = pytest.mark.local


def on_plain_terminal(home, *words, columns):
    return re.sub(r"\x1b\[\d*m", "", on_terminal(home, *words, columns=columns)).splitlines()


def test_a_secret_is_asked_for_and_not_shown(home):
    words = ("submit", "-c", 'test "$HF" = hush-hush && echo ${#HF}', "--secret", "HF", "--follow")
    shown = on_terminal(home, *words, answers=(("Value of HF", "hush-hush"),))
    assert "0|\x1b[0m9\r\n" in shown
    assert "hush-hush" not in shown
    assert "Value of HF" not in on_terminal(home, *words[:-1], "--dry-run")


def test_clean_asks_and_takes_no_for_no(home):
    home.process("submit", "-c", "sleep 2", "--wait").ok()
    home.process("submit", "-c", "sleep 2", "--wait").ok()
    words = ("clean", "--older", "1s")
    shown = on_terminal(home, *words, answers=(("Remove it?", "n"),))
    assert "nothing was removed" in shown
    assert len(home.bundles()) == 2
    on_terminal(home, *words, answers=(("Remove it?", "y"),))
    assert len(home.bundles()) < 2


def test_a_table_is_cut_to_the_width_and_tells_ages(home):
    home.process("submit", "-c", "exit 3", "--name", "n" * 60, "--wait")
    lines = on_plain_terminal(home, "runs", columns=80)
    assert all(len(line) <= 80 for line in lines)
    assert "\u2026" in "".join(lines)
    wide = on_terminal(home, "runs", columns=200)
    assert " ago" in wide
    assert "\x1b[31mfailed\x1b[0m" in wide


def test_a_long_wait_says_why(home):
    home.config.write_text("[clusters.local]\nslots = 1\n")
    home.process("submit", "-c", "sleep 8", "--name", "long").ok()
    shown = on_terminal(home, "submit", "-c", "true", "--follow")
    assert "--- waiting for long" in shown


@pytest.mark.parametrize("option", ["--wait", "--follow"])
def test_a_file_is_told_why_a_run_waits_once_it_waits_for_a_while(tmp_path, option):
    home = make_home(tmp_path, slots=1)
    quick = ("submit", "--no-project-files", "-c")
    home.process(*quick, "sleep 60", "--name", "long", "--run-id", "long").ok()
    waiting = home.start(*quick, "true", option, "--run-id", "second", stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    assert waiting.stderr is not None
    assert waiting.stderr.readline() == b"second\n"
    assert b"--- waiting for long" in waiting.stderr.readline()
    home.process("hold", "second").ok()
    assert b"--- waiting: held" in waiting.stderr.readline()
    home.process("cancel", "long").ok()
    home.process("release", "second").ok()
    _, err = waiting.communicate(timeout=30)
    assert waiting.returncode == 0
    assert err.decode().splitlines()[-1].startswith("second succeeded")


def test_a_file_is_told_nothing_of_a_run_that_starts_at_once(home):
    done = home.process("submit", "-c", "sleep 3", "--wait", "--no-project-files").ok()
    assert "waiting" not in done.err


@pytest.mark.parametrize("columns", [80, 100])
def test_runs_and_jobs_keep_what_matters_on_a_narrow_terminal(home, columns):
    home.config.write_text("[clusters.local.cost]\nnode_price = 3.6\n")
    run_id, second = "20261121-120455-k3x9qd", "20261121-120456-k3x9qd"
    submit = ("submit", "--no-project-files", "--name", "n" * 60, "--run-id")
    home.process(*submit, run_id, "--wait", "-c", "exit 3")
    home.process(*submit, second, "-c", "sleep 60")
    try:
        head, _, ended = on_plain_terminal(home, "runs", columns=columns)
        assert "USD" in ended[head.index("COST") :]
        assert ended.endswith("exit code 3")
        for words, expected in ((("jobs", "--ended"), run_id), (("jobs",), second)):
            head, row = on_plain_terminal(home, *words, columns=columns)
            assert row[head.index("RUN") :].startswith(expected)
            assert max(len(head), len(row)) <= columns
            assert not {"QUEUE", "GPUS", "CPUS"} & set(head.split())
    finally:
        home.process("cancel", second)


@pytest.mark.parametrize("columns", [80, 100, 120])
def test_the_newest_number_and_the_reason_of_runs_fit(home, columns):
    failing = "print('step 1/4 loss 2.25'); raise RuntimeError('CUDA out of memory, ' * 9)"
    (home.work / "bad.py").write_text(failing)
    words = ("submit", "--wait", "--run-id")
    home.process(*words, "20261121-120455-k3x9qd", "--name", "pretrain", "bad.py")
    home.process(*words, "20261121-120456-k3x9qd", "-c", "echo step 1 loss nan")
    shown = on_terminal(home, "runs", columns=columns)
    for colour in ("\x1b[0m", "\x1b[1m", "\x1b[31m", "\x1b[32m"):
        shown = shown.replace(colour, "")
    head, silent, failed = shown.splitlines()
    assert all(len(line) <= columns for line in (head, silent, failed))
    newest, reason = head.index("NEWEST"), head.index("REASON")
    assert silent[newest:].startswith("loss nan")
    assert failed[newest:].startswith("loss 2.25")
    assert len(failed[reason:]) > 20
