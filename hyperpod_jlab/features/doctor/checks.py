"""Steps on this installation: versions, configuration, and what the local cluster needs."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import platform
import secrets
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from hyperpod_jlab.clusters.configuration import config_files
from hyperpod_jlab.core.check import CheckResult, CheckStep, fail, of_error, ok, warn
from hyperpod_jlab.core.config import LOCAL
from hyperpod_jlab.core.errors import HyperpodError, StorageError
from hyperpod_jlab.core.run_id import new_run_id
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.engines.local.board import default_folder
from hyperpod_jlab.engines.local.preflight import interpreter
from hyperpod_jlab.features.doctor.models import CONFIGURATION, Opened
from hyperpod_jlab.features.doctor.storage import STORAGE
from hyperpod_jlab.logs.service import LogRequest
from hyperpod_jlab.run.services import Hyperpod
from hyperpod_jlab.run.submit import Request
from hyperpod_jlab.storage.bundle import withdraw
from hyperpod_jlab.storage.lifecycle_files import lifecycle_folders, read_status

_PACKAGES = ("hyperpod_jlab", "pydantic", "click", "jupyter_server", "jupyterlab", "boto3")


def first_steps(opened: Opened) -> list[CheckStep]:
    """What needs nothing; the configuration is read in its last step."""
    return [
        CheckStep("versions", "versions", "installation", _versions),
        CheckStep("config-files", "config files", "installation", _config_files),
        CheckStep(CONFIGURATION, "configuration", "installation", opened.open),
    ]


def local_steps(opened: Opened) -> list[CheckStep]:
    """What the local cluster needs."""

    async def board() -> CheckResult:
        return await asyncio.to_thread(_board)

    async def python() -> CheckResult:
        configured = opened.hyperpod.settings.clusters[LOCAL].python
        return await asyncio.to_thread(_python, configured or sys.executable)

    return [
        CheckStep("local-board", "local queue", "installation", board),
        CheckStep("local-python", "local python", "installation", python, needs=(CONFIGURATION,)),
    ]


async def _versions() -> CheckResult:
    found = [f"Python {platform.python_version()}"]
    for package in _PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue  # the command line works without Jupyter, and without AWS
    return ok(", ".join(found))


async def _config_files() -> CheckResult:
    used = [str(path) for path in config_files() if path.exists()]
    if used:
        return ok(", ".join(used))
    looked = ", ".join(map(str, config_files()))
    return ok(f"none, defaults are used (looked for {looked})")


def _board() -> CheckResult:
    """The local cluster keeps its board with flock, which some network file systems lack."""
    try:
        folder = default_folder()
    except HyperpodError as error:
        return of_error(error)
    path = folder / f".doctor-{secrets.token_hex(6)}"
    try:
        with path.open("x") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return fail(
            f"file locks do not work in {folder}: {error.strerror}",
            "set XDG_STATE_HOME to a folder on this machine's own disk",
        )
    finally:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
    return ok(f"{folder}, file locks work")


def _python(python: str) -> CheckResult:
    found = interpreter(python)
    words = f"{python} ({found.version[0]}.{found.version[1]})"
    if not found.torch:
        return warn(f"{words} has no torch, which torchrun needs", f"{python} -m pip install torch")
    return ok(f"{words} with torch")


# --------------------------------------------------------------------------------------------------
# Steps on each cluster of the configuration: those of its engine, and whether it can be seen as a whole.


def cluster_steps(opened: Opened, only: str | None = None) -> list[CheckStep]:
    """The configured clusters; none where the configuration cannot be read.

    Args:
        opened: The services.
        only: The one cluster that matters; None: all.
    """
    if not opened.is_open:
        return []
    names = [name for name in opened.hyperpod.settings.clusters if only in {None, name}]
    return [step for name in names for step in _steps(opened, name)]


def _steps(opened: Opened, name: str) -> list[CheckStep]:
    try:
        checkup = opened.hyperpod.engines.get(name).checkup
    except HyperpodError as error:
        return [CheckStep("cluster", "cluster", "scheduler", _failed(error), (), name)]
    steps = checkup.steps() if checkup is not None else []
    needs = (CONFIGURATION, *(one.ident for one in steps[:2] if one.group == "scheduler"))
    return [
        *steps,
        CheckStep("cluster", "cluster", "scheduler", _answers(opened, name), needs, name),
    ]


def _failed(error: HyperpodError) -> Callable[[], Awaitable[CheckResult]]:
    async def told() -> CheckResult:
        return of_error(error)

    return told


def _answers(opened: Opened, name: str) -> Callable[[], Awaitable[CheckResult]]:
    async def told() -> CheckResult:
        cluster = await opened.hyperpod.clusters.one(name)
        if cluster.state in {"unreachable", "misconfigured"}:
            fix = "check it under [clusters] in the configuration"
            return fail(cluster.reason or "does not answer", fix)
        running = f", {cluster.running} running" if cluster.running is not None else ""
        return ok(f"{cluster.orchestrator}, {cluster.state}{running}")

    return told


# --------------------------------------------------------------------------------------------------
# The last step: a real job that says a word, whose word is waited for in its log; then it is cancelled and all of it removed.

TIMEOUT = 180.0
"""Seconds in which its word has to come."""

_LIMIT = "10m"
"""Its time limit, should nobody be left to cancel it."""

_ENDING, _CLEANING = 30.0, 45.0
"""Seconds in which a cancelled one has to end, and all is to be removed."""


def job_steps(opened: Opened, only: str | None) -> list[CheckStep]:
    """The job on one cluster, or on the default one."""
    if not opened.is_open:
        return []
    name = only or opened.hyperpod.settings.default_cluster
    needs = (STORAGE, f"cluster:{name}", f"queue:{name}", f"rights-there:{name}")
    seconds = TIMEOUT + _CLEANING + 30
    return [CheckStep("job", "test job on", "job", _look(opened, name), needs, name, seconds)]


def _look(opened: Opened, name: str) -> Callable[[], Awaitable[CheckResult]]:
    async def told() -> CheckResult:
        return await _TinyJob(opened.hyperpod, name).told()

    return told


class _TinyJob:
    def __init__(self, hyperpod: Hyperpod, cluster: str) -> None:
        self._hyperpod = hyperpod
        self._cluster = cluster
        self._run_id = new_run_id()
        self._word = f"hpj-doctor-{secrets.token_hex(4)}"
        self._last: list[str] = []

    async def told(self) -> CheckResult:
        # It stays until it is cancelled: so its log is read while it runs, and nothing of it is left at the scheduler.
        command = f"echo {self._word} $(hostname) $(id -u); sleep 600"
        spec = JobSpec.model_validate(
            {
                "name": "doctor",
                "source": {"kind": "command", "command": command},
                "files": {"project": False},
                "resources": {"nodes": 1, "cpus": 1},
                "time_limit": _LIMIT,
                "stop_grace": 2,
            }
        )
        request = Request(spec, cluster=self._cluster, run_id=self._run_id, base=Path("/"))
        begin = time.monotonic()
        try:
            await self._hyperpod.submitter.submit(request)
            words = await self._heard()
            found = await self._judged(words, time.monotonic() - begin)
        finally:
            problem = await self._clean()
        if problem is not None:
            fix = f"hpj cancel {self._run_id}; hpj clean --older 0s"
            return warn(f"{found.evidence}; it could not be removed: {problem}", fix)
        return found

    async def _heard(self) -> Sequence[str] | None:
        """What stands behind the word in the log; None where it did not come."""
        request = LogRequest(self._run_id, follow=True)
        with contextlib.suppress(TimeoutError):
            async with (
                asyncio.timeout(TIMEOUT),
                aclosing(self._hyperpod.logs.lines(request)) as log,
            ):
                async for batch in log:
                    for line in batch:
                        if self._word in line.line:
                            return line.line.partition(self._word)[2].split()
                        self._last = [*self._last[-4:], line.line]
        return None

    async def _judged(self, words: Sequence[str] | None, seconds: float) -> CheckResult:
        if words is not None:
            host, uid = (*words, "?", "?")[:2]
            same = "" if uid == str(os.getuid()) else f", uid {os.getuid()} here"
            cost = f"it used one task on one node for about {seconds:.0f} s"
            return ok(
                f"it ran on {host} as uid {uid}{same}; its log arrived {seconds:.1f} s after submit; {cost}, and it was removed"
            )
        run = await self._hyperpod.runs.get(self._run_id)
        said = f"; its log ends with: {' / '.join(self._last)}" if self._last else ""
        reason = f": {run.status.reason}" if run.status.reason else ""
        if run.state in {"waiting", "submitting"}:
            why = await self._why()
            return warn(
                f"it was still waiting after {seconds:.0f} s{why or reason}, and was cancelled",
                "wait until the cluster has free nodes, or use another queue; see: hpj queues",
            )
        if run.state == "running":
            return fail(
                f"it ran, but its log did not arrive within {seconds:.0f} s{said}",
                "the nodes may not mount the storage partition, or may mount another one: see the checks of mounts and of the partition",
                "admin",
            )
        fix = f"run hpj submit -c 'hostname' --cluster {self._cluster} --wait, and check its log"
        return fail(f"it is {run.state}{reason}{said}", fix)

    async def _why(self) -> str | None:
        with contextlib.suppress(HyperpodError):  # the run's own reason has to do
            told = await self._hyperpod.runs.explain_wait(self._run_id)
            return f": {told.reason}" if told.reason else None
        return None

    async def _clean(self) -> str | None:
        """Cancel it and remove it; what went wrong."""
        try:
            async with asyncio.timeout(_CLEANING):
                if not await asyncio.to_thread(self._hyperpod.partition.holds, self._run_id):
                    return None  # it was refused, and nothing is left of it
                run = await self._hyperpod.runs.get(self._run_id)
                if not run.status.ended:
                    await self._hyperpod.runs.act(self._run_id, "cancel")
                    async with asyncio.timeout(_ENDING):
                        await self._hyperpod.runs.wait(self._run_id)
                await asyncio.to_thread(withdraw, Path(run.bundle))
        except TimeoutError:
            return "it did not end"
        except HyperpodError as error:
            return error.message
        return None


# --------------------------------------------------------------------------------------------------
# The step on the lifecycle configuration of this space: what its script has made ready, and what not.


def lifecycle_steps() -> list[CheckStep]:
    """One step; it has nothing to say where none has run."""
    return [CheckStep("lifecycle", "lifecycle configuration", "installation", _lifecycle_look)]


async def _lifecycle_look() -> CheckResult | None:
    return await asyncio.to_thread(_told)


def _told() -> CheckResult | None:
    try:
        status = read_status()
    except StorageError as error:
        return of_error(error, "warn")
    if status is None:
        return None
    log = f"see lifecycle.log in {lifecycle_folders()[0]}"
    state = status.state_at(datetime.now(UTC))
    when = f"{status.updated:%Y-%m-%d %H:%M} UTC"
    if state == "failed":
        step = status.trouble
        words = f"{step.name}: {step.message or 'no reason'}" if step else "no step gives a reason"
        # What of it is missing the other checks say; this one stays until the next start.
        return warn(f"it failed at {when}: {words}", f"{log}; restart the space to try again")
    if state == "stopped":
        step = status.current
        words = f" in the step {step.name}" if step else ""
        hint = f"{log}; restart the space to try again"
        return warn(f"it has not reported since {when}{words}", hint)
    if state == "running":
        step = status.current
        return ok(f"it is running{f': {step.name}' if step else ''}")
    skipped = [step.name for step in status.steps if step.state == "skipped"]
    more = f", without {', '.join(skipped)}" if skipped else ""
    return ok(f"it finished at {when}{more}")
