"""What an operation gets, and what a service is: its operations by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from testbed.aws.state import Account, Caller


@dataclass(frozen=True)
class Request:
    """A request that the model lets pass.

    Attributes:
        account: The account.
        region: The region that the request was signed for.
        caller: Who signed it.
        given: The operation's input; times are numbers.
    """

    account: Account
    region: str
    caller: Caller
    given: dict[str, Any]


@dataclass(frozen=True)
class Resource:
    """What an action is done to: a name for `Faults.deny` (None: nothing single), how IAM names it, and what else it is done to."""

    name: str | None
    arn: str
    also: tuple[str, ...] = ()


@dataclass(frozen=True)
class Service:
    """A service: botocore's name for it, what its actions are called in IAM, its operations, and what they are done to."""

    name: str
    operations: Mapping[str, Callable[[Request], dict[str, Any]]]
    resource: Callable[[Request], Resource]
    rights: Mapping[str, str] = field(default_factory=dict)
    """What IAM calls operations by another name than the service."""

    besides: Mapping[str, Callable[[Request], Iterable[tuple[str, Resource]]]] = field(default_factory=dict)
    """What operations need the right to besides: other actions, with what they are done to."""

    def action(self, operation: str) -> str:
        """What IAM calls an operation."""
        return self.rights.get(operation, f"{self.name}:{operation}")
