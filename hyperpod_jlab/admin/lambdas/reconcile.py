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
    converge_with_folders,
    enable_logging,
    is_transient,
    to_log_data,
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
    enable_logging()
    settings = StackSettings.from_environment()
    outcome = asyncio.run(_reconcile(settings, Limit(context)))
    for step in outcome.waiting_steps:
        log.warning("%s waits: %s -> %s: %s", step.target, step.before, step.after, step.reason)
    lasting_failures = [failure for failure in outcome.failed if not is_transient(failure.error)]
    if lasting_failures or outcome.without_folders:
        raise RefusedError(f"not everything is up to date: {outcome.words()}", code="not_done")
    return to_log_data(outcome)


async def _reconcile(settings: StackSettings, limit: Limit) -> ReconcileOutcome:
    return await converge_with_folders(settings, settings.wiring(), limit)
