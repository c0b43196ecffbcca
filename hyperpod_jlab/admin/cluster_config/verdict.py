"""What a check says: well, well enough, wrong, or not to be known from here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from hyperpod_jlab.core.errors import HyperpodError, NotFoundError

Level = Literal["ok", "warning", "error", "unknown"]
"""``unknown``: it could not be checked, and the message says why."""

CHECKS = {
    "files": "The files",
    "schema": "Members and values",
    "groups": "Instance groups",
    "scripts": "Life cycle scripts",
    "storage": "File systems and volumes",
    "network": "Network",
    "capacity": "Instance types and quotas",
    "role": "Execution roles",
    "cluster": "The cluster's name",
    "eks": "The EKS cluster",
}
"""Checks in their order, with their titles."""


@dataclass(frozen=True)
class Verdict:
    """One thing that a check says.

    Attributes:
        check: Which check, by a word of `CHECKS`.
        level: How it is.
        message: What was seen: a sentence.
        hint: What to do about it.
        path: Where in the files, such as ``InstanceGroups[0].InstanceType``; what is of the second file begins with its name.
    """

    check: str
    level: Level
    message: str
    hint: str | None = None
    path: str | None = None


def wrong(check: str, message: str, path: str | None = None, hint: str | None = None) -> Verdict:
    """Something that keeps the cluster from being made, or from working."""
    return Verdict(check, "error", message, hint, path)


def doubtful(check: str, message: str, path: str | None = None, hint: str | None = None) -> Verdict:
    """Something to know that keeps nobody from going on."""
    return Verdict(check, "warning", message, hint, path)


def well(check: str, message: str) -> Verdict:
    """A check that found nothing."""
    return Verdict(check, "ok", message)


def of_error(check: str, error: HyperpodError, path: str | None = None) -> Verdict:
    """What is to be said where AWS could not be asked: what is not there is wrong, everything else is not known."""
    if isinstance(error, NotFoundError):
        return wrong(check, error.message, path, error.hint)
    return Verdict(check, "unknown", f"could not be checked: {error.message}", error.hint, path)


def in_order(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """All of them, by check; none is dropped, whatever the others say."""
    order = list(CHECKS)
    return sorted(verdicts, key=lambda one: order.index(one.check))
