"""Runs that ended days ago: real ones, whose records are moved to another time."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

from lab_server import LabServer

DAY_S = 86_400.0


def submit_in_the_past(server: LabServer, *arguments: str, days: float, hours: float, attempts: int = 1) -> str:
    """Submit a run that ends at once, and move it so many days back, as if it had run so many hours; returns its id.

    The server must not run yet: it keeps what it has read.

    Args:
        server: The server.
        arguments: Those of `hpj submit`.
        days: How many days ago it starts.
        hours: How long each attempt runs.
        attempts: How many attempts there are; all but the last one are lost.
    """
    run_id = server.hpj("submit", *arguments, "--wait").splitlines()[-1].split()[0]
    status = next((server.home / "fsx").rglob(f"runs/*/{run_id}/status"))
    begin = time.time() - days * DAY_S
    for number in range(2, attempts + 1):
        shutil.copytree(status / "attempt-1", status / f"attempt-{number}")
    for number in range(1, attempts + 1):
        folder = status / f"attempt-{number}"
        for file in folder.glob("node-*.json"):
            _change(file, started_at=begin, ended_at=begin + hours * 3600)
        _change(folder / "claim.json", time=begin, incarnation=f"{run_id}-{number}")
        begin += hours * 3600
    # The index has it at its old time. It is made again.
    for file in (server.home / "cache").rglob("index-*"):
        file.unlink()
    return run_id


def _change(file: Path, **values: object) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), **values}))
