"""The last step: a real job that says a word, whose word is waited for in its log; then it is cancelled and all of it removed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from pathlib import Path

from hyperpod_jlab.model.check import Step, Told, fail, ok, warn
from hyperpod_jlab.model.errors import HyperpodError
from hyperpod_jlab.model.run_id import new_run_id
from hyperpod_jlab.model.spec import JobSpec
from hyperpod_jlab.services.doctor.opened import Opened
from hyperpod_jlab.services.doctor.partition import STORAGE
from hyperpod_jlab.services.hyperpod import Hyperpod
from hyperpod_jlab.services.log_request import LogRequest
from hyperpod_jlab.services.submission import Request
from hyperpod_jlab.storage.bundle import withdraw

PATIENCE = 180.0
"""Seconds in which its word has to come."""

_LIMIT = "10m"
"""Its time limit, should nobody be left to cancel it."""

_ENDING, _CLEANING = 30.0, 45.0
"""Seconds in which a cancelled one has to end, and all is to be removed."""


def job_steps(opened: Opened, only: str | None) -> list[Step]:
    """The job on one cluster, or on the default one."""
    if not opened.is_open:
        return []
    name = only or opened.hyperpod.settings.default_cluster
    needs = (STORAGE, f"cluster:{name}", f"queue:{name}", f"rights-there:{name}")
    seconds = PATIENCE + _CLEANING + 30
    return [Step("job", "a tiny job on", "job", _look(opened, name), needs, name, seconds)]


def _look(opened: Opened, name: str) -> Callable[[], Awaitable[Told]]:
    async def told() -> Told:
        return await _TinyJob(opened.hyperpod, name).told()

    return told


class _TinyJob:
    def __init__(self, hyperpod: Hyperpod, cluster: str) -> None:
        self._hyperpod = hyperpod
        self._cluster = cluster
        self._run_id = new_run_id()
        self._word = f"hpj-doctor-{secrets.token_hex(4)}"
        self._last: list[str] = []

    async def told(self) -> Told:
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
                asyncio.timeout(PATIENCE),
                aclosing(self._hyperpod.logs.lines(request)) as log,
            ):
                async for batch in log:
                    for line in batch:
                        if self._word in line.line:
                            return line.line.partition(self._word)[2].split()
                        self._last = [*self._last[-4:], line.line]
        return None

    async def _judged(self, words: Sequence[str] | None, seconds: float) -> Told:
        if words is not None:
            host, uid = (*words, "?", "?")[:2]
            same = "" if uid == str(os.getuid()) else f", uid {os.getuid()} here"
            cost = f"it took one task of one node for about {seconds:.0f} s"
            return ok(
                f"it ran on {host} as uid {uid}{same}; its log was here {seconds:.1f} s after the submit; {cost}, and was removed"
            )
        run = await self._hyperpod.runs.get(self._run_id)
        said = f"; its log ends with: {' / '.join(self._last)}" if self._last else ""
        reason = f": {run.status.reason}" if run.status.reason else ""
        if run.state in {"waiting", "submitting"}:
            why = await self._why()
            return warn(
                f"it was still waiting after {seconds:.0f} s{why or reason}, and was cancelled",
                "wait until the cluster has room, or name a free queue; see: hpj queues",
            )
        if run.state == "running":
            return fail(
                f"it ran, and nothing of its log came here in {seconds:.0f} s{said}",
                "the nodes may not have the storage partition, or have another one: look at the checks of mounts and of the partition",
                "admin",
            )
        fix = f"hpj submit -c 'hostname' --cluster {self._cluster} --wait, and look at its log"
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
            return "it does not end"
        except HyperpodError as error:
            return error.message
        return None
