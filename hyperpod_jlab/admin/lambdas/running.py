"""What all handlers do alike: logs that are read in CloudWatch, and a wiring within the time limit."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

from hyperpod_jlab.admin.folders import FolderKeeper
from hyperpod_jlab.admin.lambdas.converging import Outcome, converge, plain
from hyperpod_jlab.admin.lambdas.limit import Limit
from hyperpod_jlab.admin.plan import Step
from hyperpod_jlab.admin.wiring import Wirer, Wiring
from hyperpod_jlab.aws.session import Aws

log = logging.getLogger(__name__)


def tell() -> None:
    """Let Lambda log what we have to say: its own level hides what is no warning."""
    logging.getLogger("hyperpod_jlab").setLevel(logging.INFO)


async def made_so(
    wiring: Wiring,
    limit: Limit,
    *,
    keeper: FolderKeeper | None = None,
    concerned: Callable[[Step], bool] | None = None,
    told: Callable[[str], None] = lambda _: None,
    patiently: bool = False,
) -> Outcome:
    """Make a wiring so, and log what became of it in a line of JSON.

    Raises:
        HyperpodError: See `converging.converge`.
    """
    wirer = Wirer(Aws(), wiring, keeper=keeper)
    outcome = await converge(wirer, limit, concerned=concerned, told=told, patiently=patiently)
    log.info("%s", report(wiring, outcome))
    return outcome


def report(wiring: Wiring, outcome: Outcome) -> str:
    """One line of JSON, for CloudWatch's metric filters and queries."""
    told: dict[str, Any] = {
        "domain": wiring.domain,
        "mode": wiring.wanted.mode,
        **plain(outcome),
    }
    return json.dumps(told)
