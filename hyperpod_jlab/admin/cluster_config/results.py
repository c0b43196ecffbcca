"""The results of checks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hyperpod_jlab.core.wire import Wire, wire_property

Level = Literal["ok", "warning", "error", "unknown"]
"""``unknown``: it could not be checked, and the message says why."""


@dataclass(frozen=True)
class RuleResult:
    """One result of a check.

    Attributes:
        check: The check, one of `checks.CHECKS`; rules leave it empty.
        level: The result.
        message: What was found: a sentence.
        hint: How to fix it.
        path: Where in the files, such as ``InstanceGroups[0].InstanceType``; places in the second file begin with its name.
    """

    check: str
    level: Level
    message: str
    hint: str | None = None
    path: str | None = None


def error(message: str, path: str | None = None, hint: str | None = None) -> RuleResult:
    """A problem that prevents creating the cluster, or breaks it."""
    return RuleResult("", "error", message, hint, path)


def warning(message: str, path: str | None = None, hint: str | None = None) -> RuleResult:
    """A problem that does not prevent creating the cluster."""
    return RuleResult("", "warning", message, hint, path)


def unknown(message: str, path: str | None = None) -> RuleResult:
    """Something that could not be checked."""
    return RuleResult("", "unknown", message, None, path)


@dataclass(frozen=True)
class Report(Wire):
    """The results of all checks, in order."""

    checks: tuple[RuleResult, ...]

    def with_level(self, level: str) -> list[RuleResult]:
        """The results of a level."""
        return [rule_result for rule_result in self.checks if rule_result.level == level]

    @property
    @wire_property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.with_level("error")
