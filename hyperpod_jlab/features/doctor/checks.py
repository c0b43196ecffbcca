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
from hyperpod_jlab.core.check import CheckResult, CheckStep, fail, from_error, ok, warn
from hyperpod_jlab.core.cluster import UNUSABLE
from hyperpod_jlab.core.config import LOCAL
from hyperpod_jlab.core.errors import HyperpodError, StorageError
from hyperpod_jlab.core.run_id import new_run_id
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.engines.local.board import default_folder
from hyperpod_jlab.engines.local.preflight import interpreter
from hyperpod_jlab.features.doctor.models import CONFIGURATION, LazyServices
from hyperpod_jlab.features.doctor.storage import STORAGE
from hyperpod_jlab.logs.service import LogRequest
from hyperpod_jlab.run.services import Hyperpod
from hyperpod_jlab.run.submit import Request
from hyperpod_jlab.storage.bundle import withdraw
from hyperpod_jlab.storage.lifecycle_files import lifecycle_folders, read_status

_PACKAGES = ("hyperpod_jlab", "pydantic", "click", "jupyter_server", "jupyterlab", "boto3")


def first_steps(services: LazyServices) -> list[CheckStep]:
    """Steps without dependencies; the last one reads the configuration."""
    return [
        CheckStep("versions", "versions", "installation", _versions),
        CheckStep("config-files", "config files", "installation", _config_files),
        CheckStep(CONFIGURATION, "configuration", "installation", services.open),
    ]


def local_steps(services: LazyServices) -> list[CheckStep]:
    """Steps on the local cluster."""

    async def board() -> CheckResult:
        return await asyncio.to_thread(_board)

    async def python() -> CheckResult:
        configured = services.hyperpod.settings.clusters[LOCAL].python
        return await asyncio.to_thread(_python, configured or sys.executable)

    return [
        CheckStep("local-board", "local queue", "installation", board),
        CheckStep("local-python", "local python", "installation", python, needs=(CONFIGURATION,)),
    ]


async def _versions() -> CheckResult:
    versions = [f"Python {platform.python_version()}"]
    for package in _PACKAGES:
        try:
            versions.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue  # the command line works without Jupyter, and without AWS
    return ok(", ".join(versions))


async def _config_files() -> CheckResult:
    existing_files = [str(path) for path in config_files() if path.exists()]
    if existing_files:
        return ok(", ".join(existing_files))
    paths_text = ", ".join(map(str, config_files()))
    return ok(f"none, defaults are used (looked for {paths_text})")


def _board() -> CheckResult:
    """The local cluster locks its board with flock, which some network file systems lack."""
    try:
        folder = default_folder()
    except HyperpodError as error:
        return from_error(error)
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
    interpreter_info = interpreter(python)
    evidence = f"{python} ({interpreter_info.version[0]}.{interpreter_info.version[1]})"
    if not interpreter_info.torch:
        return warn(f"{evidence} has no torch, which torchrun needs", f"{python} -m pip install torch")
    return ok(f"{evidence} with torch")


# --------------------------------------------------------------------------------------------------
# Steps on each configured cluster: those of its engine, and whether all of it is visible.


def cluster_steps(services: LazyServices, only_cluster: str | None = None) -> list[CheckStep]:
    """Steps on the configured clusters; none if the configuration cannot be read.

    Args:
        services: The services.
        only_cluster: Check only this cluster; None: all.
    """
    if not services.is_open:
        return []
    names = [name for name in services.hyperpod.settings.clusters if only_cluster in {None, name}]
    return [step for name in names for step in _steps(services, name)]


def _steps(services: LazyServices, name: str) -> list[CheckStep]:
    try:
        checkup = services.hyperpod.engines.get(name).checkup
    except HyperpodError as error:
        return [CheckStep("cluster", "cluster", "scheduler", _failed(error), (), name)]
    steps = checkup.steps() if checkup is not None else []
    needs = (CONFIGURATION, *(item.ident for item in steps[:2] if item.group == "scheduler"))
    return [
        *steps,
        CheckStep("cluster", "cluster", "scheduler", _scheduler_answers(services, name), needs, name),
        CheckStep("nodes", "nodes", "nodes", _nodes(services, name), (f"cluster:{name}",), name),
    ]


def _failed(error: HyperpodError) -> Callable[[], Awaitable[CheckResult]]:
    async def told() -> CheckResult:
        return from_error(error)

    return told


def _scheduler_answers(services: LazyServices, name: str) -> Callable[[], Awaitable[CheckResult]]:
    async def told() -> CheckResult:
        cluster = await services.hyperpod.clusters.one(name)
        if cluster.state in {"unreachable", "misconfigured"}:
            fix = "check it under [clusters] in the configuration"
            return fail(cluster.reason or "does not answer", fix)
        running = f", {cluster.running} running" if cluster.running is not None else ""
        return ok(f"{cluster.orchestrator}, {cluster.state}{running}")

    return told


_MAX_NODES = 3
"""Nodes out of service that are named."""


def _nodes(services: LazyServices, name: str) -> Callable[[], Awaitable[CheckResult | None]]:
    async def told() -> CheckResult | None:
        nodes = (await services.hyperpod.clusters.scheduler_nodes(name)).value
        if not nodes:
            return None  # hidden from this user; the steps on rights say so
        unusable = [node for node in nodes if node.state in UNUSABLE]
        count = "1 node" if len(nodes) == 1 else f"{len(nodes)} nodes"
        if not unusable:
            return ok(f"{count}, none out of service")
        texts = [
            f"{node.name} ({node.state}{f': {node.reason}' if node.reason else ''})" for node in unusable[:_MAX_NODES]
        ]
        if len(unusable) > _MAX_NODES:
            texts.append(f"{len(unusable) - _MAX_NODES} more")
        evidence = f"{len(unusable)} of {count} cannot start new jobs: {', '.join(texts)}"
        fix = f"see their reasons with: hpj nodes {name}"
        return (fail if len(unusable) == len(nodes) else warn)(evidence, fix, "admin")

    return told


# --------------------------------------------------------------------------------------------------
# The last step: submit a real job, wait for its output in its log, then cancel and remove it.

TIMEOUT_S = 180.0
"""Timeout for its output, in seconds."""

_TIME_LIMIT = "10m"
"""Its time limit, in case nothing cancels it."""

_END_TIMEOUT_S, _CLEAN_TIMEOUT_S = 30.0, 45.0
"""Timeout, in seconds, for the cancelled job to end and be removed."""


def job_steps(services: LazyServices, only_cluster: str | None) -> list[CheckStep]:
    """The job on one cluster, or on the default one."""
    if not services.is_open:
        return []
    name = only_cluster or services.hyperpod.settings.default_cluster
    needs = (STORAGE, f"cluster:{name}", f"queue:{name}", f"rights-there:{name}")
    seconds = TIMEOUT_S + _CLEAN_TIMEOUT_S + 30
    return [CheckStep("job", "test job on", "job", _look(services, name), needs, name, seconds)]


def _look(services: LazyServices, name: str) -> Callable[[], Awaitable[CheckResult]]:
    async def told() -> CheckResult:
        return await _TinyJob(services.hyperpod, name).told()

    return told


class _TinyJob:
    def __init__(self, hyperpod: Hyperpod, cluster: str) -> None:
        self._hyperpod = hyperpod
        self._cluster = cluster
        self._run_id = new_run_id()
        self._marker = f"hpj-doctor-{secrets.token_hex(4)}"
        self._last_lines: list[str] = []

    async def told(self) -> CheckResult:
        # It runs until it is cancelled, so that its log is read while it runs, and nothing is left
        # in the scheduler.
        command = f"echo {self._marker} $(hostname) $(id -u); sleep 600"
        spec = JobSpec.model_validate(
            {
                "name": "doctor",
                "source": {"kind": "command", "command": command},
                "files": {"project": False},
                "resources": {"nodes": 1, "cpus": 1},
                "time_limit": _TIME_LIMIT,
                "stop_grace": 2,
            }
        )
        request = Request(spec, cluster=self._cluster, run_id=self._run_id, base=Path("/"))
        begin = time.monotonic()
        try:
            await self._hyperpod.submitter.submit(request)
            fields = await self._read_log_fields()
            found = await self._judge(fields, time.monotonic() - begin)
        finally:
            problem = await self._clean()
        if problem is not None:
            fix = f"hpj cancel {self._run_id}; hpj clean --older 0s"
            return warn(f"{found.evidence}; it could not be removed: {problem}", fix)
        return found

    async def _read_log_fields(self) -> Sequence[str] | None:
        """The rest of the output line in the log; None if it did not arrive."""
        request = LogRequest(self._run_id, follow=True)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(TIMEOUT_S), aclosing(self._hyperpod.logs.lines(request)) as log:
                async for batch in log:
                    for line in batch:
                        if self._marker in line.line:
                            return line.line.partition(self._marker)[2].split()
                        self._last_lines = [*self._last_lines[-4:], line.line]
        return None

    async def _judge(self, fields: Sequence[str] | None, seconds: float) -> CheckResult:
        if fields is not None:
            host, uid = (*fields, "?", "?")[:2]
            other_uid = "" if uid == str(os.getuid()) else f", uid {os.getuid()} here"
            cost = f"it used one task on one node for about {seconds:.0f} s"
            return ok(
                f"it ran on {host} as uid {uid}{other_uid}; its log arrived {seconds:.1f} s after submit; {cost}, and it was removed"
            )
        run = await self._hyperpod.runs.get(self._run_id)
        log_text = f"; its log ends with: {' / '.join(self._last_lines)}" if self._last_lines else ""
        reason = f": {run.status.reason}" if run.status.reason else ""
        if run.state in {"waiting", "submitting"}:
            wait_reason = await self._wait_reason()
            return warn(
                f"it was still waiting after {seconds:.0f} s{wait_reason or reason}, and was cancelled",
                "wait until the cluster has free nodes, or use another queue; list queues with: hpj queues",
            )
        if run.state == "running":
            return fail(
                f"it ran, but its log did not arrive within {seconds:.0f} s{log_text}",
                "the nodes may not mount the storage partition, or may mount another one: see the checks of mounts and of the partition",
                "admin",
            )
        fix = f"run hpj submit -c 'hostname' --cluster {self._cluster} --wait, and check its log"
        return fail(f"it is {run.state}{reason}{log_text}", fix)

    async def _wait_reason(self) -> str | None:
        with contextlib.suppress(HyperpodError):  # fall back to the run's own reason
            wait_reason = await self._hyperpod.runs.explain_wait(self._run_id)
            return f": {wait_reason.reason}" if wait_reason.reason else None
        return None

    async def _clean(self) -> str | None:
        """Cancel it and remove it; returns the error."""
        try:
            async with asyncio.timeout(_CLEAN_TIMEOUT_S):
                if not await asyncio.to_thread(self._hyperpod.partition.has_run, self._run_id):
                    return None  # it was refused: nothing to clean up
                run = await self._hyperpod.runs.get(self._run_id)
                if not run.status.ended:
                    await self._hyperpod.runs.act(self._run_id, "cancel")
                    async with asyncio.timeout(_END_TIMEOUT_S):
                        await self._hyperpod.runs.wait(self._run_id)
                await asyncio.to_thread(withdraw, Path(run.bundle))
        except TimeoutError:
            return "it did not end"
        except HyperpodError as error:
            return error.message
        return None


# --------------------------------------------------------------------------------------------------
# The step on this space's lifecycle configuration: what its script has set up, and what failed.


def lifecycle_steps() -> list[CheckStep]:
    """One step; without a result if no script has run."""
    return [CheckStep("lifecycle", "lifecycle configuration", "installation", _lifecycle_look)]


async def _lifecycle_look() -> CheckResult | None:
    return await asyncio.to_thread(_lifecycle_result)


def _lifecycle_result() -> CheckResult | None:
    try:
        status = read_status()
    except StorageError as error:
        return from_error(error, "warn")
    if status is None:
        return None
    log = f"see lifecycle.log in {lifecycle_folders()[0]}"
    state = status.state_at(datetime.now(UTC))
    updated_at = f"{status.updated:%Y-%m-%d %H:%M} UTC"
    if state == "failed":
        step = status.failed_step
        evidence = f"{step.name}: {step.message or 'no reason'}" if step else "no step gives a reason"
        # Other checks report what is missing; this result stays until the next start.
        return warn(f"it failed at {updated_at}: {evidence}", f"{log}; restart the space to try again")
    if state == "stopped":
        step = status.current
        evidence = f" in the step {step.name}" if step else ""
        hint = f"{log}; restart the space to try again"
        return warn(f"it has not reported since {updated_at}{evidence}", hint)
    if state == "running":
        step = status.current
        return ok(f"it is running{f': {step.name}' if step else ''}")
    skipped = [step.name for step in status.steps if step.state == "skipped"]
    skipped_text = f", without {', '.join(skipped)}" if skipped else ""
    return ok(f"it finished at {updated_at}{skipped_text}")
