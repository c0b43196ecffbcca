"""Requests about the doctor: examine what a run needs, and read what was found, while it goes on too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast

from typing_extensions import TypedDict

from hyperpod_jlab.model.run import iso_time
from hyperpod_jlab.server.answers import Error
from hyperpod_jlab.server.call import Call

if TYPE_CHECKING:
    from hyperpod_jlab.services.examinations import Examination, Examinations


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
    """An examination, as far as it has come. `number` is 0 before the first one; `problem` says why one broke."""

    number: int
    version: int
    state: Literal["none", "running", "done", "cancelled", "failed"]
    begun_at: str | None
    ended_at: str | None
    step: DoctorStep | None
    checks: list[DoctorCheck]
    problem: Error | None


async def show_examination(call: Call) -> DoctorExamination:
    """The newest examination of this server, which goes on or has ended."""
    return _answer((await _examinations(call)).last)


async def begin_examination(call: Call) -> DoctorExamination:
    """Examine what a run needs: this installation, Studio and AWS, file systems, clusters. While one examination goes on that one is answered."""
    return _answer((await _examinations(call)).begin())


async def cancel_examination(call: Call) -> DoctorExamination:
    """End the examination that goes on; what it found stays."""
    return _answer(await (await _examinations(call)).cancel())


async def _examinations(call: Call) -> Examinations:
    return await call.process.examinations()


def _answer(found: Examination | None) -> DoctorExamination:
    if found is None:
        return {
            "number": 0,
            "version": 0,
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
