"""Requests about the doctor: start a diagnostic run, and read its results, also while it is running."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from hyperpod_jlab.clusters.routes import require_cluster
from hyperpod_jlab.core.check import Check, Stage, StageResult, path_of
from hyperpod_jlab.core.errors import HyperpodError, NotFoundError
from hyperpod_jlab.core.wire import Time
from hyperpod_jlab.server.call import Call
from hyperpod_jlab.server.requests import RequestModel

if TYPE_CHECKING:
    from hyperpod_jlab.features.doctor.service import Examination, Examinations


@dataclass(frozen=True)
class DoctorStep:
    """The step in progress."""

    key: str
    about: str | None
    title: str
    name: str
    group: str
    stage: Stage


@dataclass(frozen=True)
class DoctorExamination:
    """A diagnostic run, possibly in progress. `number` is 0 before the first one; `problem` says why one failed; `cluster` and `job` repeat the request. `stages` is the path of a run from JupyterLab to the nodes."""

    number: int = 0
    version: int = 0
    cluster: str | None = None
    job: bool = False
    state: Literal["none", "running", "done", "cancelled", "failed"] = "none"
    begun_at: Time | None = None
    ended_at: Time | None = None
    step: DoctorStep | None = None
    checks: tuple[Check, ...] = ()
    stages: tuple[StageResult, ...] = ()
    problem: HyperpodError | None = None


@dataclass(frozen=True)
class DoctorReport:
    """The diagnostic report in Markdown, for an admin, without secrets. `name` is a file name."""

    name: str
    text: str


class DoctorBody(RequestModel):
    """What to check."""

    cluster: Annotated[str | None, Field(min_length=1, max_length=256)] = None
    """Only this configured cluster; default: all."""
    job: bool = False
    """Finally submit a real job to that cluster, or the default one: one task on one node, for at most three minutes; then cancel and remove it."""


async def show_examination(call: Call) -> DoctorExamination:
    """Get the newest diagnostic run of this server, in progress or ended."""
    return _to_examination((await _examinations(call)).last)


async def begin_examination(call: Call, body: DoctorBody) -> DoctorExamination:
    """Check what a run needs: this installation, Studio and AWS, file systems, clusters. If the same run is in progress, that one is returned."""
    from hyperpod_jlab.features.doctor.service import DoctorRequest

    if body.cluster is not None:
        await require_cluster(call, body.cluster)
    return _to_examination((await _examinations(call)).begin(DoctorRequest(body.cluster, body.job)))


async def cancel_examination(call: Call) -> DoctorExamination:
    """Cancel the diagnostic run in progress; its results so far stay."""
    return _to_examination(await (await _examinations(call)).cancel())


async def show_doctor_report(call: Call) -> DoctorReport:
    """Get the newest diagnostic run as a report for an admin."""
    from hyperpod_jlab.features.doctor.service import report

    last = (await _examinations(call)).last
    if last is None:
        raise NotFoundError("no checks have run yet", code="no_examination")
    created_at = datetime.fromtimestamp(last.ended_at or time.time(), UTC)
    text = await asyncio.to_thread(report, list(last.checks), now=created_at)
    return DoctorReport(f"hyperpod-report-{created_at:%Y%m%d-%H%M}.md", text)


async def _examinations(call: Call) -> Examinations:
    return await call.process.examinations()


def _to_examination(examination: Examination | None) -> DoctorExamination:
    if examination is None:
        return DoctorExamination()
    step = examination.step
    return DoctorExamination(
        number=examination.number,
        version=examination.version,
        cluster=examination.request.cluster,
        job=examination.request.job,
        state=examination.state,
        begun_at=examination.begun_at,
        ended_at=examination.ended_at,
        step=None if step is None else DoctorStep(step.key, step.about, step.title, step.name, step.group, step.stage),
        checks=tuple(examination.checks),
        stages=path_of(examination.checks),
        problem=examination.problem,
    )
