"""Checks of ``hpj doctor``: what is checked, the result, and who can fix it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from hyperpod_jlab.core.errors import HyperpodError
from hyperpod_jlab.core.wire import Wire, wire_property

Level = Literal["ok", "warn", "fail", "unknown"]
"""How it is: well; well enough, with something to know; not well; could not be checked."""

Responsible = Literal["you", "admin"]
"""Who can fix it: the user, or the administrator of the account and the clusters."""

Group = Literal[
    "installation",
    "metadata",
    "role",
    "domain",
    "security-groups",
    "interfaces",
    "mount",
    "partition",
    "scheduler",
    "identity",
    "queue",
    "job",
]
"""The places on the way, in its order."""

GROUPS: dict[Group, str] = {
    "installation": "This installation",
    "metadata": "Studio's metadata",
    "role": "IAM role",
    "domain": "The domain and the HyperPod clusters",
    "security-groups": "Security groups",
    "interfaces": "Network interfaces",
    "mount": "Mounted file systems",
    "partition": "Permissions of the storage partition",
    "scheduler": "The controller or API server",
    "identity": "Identity on the cluster",
    "queue": "Queues",
    "job": "Test job",
}
"""The groups in order, with their headings."""


@dataclass(frozen=True)
class CheckResult:
    """What a look found.

    Attributes:
        level: How it is.
        evidence: What was seen, or why it could not be looked at: a sentence.
        fix: What to do about it: a sentence or a command; None where nothing is to be done.
        who: Who can do that; None where nothing is to be done.
    """

    level: Level
    evidence: str
    fix: str | None = None
    who: Responsible | None = None


@dataclass(frozen=True)
class Check(Wire):
    """One check.

    Attributes:
        key: A stable word for it, such as ``security-groups``.
        about: What of it was looked at where there are several: a cluster's name, say. Key and this are the check's identity.
        title: Its name for people.
        group: Where on the way it stands.
        level: How it is.
        evidence: What was seen, or why it could not be looked at.
        fix: What to do about it; None where nothing is to be done.
        who: Who can do that; None where nothing is to be done.
    """

    key: str
    title: str
    group: Group
    level: Level
    evidence: str
    fix: str | None = None
    who: Responsible | None = None
    about: str | None = None

    @property
    @wire_property
    def name(self) -> str:
        """Its title, with what it is about."""
        return f"{self.title} {self.about}" if self.about else self.title


_UNAVAILABLE_CODES = frozenset({"aws_failed", "aws_throttled", "aws_unreachable", "boto3_too_old"})
"""Codes of errors after which nothing is known of what AWS was asked for."""

TIMEOUT_S = 30.0
"""Seconds that a step has, unless it says otherwise."""


@dataclass(frozen=True)
class CheckStep:
    """A step of the chain.

    Attributes:
        key: A stable word for it.
        title: Its name for people.
        group: Where on the way it stands.
        look: Looks; None: there is nothing to look at here, and nothing to say.
        needs: The steps (`ident`) without which it cannot be looked at: it is not, once one of them has failed or is unknown.
        about: What of it is looked at where there are several.
        seconds: How long that may take.
    """

    key: str
    title: str
    group: Group
    look: Callable[[], Awaitable[CheckResult | None]]
    needs: tuple[str, ...] = ()
    about: str | None = None
    seconds: float = TIMEOUT_S

    @property
    def ident(self) -> str:
        """What other steps call it by: the key, and behind a colon what it is about."""
        return f"{self.key}:{self.about}" if self.about else self.key

    @property
    def name(self) -> str:
        """Its title, with what it is about."""
        return f"{self.title} {self.about}" if self.about else self.title

    def to_check(self, result: CheckResult) -> Check:
        """The check with a result."""
        return Check(
            key=self.key,
            title=self.title,
            group=self.group,
            level=result.level,
            evidence=result.evidence,
            fix=result.fix,
            who=result.who,
            about=self.about,
        )


def ok(evidence: str) -> CheckResult:
    """The check passed."""
    return CheckResult("ok", evidence)


def warn(evidence: str, fix: str | None = None, who: Responsible = "you") -> CheckResult:
    """The check passed with a warning."""
    return CheckResult("warn", evidence, fix, who if fix else None)


def fail(evidence: str, fix: str | None = None, who: Responsible = "you") -> CheckResult:
    """The check failed."""
    return CheckResult("fail", evidence, fix, who if fix else None)


def unknown(evidence: str, fix: str | None = None, who: Responsible = "you") -> CheckResult:
    """The check could not be done."""
    return CheckResult("unknown", evidence, fix, who if fix else None)


def from_error(
    error: HyperpodError, level: Level = "fail", who: Responsible = "you"
) -> CheckResult:
    """What a look found that ended with an error. A right that AWS or a cluster does not grant leaves it unknown, and is an admin's to grant.

    Args:
        error: The error.
        level: How it is with any other error.
        who: Who can mend any other one.
    """
    if error.code == "missing_right":
        return unknown(error.message, error.hint, "admin")
    if error.code in _UNAVAILABLE_CODES:
        return unknown(error.message, error.hint, "admin")
    return CheckResult(level, error.message, error.hint, who if error.hint else None)
