"""Checks of ``hpj doctor``: what is checked, the result, and who can fix a failure."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from hyperpod_jlab.core.errors import HyperpodError
from hyperpod_jlab.core.wire import Wire, wire_property

Level = Literal["ok", "warn", "fail", "unknown"]
"""The result: passed; passed with a warning; failed; could not be checked."""

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
    "nodes",
    "job",
    "facts",
]
"""The layers from this machine to the cluster, in order."""

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
    "nodes": "Nodes",
    "job": "Test job",
    "facts": "Assumptions about AWS",
}
"""The groups in order, with their headings."""

Stage = Literal["jupyterlab", "aws", "network", "file-system", "scheduler", "nodes"]
"""The stages of a run's path, in order."""

STAGES: dict[Stage, tuple[Group, ...]] = {
    "jupyterlab": ("installation", "metadata"),
    "aws": ("role", "domain", "facts"),
    "network": ("security-groups", "interfaces"),
    "file-system": ("mount", "partition"),
    "scheduler": ("scheduler", "identity", "queue"),
    "nodes": ("nodes", "job"),
}
"""The groups of each stage."""

_STAGE_OF: dict[Group, Stage] = {group: stage for stage, groups in STAGES.items() for group in groups}


@dataclass(frozen=True)
class CheckResult:
    """The result of a check.

    Attributes:
        level: The result.
        evidence: What was found, or why it could not be checked: a sentence.
        fix: How to fix it: a sentence or a command; None if nothing needs fixing.
        who: Who can fix it; None if nothing needs fixing.
    """

    level: Level
    evidence: str
    fix: str | None = None
    who: Responsible | None = None


@dataclass(frozen=True)
class Check(Wire):
    """One check.

    Attributes:
        key: A stable identifier, such as ``security-groups``.
        about: The object that was checked if there are several, such as a cluster's name. `key` and `about` identify the check.
        title: Its display name.
        group: Its layer.
        level: The result.
        evidence: What was found, or why it could not be checked.
        fix: How to fix it; None if nothing needs fixing.
        who: Who can fix it; None if nothing needs fixing.
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
        """Its title, with the object that was checked."""
        return f"{self.title} {self.about}" if self.about else self.title

    @property
    @wire_property
    def stage(self) -> Stage:
        """Its stage of a run's path."""
        return _STAGE_OF[self.group]


_SEVERITY: tuple[Level, ...] = ("ok", "warn", "unknown", "fail")


@dataclass(frozen=True)
class StageResult:
    """The results of one stage of a run's path.

    Attributes:
        stage: The stage.
        level: The worst result of its checks; None: it has none.
        checks: Number of its checks.
        problems: Number of its checks that are not ok.
        broken: Whether the path breaks here: the first stage that failed, or if none failed, the first that could not be checked.
    """

    stage: Stage
    level: Level | None
    checks: int
    problems: int
    broken: bool


def path_of(checks: Sequence[Check]) -> tuple[StageResult, ...]:
    """The path of a run, with the results of its stages, in order."""
    levels = {stage: [check.level for check in checks if check.stage == stage] for stage in STAGES}
    broken = next((stage for level in ("fail", "unknown") for stage, found in levels.items() if level in found), None)
    return tuple(
        StageResult(
            stage,
            max(found, key=_SEVERITY.index, default=None),
            len(found),
            sum(level != "ok" for level in found),
            stage == broken,
        )
        for stage, found in levels.items()
    )


_UNAVAILABLE_CODES = frozenset({"aws_failed", "aws_throttled", "aws_unreachable", "boto3_too_old"})
"""Error codes that leave the result of a request to AWS unknown."""

TIMEOUT_S = 30.0
"""Default timeout of a step, in seconds."""


@dataclass(frozen=True)
class CheckStep:
    """A step of the diagnostic chain.

    Attributes:
        key: A stable identifier.
        title: Its display name.
        group: Its layer.
        look: Runs the check; None: not applicable, no result.
        needs: The steps (`ident`) it depends on: it is skipped if one of them failed or is unknown.
        about: The object to check if there are several.
        seconds: Its timeout.
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
        """The name in other steps' `needs`: the key, and after a colon the object."""
        return f"{self.key}:{self.about}" if self.about else self.key

    @property
    def name(self) -> str:
        """Its title, with the object that is checked."""
        return f"{self.title} {self.about}" if self.about else self.title

    @property
    def stage(self) -> Stage:
        """Its stage of a run's path."""
        return _STAGE_OF[self.group]

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


def from_error(error: HyperpodError, level: Level = "fail", who: Responsible = "you") -> CheckResult:
    """The result of a check that raised an error. A missing permission in AWS or a cluster leaves it unknown, and an admin can grant it.

    Args:
        error: The error.
        level: The level for any other error.
        who: Who can fix any other error.
    """
    if error.code == "missing_right":
        return unknown(error.message, error.hint, "admin")
    if error.code in _UNAVAILABLE_CODES:
        return unknown(error.message, error.hint, "admin")
    return CheckResult(level, error.message, error.hint, who if error.hint else None)
