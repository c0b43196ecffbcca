"""Check runner: runs checks in dependency order with timeouts; skips dependents of failed ones, and survives any error."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable

from hyperpod_jlab.core.check import Check, CheckResult, CheckStep, from_error, unknown
from hyperpod_jlab.core.errors import HyperpodError
from hyperpod_jlab.run.services import Hyperpod

_LOG = logging.getLogger(__name__)

TOTAL_TIMEOUT_S = 240.0
"""Timeout of all steps together, in seconds."""

OnStep = Callable[[CheckStep], None]
"""Called with each step that starts."""


class CheckChain:
    """A check run, possibly in several parts.

    Args:
        on_step: Called with each step that starts.
        seconds: Timeout of all steps together.
    """

    def __init__(self, on_step: OnStep | None = None, seconds: float = TOTAL_TIMEOUT_S) -> None:
        self._on_step = on_step
        self._deadline = time.monotonic() + seconds
        self._seconds = seconds
        self._failed: dict[str, Check] = {}
        """By a step's name in `CheckStep.needs`: the failed check at the root of its dependencies."""

    def extend_deadline(self, seconds: float) -> None:
        """Extend the deadline to at least this many seconds from now."""
        self._deadline = max(self._deadline, time.monotonic() + seconds)

    async def run_steps(self, steps: Iterable[CheckStep]) -> AsyncIterator[Check]:
        """Run steps; yields each check as soon as it is done. A step without a result yields none."""
        for step in steps:
            result = await self._run_step(step)
            if result is None:
                continue
            check = step.to_check(result)
            if check.level in {"fail", "unknown"}:
                self._failed.setdefault(step.ident, check)
            yield check

    async def _run_step(self, step: CheckStep) -> CheckResult | None:
        for name in step.needs:
            failed_check = self._failed.get(name)
            if failed_check is not None:
                self._failed[step.ident] = failed_check  # dependents report the root cause
                how = "failed" if failed_check.level == "fail" else "could not be checked"
                return unknown(f"not checked: {failed_check.name} {how}")
        remaining = self._deadline - time.monotonic()
        if remaining <= 0:
            evidence = f"could not be checked: the time limit of all checks ({self._seconds:g} s) is reached"
            return unknown(evidence, "see the checks before this one, and try again")
        if self._on_step is not None:
            self._on_step(step)
        seconds = min(step.seconds, remaining)
        try:
            async with asyncio.timeout(seconds):
                return await step.look()
        except TimeoutError:
            return unknown(f"could not be checked: no answer within {seconds:.0f} s", "try again")
        except HyperpodError as error:
            return from_error(error)
        except Exception as error:  # noqa: BLE001 - one look that breaks is not to take all others with it
            _LOG.info("the check %s failed", step.ident, exc_info=True)  # users get no stack trace
            return unknown(
                f"could not be checked: {type(error).__name__}: {error}",
                "this is a bug in hyperpod_jlab; please report it",
            )


# --------------------------------------------------------------------------------------------------
# The services, once the configuration was read.

CONFIGURATION = "configuration"
"""The step that reads it; steps that use the services need it."""


class LazyServices:
    """The services; `open` creates them."""

    def __init__(self) -> None:
        self._hyperpod: Hyperpod | None = None

    async def open(self) -> CheckResult | None:
        """Read the configuration and create the services; no result on success.

        Raises:
            HyperpodError: The configuration is invalid.
        """
        self._hyperpod = Hyperpod()
        return None

    @property
    def is_open(self) -> bool:
        """Whether the configuration was read."""
        return self._hyperpod is not None

    @property
    def hyperpod(self) -> Hyperpod:
        """The services, for steps that need `CONFIGURATION`."""
        assert self._hyperpod is not None, "a step uses the services and does not need them"
        return self._hyperpod

    async def close(self) -> None:
        if self._hyperpod is not None:
            await self._hyperpod.close()
