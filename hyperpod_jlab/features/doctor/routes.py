"""Requests about the doctor: examine what a run needs, and read what was found, while it goes on too."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Literal, cast

from pydantic import Field
from typing_extensions import TypedDict

from hyperpod_jlab.clusters.routes import with_cluster
from hyperpod_jlab.core.errors import NotFoundError
from hyperpod_jlab.core.run import iso_time
from hyperpod_jlab.server.answers import Error
from hyperpod_jlab.server.call import Call
from hyperpod_jlab.server.requests import RequestModel

if TYPE_CHECKING:
    from hyperpod_jlab.features.doctor.service import Examination, Examinations


class DoctorCheck(TypedDict):
    """A check: what was looked at, how it is, and who mends what is not well. `unknown` could not be checked; `fix` and `who` are null where nothing is to be done."""

    key: str
    about: str | None
    title: str
    name: str
    group: str
    level: Literal["ok", "warn", "fail", "unknown"]
    evidence: str
    fix: str | None
    who: Literal["you", "admin"] | None


class DoctorStep(TypedDict):
    """What is looked at now."""

    key: str
    about: str | None
    title: str
    name: str
    group: str


class DoctorExamination(TypedDict):
    """An examination, as far as it has come. `number` is 0 before the first one; `problem` says why one broke; `cluster` and `job` are what was asked for."""

    number: int
    version: int
    cluster: str | None
    job: bool
    state: Literal["none", "running", "done", "cancelled", "failed"]
    begun_at: str | None
    ended_at: str | None
    step: DoctorStep | None
    checks: list[DoctorCheck]
    problem: Error | None


class DoctorReport(TypedDict):
    """The examination in Markdown, for an admin, without secrets. `name` is one for a file."""

    name: str
    text: str


class DoctorBody(RequestModel):
    """What is to be examined."""

    cluster: Annotated[str | None, Field(min_length=1, max_length=256)] = None
    """Only the way to this cluster of the configuration; default: all."""
    job: bool = False
    """At the end send a real job to that cluster, or the default one: one task on one node, for at most three minutes; then it is cancelled and removed."""


async def show_examination(call: Call) -> DoctorExamination:
    """The newest examination of this server, which goes on or has ended."""
    return _answer((await _examinations(call)).last)


async def begin_examination(call: Call, body: DoctorBody) -> DoctorExamination:
    """Examine the way of a run to a node and back: this installation, Studio and AWS, file systems, clusters. While the same goes on that one is answered."""
    from hyperpod_jlab.features.doctor.service import Asked

    if body.cluster is not None:
        await with_cluster(call, body.cluster)
    return _answer((await _examinations(call)).begin(Asked(body.cluster, body.job)))


async def cancel_examination(call: Call) -> DoctorExamination:
    """End the examination that goes on; what it found stays."""
    return _answer(await (await _examinations(call)).cancel())


async def show_doctor_report(call: Call) -> DoctorReport:
    """The newest examination as a report that a user can hand to an admin."""
    from hyperpod_jlab.features.doctor.service import report

    last = (await _examinations(call)).last
    if last is None:
        raise NotFoundError("nothing was examined yet", code="no_examination")
    at = datetime.fromtimestamp(last.ended_at or time.time(), UTC)
    text = await asyncio.to_thread(report, list(last.checks), now=at)
    return {"name": f"hyperpod-report-{at:%Y%m%d-%H%M}.md", "text": text}


async def _examinations(call: Call) -> Examinations:
    return await call.process.examinations()


def _answer(found: Examination | None) -> DoctorExamination:
    if found is None:
        return {
            "number": 0,
            "version": 0,
            "cluster": None,
            "job": False,
            "state": "none",
            "begun_at": None,
            "ended_at": None,
            "step": None,
            "checks": [],
            "problem": None,
        }
    step = found.step
    return {
        "number": found.number,
        "version": found.version,
        "cluster": found.asked.cluster,
        "job": found.asked.job,
        "state": found.state,
        "begun_at": iso_time(found.begun_at),
        "ended_at": iso_time(found.ended_at),
        "step": None
        if step is None
        else {
            "key": step.key,
            "about": step.about,
            "title": step.title,
            "name": step.name,
            "group": step.group,
        },
        "checks": [cast("DoctorCheck", check.to_dict()) for check in found.checks],
        "problem": cast("Error", found.problem.to_dict()) if found.problem else None,
    }
