"""Configure new profiles and spaces as the domain is: EventBridge reports each one through a queue.

A space that starts before it is configured is configured after its application ends: SageMaker updates no space with a running application.

An event is CloudTrail's record of the call (``"detail-type": "AWS API Call via CloudTrail"``, ``"source":
"aws.sagemaker"``; EventBridge's documentation of events of
AWS services via CloudTrail), with the request's members in lower camel case, as AWS' own samples for SageMaker read
them: ``detail.requestParameters.domainId``,
``.userProfileName`` and ``.spaceName``. A call that failed has an ``errorCode``. The queue delivers batches, and the
response names the failed messages (Lambda's documentation of partial batch responses, ``ReportBatchItemFailures``):
the queue delivers them again, and finally to its dead-letter queue.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from hyperpod_jlab.admin.fsx.aws import ProfileSubset
from hyperpod_jlab.admin.fsx.models import EntryStep, FolderStep, private_path
from hyperpod_jlab.admin.lambdas.settings import StackSettings
from hyperpod_jlab.admin.lambdas.work import (
    LambdaContext,
    Limit,
    ReconcileOutcome,
    converge_with_folders,
    enable_logging,
    waits_for_sagemaker,
)
from hyperpod_jlab.core.errors import HyperpodError, InvalidInputError

log = logging.getLogger(__name__)

Kind = Literal["profile", "space"]

EVENTS: Mapping[str, tuple[Kind, str]] = {
    "CreateUserProfile": ("profile", "userProfileName"),
    "CreateSpace": ("space", "spaceName"),
    "DeleteApp": ("space", "spaceName"),
}
"""The reported calls, each with its kind of resource and the member with its name."""


@dataclass(frozen=True)
class CreatedTarget:
    """A new profile or space, from the message about it."""

    message: str
    kind: Kind
    name: str

    @property
    def words(self) -> str:
        """As `MountTarget.words`."""
        return f"{self.kind} {self.name}"


def handler(event: Any, context: LambdaContext) -> dict[str, Any]:
    """Configure the profiles and spaces of a batch.

    Args:
        event: The queue's batch.
        context: Lambda's.

    Returns:
        ``{"batchItemFailures": [{"itemIdentifier": ID}]}``: the messages to deliver again.

    Raises:
        InvalidInputError: It is not a batch of a queue, or the environment is invalid: then all messages are delivered again.
    """
    enable_logging()
    limit = Limit(context)
    settings = StackSettings.from_environment()
    records = event.get("Records") if isinstance(event, Mapping) else None
    if not isinstance(records, list):
        raise InvalidInputError("this is not an SQS batch: it has no Records")
    created_targets, retry_ids = [], set()
    for record in records:
        message = str(record.get("messageId") or "")
        try:
            target = parse_created_target(record, settings.domain)
        except InvalidInputError as error:
            log.error("message %s: %s", message, error)  # noqa: TRY400 - no fault of ours
            retry_ids.add(message)
        else:
            if target is not None:
                created_targets.append(target)
    if created_targets:
        retry_ids |= asyncio.run(_wire_targets(settings, created_targets, limit))
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in sorted(retry_ids)]}


def parse_created_target(record: Mapping[str, Any], domain: str) -> CreatedTarget | None:
    """The profile or space of our domain in a message; None if there is none.

    Args:
        record: One message of the batch.
        domain: The domain's id.

    Raises:
        InvalidInputError: It is not an event of EventBridge, or names no profile or space.
    """
    try:
        body = json.loads(str(record.get("body")))
    except ValueError:
        raise InvalidInputError("its body is not valid JSON") from None
    detail = body.get("detail") if isinstance(body, Mapping) else None
    if not isinstance(detail, Mapping):
        raise InvalidInputError("it is not an EventBridge event: it has no detail")
    call = str(detail.get("eventName"))
    if body.get("source") != "aws.sagemaker" or call not in EVENTS:
        log.warning("an event that the rule should not match: %s", call)
        return None
    if detail.get("errorCode"):
        return None  # the call failed
    kind, member = EVENTS[call]
    parameters = detail.get("requestParameters")
    if not isinstance(parameters, Mapping) or not isinstance(parameters.get("domainId"), str):
        raise InvalidInputError("its requestParameters do not name a domain")
    if parameters["domainId"] != domain:
        log.warning("a %s of another domain: the rule should match only %s", kind, domain)
        return None
    name = parameters.get(member)
    if isinstance(name, str):
        return CreatedTarget(str(record.get("messageId") or ""), kind, name)
    if call == "DeleteApp":
        return None  # an application outside a space
    raise InvalidInputError(f"its requestParameters do not name a {kind}")


async def _wire_targets(settings: StackSettings, targets: list[CreatedTarget], limit: Limit) -> set[str]:
    """Configure profiles and spaces; returns the messages to deliver again."""
    profiles, spaces = (
        frozenset(target.name for target in targets if target.kind == kind) for kind in ("profile", "space")
    )
    wiring = settings.wiring(subset=ProfileSubset(profiles, spaces))
    try:
        outcome = await converge_with_folders(settings, wiring, limit, waits=True)
    except HyperpodError as error:
        log.error("none of %s: %s", ", ".join(sorted({target.words for target in targets})), error)  # noqa: TRY400
        return {target.message for target in targets}
    late_targets = _unfinished_names(outcome)
    return {target.message for target in targets if not outcome.planned or target.words in late_targets}


def _unfinished_names(outcome: ReconcileOutcome) -> set[str]:
    """Display names of profiles and spaces with remaining steps that a retry may complete."""
    steps = [*outcome.remaining, *(failure.step for failure in outcome.failed)]
    steps += [failure for failure in outcome.waiting_steps if waits_for_sagemaker(failure)]
    paths = {step.path for step in steps if isinstance(step, FolderStep)}
    late_names = set()
    for step in (*steps, *outcome.waiting_steps):
        if isinstance(step, EntryStep) and (step in steps or _private_path(step) in paths):
            late_names.add(step.holder.words)
            if step.holder.owner is not None:
                late_names.add(f"profile {step.holder.owner}")
    return late_names


def _private_path(step: EntryStep) -> str | None:
    """The private folder of a profile, or of a space's owner."""
    name = step.holder.name if step.holder.kind == "profile" else step.holder.owner
    return private_path(name) if name else None
