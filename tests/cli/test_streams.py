"""Standard streams that are closed or full, and a current folder that is gone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import HPJ, Home, make_home

pytestmark = pytest.mark.local

SUBMIT = ("submit", "-c", "echo hi", "--no-project-files")


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home with a run that has ended, called mine."""
    home = make_home(tmp_path_factory.mktemp("streams"))
    home.process(*SUBMIT, "--wait", "--run-id", "mine").ok()
    return home


def _shell(home, redirection: str, *words: str, **variables: str):
    return subprocess.run(
        ["/bin/bash", "-c", f'exec "$@" {redirection}', "bash", *HPJ, *words],
        cwd=home.work,
        env=home.process_environment(variables),
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize("redirection", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("words", [SUBMIT, (*SUBMIT, "--wait"), (*SUBMIT, "--follow"), ("clean",), ("runs",)])
def test_closed_streams_are_no_matter(home, redirection, words):
    done = _shell(home, redirection, *words)
    assert done.returncode == 0, done.stderr
    assert "error" not in done.stderr
    if words == (*SUBMIT, "--follow") and ">&-" not in redirection.split():
        assert done.stdout == "0|hi\n"


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [("runs",), ("logs", "mine"), ("show", "mine"), ("--help",)])
def test_an_output_that_is_full_is_told_in_a_line(ended, words, unbuffered):
    done = _shell(ended, ">/dev/full", *words, PYTHONUNBUFFERED=unbuffered)
    assert done.returncode == 2
    assert done.stderr == "error: the output cannot be written: No space left on device\n"


def test_an_output_that_is_full_is_told_as_json(home):
    done = _shell(home, ">/dev/full", "runs", "--json")
    assert done.returncode == 2
    assert json.loads(done.stderr)["code"] == "output"


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_a_run_that_was_sent_is_told_although_the_output_is_full(home, as_json, unbuffered):
    words = (*SUBMIT, "--run-id", "mine", *as_json)
    done = _shell(home, ">/dev/full", *words, PYTHONUNBUFFERED=unbuffered)
    assert done.returncode == 2
    assert "mine was submitted, but the output cannot be written" in done.stderr
    assert home.process("logs", "-f", "mine").ok().out == "0|hi\n"


def test_nobody_can_be_told_when_stderr_is_full_too(home):
    assert _shell(home, ">/dev/full 2>/dev/full", "runs").returncode == 2


@pytest.mark.parametrize("words", [("submit", "-c", "true"), ("submit", "a.py"), ("clone", "mine")])
def test_a_current_folder_that_is_gone_is_told(ended, tmp_path, words):
    gone = tmp_path / "gone"
    gone.mkdir()
    code = f"import os, sys; os.rmdir({str(gone)!r}); from hyperpod_jlab.cli.main import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code, *words, "--json"],
        cwd=gone,
        env={**ended.process_environment(), "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert json.loads(done.stderr)["code"] == "no_current_folder"
