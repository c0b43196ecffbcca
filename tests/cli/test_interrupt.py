"""Ctrl-C while something is sent or waited for: the run goes on, and the way back is told."""

from __future__ import annotations

import json
import signal
import subprocess

import pytest

from hyperpod_jlab.cli import interrupts


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
    assert process.returncode == 130
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
        with interrupts.uninterrupted():
            signal.raise_signal(signal.SIGINT)
            done.append("inside")
        done.append("never")

    try:
        with pytest.raises(KeyboardInterrupt):
            work()
        assert done == ["inside"]
        with interrupts.uninterrupted():
            done.append("again")
    finally:
        signal.signal(signal.SIGINT, before)
