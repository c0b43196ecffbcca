"""The whole examination, in the order in which things build on each other."""

from __future__ import annotations

import asyncio
import getpass
import logging
import os
import re
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from hyperpod_jlab.core.check import GROUPS, Check, CheckStep, Level
from hyperpod_jlab.core.config import LOCAL
from hyperpod_jlab.core.errors import USER_INFO, ConflictError, HyperpodError, InternalError
from hyperpod_jlab.features.doctor.aws import AtAws, StudioLooks, rights_steps, run_as_steps
from hyperpod_jlab.features.doctor.checks import (
    cluster_steps,
    first_steps,
    job_steps,
    lifecycle_steps,
    local_steps,
)
from hyperpod_jlab.features.doctor.models import Begun, Chain, Opened
from hyperpod_jlab.features.doctor.network import NetworkLooks, SubnetLooks
from hyperpod_jlab.features.doctor.storage import MountLooks, partition_steps


@dataclass(frozen=True)
class DoctorRequest:
    """What is to be examined.

    Attributes:
        cluster: Only the way to this cluster of the configuration; None: all.
        job: Whether a tiny job is sent at the end, to that cluster or the default one.
    """

    cluster: str | None = None
    job: bool = False


async def examine(
    asked: DoctorRequest | None = None, begun: Begun | None = None
) -> AsyncIterator[Check]:
    """All checks, each as soon as it is there. What stands on something that failed could not be checked, and says so.

    Args:
        asked: What is to be examined; default: all, without a job.
        begun: Told of each step that begins, so that somebody who waits can be shown for what.

    Raises:
        NotFoundError: There is no cluster of that name.
    """
    wanted = asked or DoctorRequest()
    opened, chain = Opened(), Chain(begun)
    try:
        async for check in chain.walk(first_steps(opened)):
            yield check
        if wanted.cluster is not None and opened.is_open:
            opened.hyperpod.engines.get(wanted.cluster)
        async for check in chain.walk(_steps(opened, wanted)):
            yield check
        if wanted.job:
            steps = job_steps(opened, wanted.cluster)
            chain.give(sum(step.seconds for step in steps))
            async for check in chain.walk(steps):
                yield check
    finally:
        await opened.close()


def _steps(opened: Opened, wanted: DoctorRequest) -> list[CheckStep]:
    """All but the first ones and the job."""
    only = wanted.cluster
    at_aws = AtAws(opened, only)
    network = NetworkLooks(at_aws)
    return [
        *(local_steps(opened) if only in {None, LOCAL} else ()),
        *lifecycle_steps(),
        *StudioLooks(at_aws).steps(),
        *rights_steps(at_aws),
        *run_as_steps(at_aws),
        *network.steps(),
        *SubnetLooks(at_aws, network).steps(),
        *MountLooks(opened, at_aws).steps(),
        *partition_steps(opened),
        *cluster_steps(opened, only),
    ]


# --------------------------------------------------------------------------------------------------
# Examinations for all who look: one at a time in this process, its checks shown as they come, the last one kept.

State = Literal["running", "done", "cancelled", "failed"]
"""It goes on; it came to its end, whatever it found; somebody ended it; it broke."""

Examine = Callable[[DoctorRequest, Callable[[CheckStep], None]], AsyncIterator[Check]]
"""Examines what is asked; tells of each step that begins."""

_LOG = logging.getLogger(__name__)


@dataclass
class Examination:
    """One examination.

    Attributes:
        number: Its number in this process, from 1.
        asked: What is examined.
        begun_at: When it began (Unix seconds).
        state: How it is.
        checks: The checks so far, in their order.
        step: The step that is looked at now.
        ended_at: When it ended (Unix seconds).
        problem: Why it broke.
        version: Grows with each change.
    """

    number: int
    asked: DoctorRequest
    begun_at: float
    state: State = "running"
    checks: list[Check] = field(default_factory=list)
    step: CheckStep | None = None
    ended_at: float | None = None
    problem: HyperpodError | None = None
    version: int = 0


class Examinations:
    """The examinations of this process; they need no configuration that can be read.

    Args:
        changed: Told of each change.
        make: Examines.
    """

    def __init__(self, changed: Callable[[Examination], None], make: Examine = examine) -> None:
        self._changed = changed
        self._make = make
        self._last: Examination | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def last(self) -> Examination | None:
        """The newest examination; None before the first."""
        return self._last

    def begin(self, asked: DoctorRequest) -> Examination:
        """Begin an examination; while the same goes on that one is meant.

        Raises:
            ConflictError: Another one goes on.
        """
        if self._last is not None and self._last.state == "running":
            if self._last.asked != asked:
                raise ConflictError(
                    "checks are already running",
                    code="examination_running",
                    hint="wait for their end, or stop them",
                )
            return self._last
        number = self._last.number + 1 if self._last else 1
        self._last = Examination(number, asked, time.time())
        self._task = asyncio.create_task(self._run(self._last), name="hyperpod-doctor")
        self._tell(self._last)
        return self._last

    async def cancel(self) -> Examination | None:
        """End the examination that goes on, if one does; what it found stays."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task})
        return self._last

    async def close(self) -> None:
        """End what goes on."""
        await self.cancel()

    async def _run(self, examination: Examination) -> None:
        def begun(step: CheckStep) -> None:
            examination.step = step
            self._tell(examination)

        state: State = "cancelled"
        try:
            checks = self._make(examination.asked, begun)
            async with aclosing(checks):  # type: ignore[type-var]
                async for check in checks:
                    examination.checks.append(check)
                    self._tell(examination)
            state = "done"
        except Exception as error:  # noqa: BLE001 - whoever looks is told, whatever it was
            state = "failed"
            _LOG.exception("the checks failed")
            examination.problem = (
                error
                if isinstance(error, HyperpodError)
                else InternalError("the checks failed", hint="the server's log has the details")
            )
        finally:
            examination.state, examination.step = state, None
            examination.ended_at = time.time()
            self._tell(examination)

    def _tell(self, examination: Examination) -> None:
        examination.version += 1
        self._changed(examination)


# --------------------------------------------------------------------------------------------------
# The examination as a report that a user can hand to an admin: every check, who has to do what, and no secret.

_HIDDEN = "[hidden]"

_SECRETS = (
    re.compile(r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}\b"),  # access keys of AWS
    re.compile(r"\bk8s-aws-v1\.[\w-]+"),  # tokens for EKS
    re.compile(r"\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*"),  # JSON web tokens
    USER_INFO,
    re.compile(r"(?i)\bBearer\s+[\w.~+/=-]{8,}"),
    re.compile(
        r"(?i)(?:password|passwd|secret|token|api[_-]?key|signature|credential)s?\s*[=:]\s*[^\s,;'\"]{4,}"
    ),
)
"""What looks like a secret, whoever printed it."""

_SECRET_NAME = re.compile(r"(?i)token|secret|passw|credential|api_?key|access_?key|jwt|private")
"""Names of variables whose values are secret."""

_HOMES = re.compile(r"(?<![\w.-])(/home|/Users)/([^/\s,;:'\"]+)")

_WORDS: dict[Level, str] = {
    "ok": "ok",
    "warn": "warning",
    "fail": "failed",
    "unknown": "could not be checked",
}


def report(checks: Sequence[Check], *, now: datetime | None = None) -> str:
    """The report, in Markdown.

    Account numbers, ARNs and ids of AWS stay: an admin needs them to find what is meant, and AWS does not count them as secrets. Whatever looks like
    a secret is hidden, as are values of this process's variables with names like ``TOKEN``, and the names of others' home folders.

    Args:
        checks: All checks.
        now: The time of the report; default: now.
    """
    when = (now or datetime.now(UTC)).strftime("%Y-%m-%d %H:%M UTC")
    lines = [
        "# Report of hpj doctor",
        "",
        f"{when}, {getpass.getuser()} (uid {os.getuid()}) on {socket.gethostname()}. "
        + ", ".join(_counts(checks))
        + ".",
        "",
        *_tasks("For the administrator", checks, "admin"),
        *_tasks("For the user", checks, "you"),
        "## All checks",
        "",
        *_table(checks),
        "Account ids and other AWS ids are included. Secrets and home folders of other users are not.",
    ]
    return redacted("\n".join(lines)) + "\n"


def redacted(text: str, environment: Mapping[str, str] | None = None) -> str:
    """A text without what looks like a secret.

    Args:
        text: The text.
        environment: Variables whose secret values are not to be in it; default: this process's.
    """
    for name, value in (os.environ if environment is None else environment).items():
        if _SECRET_NAME.search(name) and len(value) >= 8:
            text = text.replace(value, _HIDDEN)
    for pattern in _SECRETS:
        text = pattern.sub(_HIDDEN, text)
    home = str(Path.home())
    if home != "/":
        text = re.sub(rf"{re.escape(home)}(?![\w.-])", "~", text)
    return _HOMES.sub(rf"\1/{_HIDDEN}", text)


def _counts(checks: Sequence[Check]) -> Iterator[str]:
    for level, word in _WORDS.items():
        count = sum(check.level == level for check in checks)
        if count:
            yield f"{count} {word}"


def _tasks(title: str, checks: Iterable[Check], who: str) -> Iterator[str]:
    """What somebody has to do; what failed comes first."""
    order: tuple[Level, ...] = ("fail", "warn", "unknown")
    found = [one for level in order for one in checks if one.level == level and one.who == who]
    if not found:
        return
    yield f"## {title}"
    yield ""
    for number, one in enumerate(found, 1):
        yield f"{number}. **{one.name}** ({_WORDS[one.level]}): {_line(one.evidence)}"
        yield ""
        yield "   ```"
        yield from (f"   {line}" for line in (one.fix or "").splitlines())
        yield "   ```"
        yield ""


def _table(checks: Sequence[Check]) -> Iterator[str]:
    for group, title in GROUPS.items():
        found = [check for check in checks if check.group == group]
        if not found:
            continue
        yield f"### {title}"
        yield ""
        yield "| check | how it is | evidence |"
        yield "| --- | --- | --- |"
        for one in found:
            evidence = _line(one.evidence).replace("|", "\\|")
            yield f"| {one.name} | {_WORDS[one.level]} | {evidence} |"
        yield ""


def _line(text: str) -> str:
    return " ".join(text.split())
