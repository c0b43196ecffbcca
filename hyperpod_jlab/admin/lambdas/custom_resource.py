"""``Custom::HyperPodStudioWiring``: a stack's storage settings of a domain; CloudFormation creates, updates and deletes them.

The resource's id contains domain and file system (`WiredTarget`). If an update names another one, CloudFormation later requests the deletion of the old id;
the mode is changed in place. Tags belong to one file system at a time, so in the same domain the old settings are removed first.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from hyperpod_jlab.admin.fsx.models import DesiredState, EntryStep
from hyperpod_jlab.admin.fsx.reconcile import Reconciler
from hyperpod_jlab.admin.fsx.request import StorageRequest
from hyperpod_jlab.admin.lambdas.answer import StackResponse
from hyperpod_jlab.admin.lambdas.settings import StackSettings
from hyperpod_jlab.admin.lambdas.work import (
    LambdaContext,
    Limit,
    ReconcileOutcome,
    converge,
    converge_with_folders,
    enable_logging,
    is_for_domain,
    is_transient,
)
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.errors import HyperpodError, InvalidInputError, NotFoundError, RefusedError
from hyperpod_jlab.core.finding import raise_on_error

log = logging.getLogger(__name__)

_KIND, _NOTHING = "hyperpod-jlab", "hyperpod-jlab/nothing"

_CONTINUES_NOTE = "The next run continues from there"


@dataclass(frozen=True)
class WiredTarget:
    """A domain and a file system: the resource's id, and all that is needed to remove the settings."""

    domain: str
    file_system: str

    @property
    def physical_id(self) -> str:
        """For example ``hyperpod-jlab/d-abc123/fs-0123456789abcdef0``."""
        return f"{_KIND}/{self.domain}/{self.file_system}"

    @classmethod
    def from_physical_id(cls, physical_id: Any) -> Self | None:
        """Parse a resource's id; None: it is not ours."""
        match str(physical_id or "").split("/"):
            case [kind, domain, file_system] if kind == _KIND:
                return cls(domain, file_system)
        return None

    def empty_request(self) -> StorageRequest:
        """The request to remove all settings."""
        return StorageRequest(self.domain, DesiredState(None), file_system=self.file_system, may_be_missing=True)


def handler(event: Any, context: LambdaContext) -> dict[str, Any]:
    """Handle CloudFormation's request, and respond in any case.

    Args:
        event: Its request (CloudFormation's documentation of custom resource request objects).
        context: Lambda's.

    Raises:
        InvalidInputError: It is not a request of CloudFormation.
        UnreachableError: CloudFormation does not accept the response; Lambda then retries everything, which is idempotent.
    """
    enable_logging()
    limit = Limit(context)
    response = StackResponse(event, limit)
    with response.watchdog():
        try:
            outcome = asyncio.run(_handle(event, response, limit))
        except HyperpodError as error:
            response.send("FAILED", str(error))
        except Exception as error:
            # Internal errors get a response too, or the stack waits for an hour.
            log.exception("a bug in this function")
            response.send("FAILED", f"a bug in this function, see its log: {type(error).__name__}")
        else:
            response.send("SUCCESS", outcome["Summary"], outcome)
    return {"PhysicalResourceId": response.physical_id}


async def _handle(event: Mapping[str, Any], response: StackResponse, limit: Limit) -> dict[str, str]:
    """Handle the request; returns the values for templates.

    Raises:
        HyperpodError: It failed.
    """
    kind = event.get("RequestType")
    if kind == "Delete":
        return await _delete(event, response, limit)
    if not response.physical_id:
        response.physical_id = _NOTHING  # until the target is known
    if kind not in {"Create", "Update"}:
        raise InvalidInputError(f"RequestType must be Create, Update or Delete, not '{str(kind)[:30]}'")
    settings = StackSettings.from_properties(event.get("ResourceProperties"))
    reconciler = Reconciler(Aws(), settings.wiring())
    wired = WiredTarget(settings.domain, await reconciler.file_system())
    known_target = WiredTarget.from_physical_id(response.physical_id)
    if kind == "Create":
        response.physical_id = wired.physical_id
    else:
        await _remove_replaced(event, wired, known_target, reconciler, response, limit)
    wiring = replace(settings.wiring(), file_system=wired.file_system)
    outcome = await converge_with_folders(settings, wiring, limit, on_progress=_progress_logger(response))
    _check(outcome, reconciled=settings.reconciled == "true", gives=True)
    # Only now: a failed update continues under the old id.
    response.physical_id = wired.physical_id
    return _data(wired, outcome, settings.mode)


async def _remove_replaced(
    event: Mapping[str, Any],
    wired: WiredTarget,
    target: WiredTarget | None,
    reconciler: Reconciler,
    response: StackResponse,
    limit: Limit,
) -> None:
    """Remove the settings to be replaced, where CloudFormation would do it too late or never.

    Raises:
        HyperpodError: Removing them failed, or the desired state is impossible: then nothing was done.
    """
    previous_target = await _previous_target(event)
    # In the same domain because of the tags; and the leftovers of a failed update, which
    # CloudFormation does not know.
    removed_targets: set[WiredTarget] = set()
    if target is not None and target.domain == wired.domain:
        removed_targets.add(target)
    if previous_target is not None and previous_target != target:
        removed_targets.add(previous_target)
    removed_targets.discard(wired)
    if not removed_targets:
        return
    _, storage_plan = await reconciler.plan()
    raise_on_error(list(storage_plan.findings))
    for removed in removed_targets:
        _check(await _remove_mounts(removed, response, limit), reconciled=False)


async def _target_of(properties: Any) -> WiredTarget:
    """The target of properties.

    Raises:
        InvalidInputError: They are invalid.
        NotFoundError: The cluster does not exist.
    """
    settings = StackSettings.from_properties(properties)
    return WiredTarget(settings.domain, await Reconciler(Aws(), settings.wiring()).file_system())


async def _previous_target(event: Mapping[str, Any]) -> WiredTarget | None:
    """The target before an update; None if those properties were invalid too."""
    try:
        return await _target_of(event.get("OldResourceProperties"))
    except (InvalidInputError, NotFoundError):
        return None


async def _delete(event: Mapping[str, Any], response: StackResponse, limit: Limit) -> dict[str, str]:
    """Remove the settings of the resource's id; of its properties if the id is not ours, as for a creation without a response.

    Raises:
        HyperpodError: Removing something failed.
    """
    wired = WiredTarget.from_physical_id(response.physical_id)
    if wired is None and response.physical_id != _NOTHING:
        try:
            wired = await _target_of(event.get("ResourceProperties"))
        except (InvalidInputError, NotFoundError) as error:
            log.info("nothing can have been created from these properties: %s", error)
    if not response.physical_id:
        response.physical_id = _NOTHING
    if wired is None:
        return {"Summary": "nothing was created, so nothing is removed"}
    outcome = await _remove_mounts(wired, response, limit)
    if outcome.waiting_steps:
        raise RefusedError(
            f"not everything was removed: {outcome.words()}",
            code="not_taken_back",
            hint="stop the running applications and delete the stack again; it continues from there",
        )
    _check(outcome, reconciled=False)
    return _data(wired, outcome, "none")


async def _remove_mounts(wired: WiredTarget, response: StackResponse, limit: Limit) -> ReconcileOutcome:
    """Remove a domain's settings. If the domain was deleted, nothing is left to remove.

    Raises:
        HyperpodError: The actual state cannot be read.
    """
    try:
        return await converge(wired.empty_request(), limit, on_progress=_progress_logger(response))
    except NotFoundError as error:
        if error.detail.get("action") != "sagemaker:DescribeDomain":
            raise
        log.info("there is nothing to remove: %s", error)
        return ReconcileOutcome(steps=())


def _check(outcome: ReconcileOutcome, *, reconciled: bool, gives: bool = False) -> None:
    """Raise unless CloudFormation can be told that it succeeded.

    Single profiles and spaces that wait do not fail a stack: one may be running, another may have others' settings. Steps that affect all users do.

    Args:
        outcome: The result.
        reconciled: Whether a schedule later completes single ones that were skipped for lack of time, or because AWS was busy.
        gives: Whether a mode is desired: a default that is removed last, once profiles have their own folders, affects nobody.

    Raises:
        RefusedError: It did not succeed.
    """
    missing = [
        step
        for step in (*outcome.waiting_steps, *outcome.remaining, *(failure.step for failure in outcome.failed))
        if is_for_domain(step) and not (gives and isinstance(step, EntryStep) and step.removes_mount)
    ]
    lasting_failures = [failure for failure in outcome.failed if not is_transient(failure.error)]
    unfinished = bool(outcome.remaining or outcome.failed)
    if outcome.planned and not missing and not lasting_failures and (reconciled or not unfinished):
        return
    is_late = not outcome.planned or bool(outcome.remaining)
    decide = any(step.state == "blocked" for step in missing)
    suffix = "" if decide else f" {_CONTINUES_NOTE}"
    raise RefusedError(
        f"{'timed out: ' if is_late else 'not done: '}{outcome.words()}.{suffix}",
        code="time_is_up" if is_late else "not_done",
    )


def _progress_logger(response: StackResponse) -> Callable[[str], None]:
    def on_progress(message: str) -> None:
        response.progress = message

    return on_progress


def _data(wired: WiredTarget, outcome: ReconcileOutcome, mode: str) -> dict[str, str]:
    return {
        "DomainId": wired.domain,
        "FileSystemId": wired.file_system,
        "PartitionMode": mode,
        "Summary": outcome.words(),
        "Waiting": str(len(outcome.waiting_steps)),
        "Left": str(len(outcome.remaining) + len(outcome.failed)),
    }
