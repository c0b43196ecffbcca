"""Reconciliation on a schedule: brings the whole domain to the stack's desired state, whatever was missed or changed.

It does what time allows, and the next run continues: resources in the desired state are not changed.
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
    """Reconcile the domain, and report the result.

    Args:
        event: The schedule's; unused.
        context: Lambda's.

    Returns:
        Counts, and ``summary``: what was changed, what waits, what failed, and what there was no time for.

    Raises:
        InvalidInputError: The environment is invalid.
        RefusedError: A permanent failure, so that Lambda counts an error, for which you can set an alarm.
        HyperpodError: The actual state cannot be read.
    """
    enable_logging()
    settings = StackSettings.from_environment()
    outcome = asyncio.run(_reconcile(settings, Limit(context)))
    for step in outcome.waiting_steps:
        log.warning("%s waits: %s -> %s: %s", step.target, step.before, step.after, step.reason)
    lasting_failures = [failure for failure in outcome.failed if not is_transient(failure.error)]
    if lasting_failures:
        raise RefusedError(f"not everything is up to date: {outcome.words()}", code="not_done")
    return to_log_data(outcome)


async def _reconcile(settings: StackSettings, limit: Limit) -> ReconcileOutcome:
    return await converge_with_folders(settings, settings.wiring(), limit)
