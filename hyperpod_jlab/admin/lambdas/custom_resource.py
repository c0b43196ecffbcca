"""``Custom::HyperPodStudioWiring``: a stack's wiring of a domain, made, changed and taken back when CloudFormation asks.

A resource is called by its domain and file system (`Wired`). When an update names another one, CloudFormation asks to delete the old one later, by its
name; the mode is changed in place. Marks in tags are of one file system at a time, so in the same domain the old one is taken back first.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from hyperpod_jlab.admin.fsx.models import DesiredState, EntryStep
from hyperpod_jlab.admin.fsx.reconcile import Reconciler, StorageRequest
from hyperpod_jlab.admin.lambdas.answer import StackResponse
from hyperpod_jlab.admin.lambdas.settings import StackSettings
from hyperpod_jlab.admin.lambdas.work import (
    LambdaContext,
    Limit,
    ReconcileOutcome,
    is_of_the_whole,
    is_passing,
    made_as_told,
    made_so,
    tell,
)
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.errors import HyperpodError, InvalidInputError, NotFoundError, RefusedError
from hyperpod_jlab.core.finding import raise_on_error

log = logging.getLogger(__name__)

_KIND, _NOTHING = "hyperpod-jlab", "hyperpod-jlab/nothing"

_AGAIN = "The next run continues from there"


@dataclass(frozen=True)
class Wired:
    """A domain and a file system: what a resource is called by, and all that is needed to take it back."""

    domain: str
    file_system: str

    @property
    def physical_id(self) -> str:
        """Such as ``hyperpod-jlab/d-abc123/fs-0123456789abcdef0``."""
        return f"{_KIND}/{self.domain}/{self.file_system}"

    @classmethod
    def of(cls, physical_id: Any) -> Self | None:
        """What a resource's name says; None: it is none of ours."""
        match str(physical_id or "").split("/"):
            case [kind, domain, file_system] if kind == _KIND:
                return cls(domain, file_system)
        return None

    def taken_back(self) -> StorageRequest:
        """Nothing of it."""
        return StorageRequest(
            self.domain, DesiredState(None), file_system=self.file_system, gone=True
        )


def handler(event: Any, context: LambdaContext) -> dict[str, Any]:
    """Do what CloudFormation asks, and answer it, whatever happens.

    Args:
        event: Its request (CloudFormation's documentation of custom resource request objects).
        context: Lambda's.

    Raises:
        InvalidInputError: It is no request of CloudFormation.
        UnreachableError: CloudFormation does not take the answer; Lambda tries it all again then, which does no harm.
    """
    tell()
    limit = Limit(context)
    answer = StackResponse(event, limit)
    with answer.watched():
        try:
            outcome = asyncio.run(_asked(event, answer, limit))
        except HyperpodError as error:
            answer.give("FAILED", str(error))
        except Exception as error:
            # A fault of ours is answered too, or the stack waits for an hour.
            log.exception("a bug in this function")
            answer.give("FAILED", f"a bug in this function, see its log: {type(error).__name__}")
        else:
            answer.give("SUCCESS", outcome["Summary"], outcome)
    return {"PhysicalResourceId": answer.physical_id}


async def _asked(event: Mapping[str, Any], answer: StackResponse, limit: Limit) -> dict[str, str]:
    """Do what is asked; what templates may read then.

    Raises:
        HyperpodError: It was not done.
    """
    kind = event.get("RequestType")
    if kind == "Delete":
        return await _deleted(event, answer, limit)
    if not answer.physical_id:
        answer.physical_id = _NOTHING  # until it is known what is made
    if kind not in {"Create", "Update"}:
        raise InvalidInputError(
            f"RequestType must be Create, Update or Delete, not '{str(kind)[:30]}'"
        )
    settings = StackSettings.of_properties(event.get("ResourceProperties"))
    reconciler = Reconciler(Aws(), settings.wiring())
    wired = Wired(settings.domain, await reconciler.file_system())
    known = Wired.of(answer.physical_id)
    if kind == "Create":
        answer.physical_id = wired.physical_id
    else:
        await _make_room(event, wired, known, reconciler, answer, limit)
    wiring = replace(settings.wiring(), file_system=wired.file_system)
    outcome = await made_as_told(settings, wiring, limit, told=_teller(answer))
    _check(outcome, reconciled=settings.reconciled == "true", gives=True)
    # Only now: an update that fails goes on under the old name.
    answer.physical_id = wired.physical_id
    return _data(wired, outcome, settings.mode)


async def _make_room(
    event: Mapping[str, Any],
    wired: Wired,
    known: Wired | None,
    reconciler: Reconciler,
    answer: StackResponse,
    limit: Limit,
) -> None:
    """Take back what is to be replaced, where CloudFormation would do it too late or never.

    Raises:
        HyperpodError: It cannot be taken back, or what is wanted cannot be: then nothing was done.
    """
    before = await _before(event)
    # In the same domain, for the marks; and what a failed update has begun, which CloudFormation has never heard of.
    gone: set[Wired] = set()
    if known is not None and known.domain == wired.domain:
        gone.add(known)
    if before is not None and before != known:
        gone.add(before)
    gone.discard(wired)
    if not gone:
        return
    _, made = await reconciler.plan()
    raise_on_error(list(made.findings))
    for one in gone:
        _check(await _taken_back(one, answer, limit), reconciled=False)


async def _before(event: Mapping[str, Any]) -> Wired | None:
    """What the properties before an update named; None where they were not right either."""
    try:
        settings = StackSettings.of_properties(event.get("OldResourceProperties"))
        file_system = await Reconciler(Aws(), settings.wiring()).file_system()
    except (InvalidInputError, NotFoundError):
        return None
    return Wired(settings.domain, file_system)


async def _deleted(event: Mapping[str, Any], answer: StackResponse, limit: Limit) -> dict[str, str]:
    """Take back what the resource's name says; by its properties where it has none of our names, as one whose creation never answered.

    Raises:
        HyperpodError: Something could not be taken back.
    """
    wired = Wired.of(answer.physical_id)
    if wired is None and answer.physical_id != _NOTHING:
        try:
            settings = StackSettings.of_properties(event.get("ResourceProperties"))
            wired = Wired(settings.domain, await Reconciler(Aws(), settings.wiring()).file_system())
        except (InvalidInputError, NotFoundError) as error:
            log.info("nothing can have been created from these properties: %s", error)
    if not answer.physical_id:
        answer.physical_id = _NOTHING
    if wired is None:
        return {"Summary": "nothing was created, so nothing is removed"}
    outcome = await _taken_back(wired, answer, limit)
    if outcome.held:
        raise RefusedError(
            f"not everything was removed: {outcome.words()}",
            code="not_taken_back",
            hint="stop the running applications and delete the stack again; it continues from there",
        )
    _check(outcome, reconciled=False)
    return _data(wired, outcome, "none")


async def _taken_back(wired: Wired, answer: StackResponse, limit: Limit) -> ReconcileOutcome:
    """Take a wiring back. Where the domain is gone, all of it is.

    Raises:
        HyperpodError: What is there cannot be read.
    """
    try:
        return await made_so(wired.taken_back(), limit, told=_teller(answer))
    except NotFoundError as error:
        if error.detail.get("action") != "sagemaker:DescribeDomain":
            raise
        log.info("there is nothing to remove: %s", error)
        return ReconcileOutcome(planned=True)


def _check(outcome: ReconcileOutcome, *, reconciled: bool, gives: bool = False) -> None:
    """Whether CloudFormation may be told that it is done.

    Single profiles and spaces that wait do not stop a stack: one runs, another one is somebody else's. What all people need does.

    Args:
        outcome: What became of it.
        reconciled: Whether a schedule goes on with single ones for which there was no time, or AWS was busy.
        gives: Whether a mode is wanted: a default that goes last, once profiles have folders of their own, is missed by nobody.

    Raises:
        RefusedError: It is not done.
    """
    missing = [
        step
        for step in (*outcome.held, *outcome.left, *(one.step for one in outcome.failed))
        if is_of_the_whole(step) and not (gives and isinstance(step, EntryStep) and step.takes_away)
    ]
    lasting = [one for one in outcome.failed if not is_passing(one.error)]
    unfinished = bool(outcome.left or outcome.failed)
    if outcome.planned and not missing and not lasting and (reconciled or not unfinished):
        return
    late = not outcome.planned or bool(outcome.left)
    decide = any(step.state == "blocked" for step in missing)
    again = "" if decide else f" {_AGAIN}"
    raise RefusedError(
        f"{'timed out: ' if late else 'not done: '}{outcome.words()}.{again}",
        code="time_is_up" if late else "not_done",
    )


def _teller(answer: StackResponse) -> Callable[[str], None]:
    def told(words: str) -> None:
        answer.progress = words

    return told


def _data(wired: Wired, outcome: ReconcileOutcome, mode: str) -> dict[str, str]:
    return {
        "DomainId": wired.domain,
        "FileSystemId": wired.file_system,
        "PartitionMode": mode,
        "Summary": outcome.words(),
        "Waiting": str(len(outcome.held)),
        "Left": str(len(outcome.left) + len(outcome.failed)),
    }
