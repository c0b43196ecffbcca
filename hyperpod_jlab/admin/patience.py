"""Asking AWS with patience: a wiring of hundreds of profiles is no reason to give up because AWS has too many calls or fails for half a minute."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from hyperpod_jlab.aws.clusters import list_tags
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.model.errors import HyperpodError, UnreachableError

T = TypeVar("T")

LONGEST = 120.0
"""Seconds for which one call is tried again, beyond the tries of botocore."""

FIRST, MOST = 0.5, 15.0
"""The first pause before a call is tried again, and the longest; each is twice the one before, less up to a half at random."""

_FAILING = frozenset(
    {
        "InternalError",
        "InternalFailure",
        "InternalServerError",
        "InternalServiceError",
        "RequestTimeout",
        "ServiceUnavailable",
        "ServiceUnavailableException",
        "Unavailable",
    }
)
"""AWS' words for a fault of its own that passes."""


class PatientAws:
    """AWS, asked again where it has too many calls or fails for a while. When it has too many, all that ask through this wait.

    Only calls that may be made twice go through it.

    Args:
        aws: AWS in a region.
    """

    def __init__(self, aws: Aws) -> None:
        self._aws = aws
        self._answered: set[str] = set()
        self._not_before = 0.0

    async def call(self, service: str, operation: str, **given: Any) -> dict[str, Any]:
        """Call an operation.

        Raises:
            HyperpodError: See `aws.errors`.
        """
        return await self.again(service, lambda: self._aws.call(service, operation, **given))

    async def tags(self, arn: str) -> dict[str, str]:
        """The tags of something of SageMaker.

        Raises:
            HyperpodError: See `aws.errors`.
        """
        return await self.again("sagemaker", lambda: list_tags(self._aws, arn))

    async def listed(
        self, service: str, operation: str, member: str, **given: Any
    ) -> list[dict[str, Any]]:
        """All of a list; where a page fails it is begun anew.

        Raises:
            HyperpodError: See `aws.errors`.
        """

        async def ask() -> list[dict[str, Any]]:
            pages = self._aws.pages(service, operation, **given)
            return [one async for page in pages for one in page.get(member) or ()]

        return await self.again(service, ask)

    async def again(self, service: str, ask: Callable[[], Awaitable[T]]) -> T:
        """Ask until there is an answer, or one that will not change.

        Args:
            service: The service by boto3's name. One that has never answered is not waited for where it cannot be reached at all.
            ask: Asks once, from the beginning.

        Raises:
            HyperpodError: See `aws.errors`.
        """
        deadline, pause = time.monotonic() + LONGEST, FIRST
        while True:
            await asyncio.sleep(max(0.0, self._not_before - time.monotonic()))
            try:
                found = await ask()
            except UnreachableError as error:
                if not self._passes(service, error) or time.monotonic() > deadline:
                    raise
                wait = pause * random.uniform(0.5, 1)  # noqa: S311 - no secret
                pause = min(2 * pause, MOST)
                if error.code == "aws_throttled":
                    self._not_before = max(self._not_before, time.monotonic() + wait)
                else:
                    await asyncio.sleep(wait)
            else:
                self._answered.add(service)
                return found

    def _passes(self, service: str, error: UnreachableError) -> bool:
        if error.code == "aws_unreachable":
            return service in self._answered
        return passes(error)


def is_in_use(error: HyperpodError | None) -> bool:
    """Whether somebody else is at work on it, or uses it."""
    codes = {"ResourceInUse", "ConflictException"}
    return error is not None and (error.detail or {}).get("aws_code") in codes


def passes(error: UnreachableError) -> bool:
    """Whether AWS has too many calls, or a fault of its own."""
    code = str((error.detail or {}).get("aws_code", ""))
    return error.code == "aws_throttled" or code in _FAILING or (code.isdigit() and code >= "500")
