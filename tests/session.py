"""What tests do with the services of one user, on whatever cluster: submit, wait, read."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from hyperpod_jlab.core.config import Settings
from hyperpod_jlab.core.run import Run
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.core.validation import parse
from hyperpod_jlab.run.services import Hyperpod
from hyperpod_jlab.run.submit import Request


@dataclass(frozen=True)
class Answer:
    """What a command of ours gave, and the seconds that it took."""

    code: int
    out: str
    err: str
    seconds: float

    @property
    def error(self) -> dict[str, Any]:
        """The error's one shape, from the last line of stderr (of ``--json``)."""
        found: dict[str, Any] = json.loads(self.err.strip().splitlines()[-1])
        return found


class Session:
    """The services of one user.

    Args:
        hyperpod: The services.
        folder: Where sources are looked for.
    """

    #: Fields of every spec that a test does not give.
    defaults: ClassVar[Mapping[str, Any]] = {"files": {"project": False}, "stop_grace": 2}
    #: Seconds that a test waits for anything.
    deadline = 60.0
    #: Seconds between two looks.
    pace = 0.1

    def __init__(self, hyperpod: Hyperpod, folder: Path) -> None:
        self.hyperpod = hyperpod
        self.folder = folder

    def request(
        self, command: str = "true", *, run_id: str | None = None, secrets: Mapping[str, str] | None = None, **spec: Any
    ) -> Request:
        """What to submit: a shell command, or the ``source`` that is given."""
        source = {"kind": "command", "command": command}
        data = {"source": source, **self.defaults, **spec}
        return Request(parse(JobSpec, data), run_id=run_id, base=self.folder, secrets=dict(secrets or {}))

    async def submit(
        self, command: str = "true", *, run_id: str | None = None, secrets: Mapping[str, str] | None = None, **spec: Any
    ) -> str:
        """Submit a shell command; returns the run id."""
        request = self.request(command, run_id=run_id, secrets=secrets, **spec)
        return await self.hyperpod.submitter.submit(request)

    async def until(self, run_id: str, there: Callable[[Run], bool], deadline: float | None = None) -> Run:
        """Wait until a run looks as wanted."""
        limit = deadline if deadline is not None else self.deadline
        end = time.monotonic() + limit
        while not there(run := await self.hyperpod.runs.get(run_id)):
            assert time.monotonic() < end, f"never so in {limit} s; last: {run.status}"
            await asyncio.sleep(self.pace)
        return run

    async def ended(self, run_id: str, deadline: float | None = None) -> Run:
        """Wait for a run's end."""
        return await self.until(run_id, lambda run: run.status.ended, deadline)

    async def running(self, run_id: str, attempt: int = 1) -> Run:
        """Wait until all nodes of an attempt have started."""
        return await self.until(
            run_id,
            lambda run: (
                len(run.status.attempts) >= attempt
                and len(run.status.attempts[-1].nodes) >= run.nodes
                and run.state == "running"
            ),
        )

    def records(self, run_id: str) -> Path:
        """The run's records."""
        return self.hyperpod.runs.records_folder(run_id)

    def log(self, run_id: str, node: int = 0, rank: int = 0, attempt: int = 1) -> str:
        """What a rank wrote, as this machine sees it; empty as long as there is nothing."""
        path = self.records(run_id) / f"logs/attempt-{attempt}/node-{node}.rank-{rank}.log"
        return path.read_text() if path.exists() else ""


def write_config(settings: Settings, path: Path) -> None:
    """Write a configuration as a file, as processes of their own read it."""
    given = settings.model_dump(mode="json", exclude_defaults=True, exclude_none=True)
    for name, cluster in given.get("clusters", {}).items():
        cluster["orchestrator"] = settings.clusters[name].orchestrator
    path.write_text("\n".join(_toml(given)) + "\n")


def _toml(table: Mapping[str, Any], name: str = "") -> list[str]:
    """A table as lines: its own values first, then the tables in it."""
    lines = [f"[{name}]"] if name else []
    lines += [f"{key} = {_toml_value(value)}" for key, value in table.items() if not _is_table(value)]
    for key, value in table.items():
        if _is_table(value):
            lines += _toml(value, f"{name}.{key}" if name else key)
    return lines


def _toml_value(value: Any) -> str:
    """A value on one line."""
    if _is_table(value):
        return "{" + ", ".join(f"{key} = {_toml_value(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml_value, value)) + "]"
    return json.dumps(value)


def _is_table(value: Any) -> bool:
    return isinstance(value, Mapping)


async def run_hpj(
    *words: str | Path, config: Path, folder: Path, environment: Mapping[str, str] | None = None
) -> Answer:
    """Run our command line in a process of its own."""
    begin = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "hyperpod_jlab.cli.main", *map(str, words)),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=folder,
        env={**os.environ, **(environment or {}), "HYPERPOD_CONFIG": str(config)},
    )
    out, err = await process.communicate()
    seconds = time.monotonic() - begin
    return Answer(process.returncode or 0, out.decode(), err.decode(), seconds)
