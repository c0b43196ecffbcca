"""Ctrl-C while something is sent or waited for: the run goes on, and the way back is told."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

from hyperpod_jlab.cli import interrupts

pytestmark = pytest.mark.local


@pytest.mark.parametrize("words", [["--wait"], ["--follow"], ["--follow", "--json"]])
def test_the_run_goes_on_and_the_way_back_is_told(home, words):
    command = ["submit", "-c", "echo begin; sleep 2; echo end", "--run-id", "mine", *words]
    process = home.start(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stderr is not None
    assert process.stderr.readline() == b"mine\n"
    if "--follow" in words:
        assert process.stdout is not None
        assert b"begin" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    last = err.decode().splitlines()[-1]
    if "--json" in words:
        told = json.loads(last)
        assert told["code"] == "interrupted"
        assert told["detail"]["run_id"] == "mine"
        last = told["hint"]
    assert "hpj logs -f mine" in last
    back = home.process("logs", "-f", "mine").ok()
    assert back.out == "0|begin\n0|end\n"
    assert home.process("show", "mine", "--json").ok().json["state"] == "succeeded"


def test_a_small_thing_is_finished_before_the_interrupt_comes():
    before = signal.getsignal(signal.SIGINT)
    interrupts.raise_interrupts()
    done = []

    def work() -> None:
        with interrupts.defer_interrupts():
            signal.raise_signal(signal.SIGINT)
            done.append("inside")
        done.append("never")

    try:
        with pytest.raises(KeyboardInterrupt):
            work()
        assert done == ["inside"]
        with interrupts.defer_interrupts():
            done.append("again")
    finally:
        signal.signal(signal.SIGINT, before)


_AFTER_THE_BUNDLE = """
import os, signal, sys, time
from hyperpod_jlab.cli.main import main
from hyperpod_jlab.storage.bundle import BundleWriter
commit = BundleWriter.commit

def interrupted(self):
    done = commit(self)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.5)
    return done

BundleWriter.commit = interrupted
sys.exit(main(sys.argv[1:]))
"""

_WHILE_IT_LOADS = """
import builtins, os, signal, sys
from hyperpod_jlab.cli.main import main
real = builtins.__import__

def slow(name, *rest):
    if name == "click" and "click" not in sys.modules:
        os.kill(os.getpid(), signal.SIGINT)
    return real(name, *rest)

builtins.__import__ = slow
sys.exit(main(["--help"]))
"""


def _python(home, code, *words):
    return subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=home.work,
        env=home.process_environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_an_interrupt_while_the_bundle_is_made_tells_what_is_left(home):
    words = ["submit", "-c", "echo hi", "--run-id", "half", "--wait", "--no-project-files"]
    done = _python(home, _AFTER_THE_BUNDLE, *words)
    assert done.returncode == 130
    assert done.stderr.splitlines()[0] == ("interrupted while half was being submitted; it may be partly written")
    assert "hpj show half" in done.stderr
    assert "to submit it again safely, run the same command with --run-id half" in done.stderr
    assert home.process("show", "half", "--json").ok().json["state"] == "failed"
    home.process(*words).ok()
    assert home.process("logs", "half").ok().out == "0|hi\n"


def test_an_interrupt_while_the_program_loads_is_quiet(home):
    done = _python(home, _WHILE_IT_LOADS)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
