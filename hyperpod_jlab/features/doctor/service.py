"""A diagnostic run: all checks in dependency order."""

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
from importlib import import_module
from pathlib import Path
from typing import Literal

from hyperpod_jlab import contributions
from hyperpod_jlab.core.check import GROUPS, Check, CheckStep, Level
from hyperpod_jlab.core.config import LOCAL
from hyperpod_jlab.core.errors import USER_INFO, ConflictError, HyperpodError, InternalError
from hyperpod_jlab.features.doctor.aws import AwsEnvironment, StudioChecks, rights_steps, run_as_steps
from hyperpod_jlab.features.doctor.checks import cluster_steps, first_steps, job_steps, lifecycle_steps, local_steps
from hyperpod_jlab.features.doctor.models import CheckChain, LazyServices, OnStep
from hyperpod_jlab.features.doctor.network import NetworkChecks, SubnetChecks
from hyperpod_jlab.features.doctor.storage import MountChecks, partition_steps


@dataclass(frozen=True)
class DoctorRequest:
    """What to check.

    Attributes:
        cluster: Only this configured cluster; None: all.
        job: Whether to submit a small job at the end, to that cluster or the default one.
        aws: Whether to check what this project assumes about AWS (docs/unverified.md).
    """

    cluster: str | None = None
    job: bool = False
    aws: bool = False


async def examine(request: DoctorRequest | None = None, on_step: OnStep | None = None) -> AsyncIterator[Check]:
    """All checks, each as soon as it is done. Dependents of a failed check are reported as not checked.

    Args:
        request: What to check; default: everything, without a job.
        on_step: Called with each step that starts, to show progress.

    Raises:
        NotFoundError: There is no cluster of that name.
    """
    actual_request = request or DoctorRequest()
    services, chain = LazyServices(), CheckChain(on_step)
    try:
        async for check in chain.run_steps(first_steps(services)):
            yield check
        if actual_request.cluster is not None and services.is_open:
            services.hyperpod.engines.get(actual_request.cluster)
        async for check in chain.run_steps(_steps(services, actual_request)):
            yield check
        if actual_request.aws:
            steps = _fact_steps()
            chain.extend_deadline(sum(step.seconds for step in steps))
            async for check in chain.run_steps(steps):
                yield check
        if actual_request.job:
            steps = job_steps(services, actual_request.cluster)
            chain.extend_deadline(sum(step.seconds for step in steps))
            async for check in chain.run_steps(steps):
                yield check
    finally:
        await services.close()


def _steps(services: LazyServices, request: DoctorRequest) -> list[CheckStep]:
    """All steps but the first ones and the job."""
    only_cluster = request.cluster
    environment = AwsEnvironment(services, only_cluster)
    network = NetworkChecks(environment)
    return [
        *(local_steps(services) if only_cluster in {None, LOCAL} else ()),
        *lifecycle_steps(),
        *StudioChecks(environment).steps(),
        *rights_steps(environment),
        *run_as_steps(environment),
        *network.steps(),
        *SubnetChecks(environment, network).steps(),
        *MountChecks(services, environment).steps(),
        *partition_steps(services),
        *cluster_steps(services, only_cluster),
    ]


def _fact_steps() -> list[CheckStep]:
    """The checks of what the folders assume about AWS."""
    found: list[CheckStep] = []
    for name in contributions.checks():
        module, _, function = name.partition(":")
        found += getattr(import_module(module), function)()
    return found


# --------------------------------------------------------------------------------------------------
# Diagnostic runs for all clients: one at a time per process; results are visible at once, and the
# last run is kept.

State = Literal["running", "done", "cancelled", "failed"]
"""In progress; completed, whatever the results; cancelled; failed."""

Examine = Callable[[DoctorRequest, Callable[[CheckStep], None]], AsyncIterator[Check]]
"""Runs the checks; reports each step that starts."""

_LOG = logging.getLogger(__name__)


@dataclass
class Examination:
    """One diagnostic run.

    Attributes:
        number: Its number in this process, from 1.
        request: What it checks.
        begun_at: When it started (Unix seconds).
        state: Its state.
        checks: The checks so far, in order.
        step: The step in progress.
        ended_at: When it ended (Unix seconds).
        problem: Why it failed.
        version: Increases with each change.
    """

    number: int
    request: DoctorRequest
    begun_at: float
    state: State = "running"
    checks: list[Check] = field(default_factory=list)
    step: CheckStep | None = None
    ended_at: float | None = None
    problem: HyperpodError | None = None
    version: int = 0


class Examinations:
    """The diagnostic runs of this process; they need no valid configuration.

    Args:
        on_change: Called on each change.
        make: Runs the checks.
    """

    def __init__(self, on_change: Callable[[Examination], None], make: Examine = examine) -> None:
        self._on_change = on_change
        self._make = make
        self._last: Examination | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def last(self) -> Examination | None:
        """The newest diagnostic run; None before the first."""
        return self._last

    def begin(self, request: DoctorRequest) -> Examination:
        """Start a diagnostic run; if the same one is in progress, returns that.

        Raises:
            ConflictError: Another one is in progress.
        """
        if self._last is not None and self._last.state == "running":
            if self._last.request != request:
                raise ConflictError(
                    "checks are already running", code="examination_running", hint="wait for their end, or stop them"
                )
            return self._last
        number = self._last.number + 1 if self._last else 1
        self._last = Examination(number, request, time.time())
        self._task = asyncio.create_task(self._run(self._last), name="hyperpod-doctor")
        self._notify(self._last)
        return self._last

    async def cancel(self) -> Examination | None:
        """Cancel the diagnostic run in progress, if any; its results stay."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task})
        return self._last

    async def close(self) -> None:
        await self.cancel()

    async def _run(self, examination: Examination) -> None:
        def begun(step: CheckStep) -> None:
            examination.step = step
            self._notify(examination)

        state: State = "cancelled"
        try:
            checks = self._make(examination.request, begun)
            async with aclosing(checks):  # type: ignore[type-var]
                async for check in checks:
                    examination.checks.append(check)
                    self._notify(examination)
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
            self._notify(examination)

    def _notify(self, examination: Examination) -> None:
        examination.version += 1
        self._on_change(examination)


# --------------------------------------------------------------------------------------------------
# The report for an admin: every check, who has to do what, and no secrets.

_REDACTED = "[hidden]"

_SECRETS = (
    re.compile(r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}\b"),  # AWS access keys
    re.compile(r"\bk8s-aws-v1\.[\w-]+"),  # tokens for EKS
    re.compile(r"\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*"),  # JSON web tokens
    USER_INFO,
    re.compile(r"(?i)\bBearer\s+[\w.~+/=-]{8,}"),
    re.compile(r"(?i)(?:password|passwd|secret|token|api[_-]?key|signature|credential)s?\s*[=:]\s*[^\s,;'\"]{4,}"),
)
"""Patterns of secrets in any output."""

_SECRET_NAME = re.compile(r"(?i)token|secret|passw|credential|api_?key|access_?key|jwt|private")
"""Names of variables whose values are secret."""

_HOME_PATHS = re.compile(r"(?<![\w.-])(/home|/Users)/([^/\s,;:'\"]+)")

_LEVEL_LABELS: dict[Level, str] = {"ok": "ok", "warn": "warning", "fail": "failed", "unknown": "could not be checked"}


def report(checks: Sequence[Check], *, now: datetime | None = None) -> str:
    """The report, in Markdown.

    Account numbers, ARNs and AWS ids stay: an admin needs them, and AWS does not consider them secret. Hidden are: anything that looks like
    a secret, values of this process's variables with names like ``TOKEN``, and the names of others' home folders.

    Args:
        checks: All checks.
        now: The time of the report; default: now.
    """
    created_at = (now or datetime.now(UTC)).strftime("%Y-%m-%d %H:%M UTC")
    lines = [
        "# Report of hpj doctor",
        "",
        f"{created_at}, {getpass.getuser()} (uid {os.getuid()}) on {socket.gethostname()}. "
        + ", ".join(_count_lines(checks))
        + ".",
        "",
        *_tasks("For the administrator", checks, "admin"),
        *_tasks("For the user", checks, "you"),
        "## All checks",
        "",
        *_table(checks),
        "Account ids and other AWS ids are included. Secrets and home folders of other users are not.",
    ]
    return redact("\n".join(lines)) + "\n"


def redact(text: str, environment: Mapping[str, str] | None = None) -> str:
    """Remove secrets from a text.

    Args:
        text: The text.
        environment: Variables whose secret values are removed; default: this process's.
    """
    for name, value in (os.environ if environment is None else environment).items():
        if _SECRET_NAME.search(name) and len(value) >= 8:
            text = text.replace(value, _REDACTED)
    for pattern in _SECRETS:
        text = pattern.sub(_REDACTED, text)
    home = str(Path.home())
    if home != "/":
        text = re.sub(rf"{re.escape(home)}(?![\w.-])", "~", text)
    return _HOME_PATHS.sub(rf"\1/{_REDACTED}", text)


def _count_lines(checks: Sequence[Check]) -> Iterator[str]:
    for level, label in _LEVEL_LABELS.items():
        count = sum(check.level == level for check in checks)
        if count:
            yield f"{count} {label}"


def _tasks(title: str, checks: Iterable[Check], responsible: str) -> Iterator[str]:
    """The tasks of one person; failures come first."""
    levels: tuple[Level, ...] = ("fail", "warn", "unknown")
    selected = [check for level in levels for check in checks if check.level == level and check.who == responsible]
    if not selected:
        return
    yield f"## {title}"
    yield ""
    for number, check in enumerate(selected, 1):
        yield f"{number}. **{check.name}** ({_LEVEL_LABELS[check.level]}): {_line(check.evidence)}"
        yield ""
        yield "   ```"
        yield from (f"   {line}" for line in (check.fix or "").splitlines())
        yield "   ```"
        yield ""


def _table(checks: Sequence[Check]) -> Iterator[str]:
    for group, title in GROUPS.items():
        selected = [check for check in checks if check.group == group]
        if not selected:
            continue
        yield f"### {title}"
        yield ""
        yield "| check | how it is | evidence |"
        yield "| --- | --- | --- |"
        for item in selected:
            evidence = _line(item.evidence).replace("|", "\\|")
            yield f"| {item.name} | {_LEVEL_LABELS[item.level]} | {evidence} |"
        yield ""


def _line(text: str) -> str:
    return " ".join(text.split())
