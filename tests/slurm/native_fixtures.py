"""What tests of users' own scripts share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.core.validation import parse
from hyperpod_jlab.logs.service import LogRequest
from hyperpod_jlab.run.submit import Request, SubmitPreview
from tests.slurm.hyperpod_fixtures import SlurmSession


def request_for(session: SlurmSession, text: str | bytes, name: str = "run.sbatch", **spec: Any) -> Request:
    """A script in the project's folder, and the request to send it."""
    data = text.encode() if isinstance(text, str) else text
    (session.folder / name).write_bytes(data)
    given = {"source": {"kind": "native", "path": name}, **spec}
    return Request(parse(JobSpec, given), base=session.folder)


async def send(session: SlurmSession, text: str | bytes, name: str = "run.sbatch", **spec: Any) -> str:
    """Write a script into the project's folder and send it; returns the run id."""
    return await session.hyperpod.submitter.submit(request_for(session, text, name, **spec))


async def preview(session: SlurmSession, text: str | bytes, **spec: Any) -> SubmitPreview:
    """What would be sent."""
    return await session.hyperpod.submitter.preview(request_for(session, text, **spec))


async def log(session: SlurmSession, run_id: str, **chosen: Any) -> str:
    """The run's log as the log service shows it."""
    return "\n".join(await log_lines(session, run_id, **chosen))


async def log_lines(session: SlurmSession, run_id: str, **chosen: Any) -> list[str]:
    """The lines of the run's log."""
    lines: list[str] = []
    async for batch in session.hyperpod.logs.lines(LogRequest(run_id, **chosen)):
        lines += [line.line for line in batch]
    return lines


def told(session: SlurmSession, job: str, field: str) -> str:
    """What the controller says of a job."""
    said = session.cluster.exec("ctl", "squeue", "-h", "-t", "all", "-j", job, "-O", f"{field}:200")
    return said.strip()


def bundle_of(session: SlurmSession, run_id: str) -> Path:
    """The run's bundle."""
    return session.hyperpod.runs.bundle(run_id).folder
