"""Profiles that are made: EventBridge tells of each through a queue, and it is wired as the domain is.

An event is what CloudTrail has of the call (``"detail-type": "AWS API Call via CloudTrail"``, ``"source": "aws.sagemaker"``; EventBridge's documentation of events of
AWS services via CloudTrail), with the request's members in lower camel case, as AWS' own samples for SageMaker read them: ``detail.requestParameters.domainId`` and
``.userProfileName``. A call that failed has an ``errorCode``. The queue hands over batches, and those that failed are named
in the answer (Lambda's documentation of partial batch responses, ``ReportBatchItemFailures``): the queue gives them again, and to its
dead-letter queue in the end.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hyperpod_jlab.admin.lambdas.converging import Outcome, waits_for_sagemaker
from hyperpod_jlab.admin.lambdas.keeping import keeper_of
from hyperpod_jlab.admin.lambdas.limit import Context, Limit
from hyperpod_jlab.admin.lambdas.running import made_so, tell
from hyperpod_jlab.admin.lambdas.settings import Settings
from hyperpod_jlab.admin.modes import private_path
from hyperpod_jlab.admin.plan import EntryStep, FolderStep, Step
from hyperpod_jlab.admin.there import Holder
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.model.errors import HyperpodError, InvalidInputError

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Made:
    """A profile that was made, by the message that says so."""

    message: str
    profile: str


def handler(event: Any, context: Context) -> dict[str, Any]:
    """Wire the profiles of a batch.

    Args:
        event: The queue's batch.
        context: Lambda's.

    Returns:
        ``{"batchItemFailures": [{"itemIdentifier": ID}]}``: what the queue is to give again.

    Raises:
        InvalidInputError: It is no batch of a queue, or the environment is not right: all of it is given again then.
    """
    tell()
    limit = Limit(context)
    settings = Settings.of_environment()
    records = event.get("Records") if isinstance(event, Mapping) else None
    if not isinstance(records, list):
        raise InvalidInputError("this is no batch of a queue: it has no Records")
    made, again = [], set()
    for record in records:
        message = str(record.get("messageId") or "")
        try:
            profile = profile_of(record, settings.domain)
        except InvalidInputError as error:
            log.error("message %s: %s", message, error)  # noqa: TRY400 - no fault of ours
            again.add(message)
        else:
            if profile is not None:
                made.append(Made(message, profile))
    if made:
        again |= asyncio.run(_wired(settings, made, limit))
    return {"batchItemFailures": [{"itemIdentifier": one} for one in sorted(again)]}


def profile_of(record: Mapping[str, Any], domain: str) -> str | None:
    """The profile of our domain that a message says was made; None: it says nothing of the kind.

    Args:
        record: One of the batch.
        domain: The domain's id.

    Raises:
        InvalidInputError: It is no event of EventBridge, or does not name a profile.
    """
    try:
        told = json.loads(str(record.get("body")))
    except ValueError:
        raise InvalidInputError("its body is no JSON") from None
    detail = told.get("detail") if isinstance(told, Mapping) else None
    if not isinstance(detail, Mapping):
        raise InvalidInputError("it is no event of EventBridge: it has no detail")
    if told.get("source") != "aws.sagemaker" or detail.get("eventName") != "CreateUserProfile":
        log.warning("an event that the rule should not let through: %s", detail.get("eventName"))
        return None
    if detail.get("errorCode"):
        return None  # none was made
    given = detail.get("requestParameters")
    if not isinstance(given, Mapping) or not (
        isinstance(given.get("domainId"), str) and isinstance(given.get("userProfileName"), str)
    ):
        raise InvalidInputError("its requestParameters do not name a domain and a profile")
    if given["domainId"] != domain:
        log.warning("a profile of another domain: the rule should name %s", domain)
        return None
    return str(given["userProfileName"])


async def _wired(settings: Settings, made: list[Made], limit: Limit) -> set[str]:
    """Wire profiles; the messages that are to come again."""
    names = frozenset(one.profile for one in made)
    wiring = settings.wiring(among=names)
    paths = {private_path(name) for name in names} if settings.mode == "per-user" else set()

    def concerned(step: Step) -> bool:
        if isinstance(step, FolderStep):
            return step.path in paths
        return isinstance(step, EntryStep)  # what all need is the stack's and the schedule's to do

    try:
        async with keeper_of(settings, Aws()) as keeper:
            outcome = await made_so(wiring, limit, keeper=keeper, concerned=concerned)
    except HyperpodError as error:
        log.error("none of %s: %s", ", ".join(sorted(names)), error)  # noqa: TRY400
        return {one.message for one in made}
    late = _late(outcome)
    return {one.message for one in made if not outcome.planned or one.profile in late}


def _late(outcome: Outcome) -> set[str]:
    """Profiles of which something is still to be done, and that may be done by trying again."""
    steps = [*outcome.left, *(one.step for one in outcome.failed)]
    steps += [one for one in outcome.held if waits_for_sagemaker(one)]
    found = set()
    for step in steps:
        if isinstance(step, FolderStep):
            found.add(step.path.strip("/"))
        elif isinstance(step, EntryStep):
            found.add(_profile_of(step.holder))
    return found


def _profile_of(holder: Holder) -> str:
    return holder.owner or holder.name if holder.kind == "space" else holder.name
