"""What all handlers do alike: logs that are read in CloudWatch, and a wiring within the time limit."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any, TypedDict, Unpack

from hyperpod_jlab.admin.folders import FolderKeeper
from hyperpod_jlab.admin.lambdas.converging import Outcome, converge, plain
from hyperpod_jlab.admin.lambdas.keeping import FoldersOutOfReachError, keeper_of
from hyperpod_jlab.admin.lambdas.limit import Limit
from hyperpod_jlab.admin.lambdas.settings import Settings
from hyperpod_jlab.admin.plan import Step
from hyperpod_jlab.admin.wiring import Wirer, Wiring
from hyperpod_jlab.aws.session import Aws

log = logging.getLogger(__name__)


def tell() -> None:
    """Let Lambda log what we have to say: its own level hides what is no warning."""
    logging.getLogger("hyperpod_jlab").setLevel(logging.INFO)


class How(TypedDict, total=False):
    """See `converging.converge`."""

    concerned: Callable[[Step], bool] | None
    told: Callable[[str], None]
    patiently: bool


async def made_as_told(
    settings: Settings, wiring: Wiring, limit: Limit, **how: Unpack[How]
) -> Outcome:
    """Make a wiring so, with folders by whom the stack says. Where the controller cannot be reached, all is done that needs no folder (`Outcome.blind`).

    Raises:
        HyperpodError: See `keeping.keeper_of` and `converging.converge`.
    """
    try:
        async with keeper_of(settings, Aws()) as keeper:
            return await made_so(wiring, limit, keeper, **how)
    except FoldersOutOfReachError as error:
        log.error("%s", error)  # noqa: TRY400 - its traceback would say nothing more
        outcome = await made_so(wiring, limit, **how)
        outcome.blind = error
        return outcome


async def made_so(
    wiring: Wiring, limit: Limit, keeper: FolderKeeper | None = None, **how: Unpack[How]
) -> Outcome:
    """Make a wiring so, and log what became of it in a line of JSON.

    Raises:
        HyperpodError: See `converging.converge`.
    """
    outcome = await converge(Wirer(Aws(), wiring, keeper=keeper), limit, **how)
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
