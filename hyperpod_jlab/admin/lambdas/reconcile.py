"""The net, by a schedule: the whole domain is made as the stack wants it, whatever was missed or changed.

It does what time allows, and the next time goes on: what is as wanted costs no change.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from hyperpod_jlab.admin.lambdas.settings import StackSettings
from hyperpod_jlab.admin.lambdas.work import (
    LambdaContext,
    Limit,
    ReconcileOutcome,
    is_passing,
    made_as_told,
    plain,
    tell,
)
from hyperpod_jlab.core.errors import RefusedError

log = logging.getLogger(__name__)


def handler(event: Any, context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001 - Lambda gives both
    """Make the domain as wanted, and say what was not.

    Args:
        event: The schedule's; nothing of it is needed.
        context: Lambda's.

    Returns:
        Counts, and ``summary``: what was changed, what waits, what failed, and what there was no time for.

    Raises:
        InvalidInputError: The environment is not right.
        RefusedError: Something failed for good, so that Lambda counts an error, for which there can be an alarm.
        HyperpodError: What is there cannot be read.
    """
    tell()
    settings = StackSettings.of_environment()
    outcome = asyncio.run(_reconciled(settings, Limit(context)))
    for step in outcome.held:
        log.warning("%s waits: %s -> %s: %s", step.target, step.before, step.after, step.reason)
    lasting = [one for one in outcome.failed if not is_passing(one.error)]
    if lasting or outcome.blind:
        raise RefusedError(f"not everything is up to date: {outcome.words()}", code="not_done")
    return plain(outcome)


async def _reconciled(settings: StackSettings, limit: Limit) -> ReconcileOutcome:
    return await made_as_told(settings, settings.wiring(), limit)
