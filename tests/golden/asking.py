"""Commands in, documents out: what a golden file of ``hpj --json`` is made of."""

from __future__ import annotations

import json
import re
import shlex
import time
from typing import Any

from hyperpod_jlab.storage.processes import machine_id
from tests.cli.conftest import Hpj, Result

OF_A_RUN = (
    *("user", "uid", "elapsed", "cpu_seconds", "max_memory", "cursor", "bytes"),
    *("node_hours", "wasted_node_hours"),
)
"""Keys of runs and logs whose values differ from run to run."""
MACHINE = {machine_id(): "<machine>"}
"""This machine's short host name; run ids of the local cluster contain it."""
DEADLINE = 30.0

_DURATION = re.compile(r"\b(after|in) \d+(\.\d+)?(ms|s|m)\b")
_SIZE = re.compile(r": \d+(\.\d+)? [KM]iB")


def told(result: Result) -> dict[str, Any]:
    """All that a script sees of a call: the exit code, each document, and the error."""
    error = None
    for line in result.err.splitlines()[-1:]:
        if line.startswith("{"):
            error = json.loads(_SIZE.sub(": <size>", _DURATION.sub(r"\1 <duration>", line)))
    return {"exit": result.code, "out": documents(result.out), "error": error}


def documents(text: str) -> list[Any]:
    """The JSON documents of a text, one a line."""
    return [json.loads(line) for line in text.splitlines()]


def asked(hpj: Hpj, *lines: str) -> dict[str, Any]:
    """Run each command line with ``--json``; the answers, in the same order."""
    return {line: told(hpj(*shlex.split(line), "--json")) for line in lines}


def until(hpj: Hpj, run_id: str, *states: str, reason_code: str | None = None) -> None:
    """Wait until a run is in one of these states, and if one is given, for this reason."""
    deadline = time.monotonic() + DEADLINE
    while True:
        run = hpj("show", run_id, "--json").ok().json
        if run["state"] in states and reason_code in {None, run["reason_code"]}:
            return
        assert time.monotonic() < deadline, json.dumps(run, indent=1)
        time.sleep(0.05)


def ended(hpj: Hpj, *run_ids: str) -> None:
    """Wait until runs have ended."""
    for run_id in run_ids:
        until(hpj, run_id, "succeeded", "failed", "cancelled")
