"""Errors: one line and a hint, or one line of JSON; the exit code says which kind."""

from __future__ import annotations

import signal
import subprocess

import pytest

from hyperpod_jlab.cli import root as entry
from hyperpod_jlab.cli.failure import translate

USAGE = [
    (["subnit", "x.py"], "submit"),
    (["submit", "--nodse", "2", "-c", "true"], "--nodes"),
    (["runs", "--limti", "2"], "--limit"),
    (["logs", "x", "--folow"], "--follow"),
    (["completion", "bsh"], "bash"),
    (["runs", "--state", "runing"], "running"),
    (["submit", "-c", "true", "--launcher", "torhcrun"], "torchrun"),
]


@pytest.mark.parametrize(("words", "meant"), USAGE)
def test_a_misspelt_word_gets_the_nearest_valid_one_in_the_hint(hpj, words, meant):
    told = hpj(*words)
    assert told.code == 2
    assert told.err.splitlines()[0].startswith("error: ")
    assert told.err.splitlines()[-1] == f"hint: did you mean '{meant}'?"
    assert told.out == ""


@pytest.mark.parametrize(("words", "meant"), USAGE)
@pytest.mark.parametrize("place", ["first", "last"])
def test_with_json_anywhere_the_last_line_of_stderr_is_the_error(hpj, words, meant, place):
    told = hpj("--json", *words) if place == "first" else hpj(*words, "--json")
    assert told.code == 2
    assert meant in told.error["hint"]
    assert told.error["code"] in {"usage", "invalid_spec", "invalid_state"}
    assert told.out == ""


@pytest.mark.parametrize(
    "words", [["runs", "--limit", "many"], ["runs", "--limit", "0"], ["show"], ["runs", "--limit"], ["cancel"]]
)
def test_wrong_and_missing_values_are_usage_errors(hpj, words):
    told = hpj(*words, "--json")
    assert (told.code, told.error["code"]) == (2, "usage")
    assert told.error["hint"] == f"see: hpj {words[0]} --help"


def test_json_behind_the_double_dash_is_for_the_program(hpj):
    told = hpj("submit", "--nodse", "1", "--", "--json")
    assert told.code == 2
    assert told.err.startswith("error: ")


def test_exit_codes_as_a_process(home):
    assert home.process("runs").code == 0
    assert home.process("runs", "--nope").code == 2
    missing = home.process("show", "nobody", "--json")
    assert (missing.code, missing.error["code"]) == (3, "no_such_run")


def test_an_unexpected_exception_is_told_without_a_traceback(hpj, monkeypatch):
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("the roof leaks")

    monkeypatch.setattr(entry.cli, "invoke", broken)
    told = hpj("runs", "--json")
    assert (told.code, told.error["code"]) == (70, "internal")
    assert "the roof leaks" in told.error["message"]
    assert "Traceback" not in told.err

    monkeypatch.setenv("HYPERPOD_DEBUG", "1")
    told = hpj("runs")
    assert told.code == 70
    assert "Traceback" in told.err


def test_control_characters_in_a_message_do_not_reach_the_terminal(hpj):
    told = hpj("runs", "--state", "\x1b[2J\nrunning")
    assert told.code == 2
    assert "\x1b" not in told.err
    assert len(told.err.splitlines()) == 2


def test_an_interrupt_is_130():
    assert translate(KeyboardInterrupt()).exit_code == 130


def test_closed_stdout_is_no_error(home):
    done = subprocess.run(
        ["/bin/bash", "-c", '"$@" >&-', "x", *_words("runs", "--json")],
        env=home.process_environment(),
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_reader_that_goes_away_ends_it_quietly(home):
    done = subprocess.run(
        ["/bin/bash", "-c", '"$@" | true; echo "${PIPESTATUS[0]}"', "x", *_words("--help")],
        env=home.process_environment(),
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_a_full_disk_behind_stdout_is_told(home):
    done = subprocess.run(
        ["/bin/bash", "-c", '"$@" > /dev/full', "x", *_words("runs", "--json")],
        env=home.process_environment(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_interrupt_handler_is_ours_and_raises(hpj):
    hpj("--version").ok()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def _words(*words: str) -> list[str]:
    from tests.cli.conftest import HPJ

    return [*HPJ, *words]
