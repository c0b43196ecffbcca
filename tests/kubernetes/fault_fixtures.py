"""What tests of faults share: waiting for what can only be seen from outside, runs that say numbers, and what must not be lost of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from hyperpod_jlab.core.cluster import WaitReason
from hyperpod_jlab.core.errors import HyperpodError
from hyperpod_jlab.logs.service import LogRequest
from tests.kubernetes.proxy import FaultyProxy
from tests.kubernetes.session_fixtures import KubernetesSession, Sessions


async def until(there: Callable[[], bool], seconds: float = 60.0, what: str = "it") -> None:
    """Wait until something that can only be looked at from outside is so."""
    for _ in range(round(seconds / 0.2)):
        if await asyncio.to_thread(there):
            return
        await asyncio.sleep(0.2)
    raise AssertionError(f"{what} never was so in {seconds} s")


async def why(session: KubernetesSession, run_id: str, code: str) -> WaitReason:
    """Wait until a run waits for that reason, and return it."""
    seen: list[str | None] = []
    found = WaitReason(run_id, None, None)
    for _ in range(150):
        found = await session.hyperpod.runs.explain_wait(run_id)
        if found.reason_code == code:
            return found
        if not seen or seen[-1] != found.reason_code:
            seen.append(found.reason_code)
        await asyncio.sleep(0.2)
    raise AssertionError(f"never {code}, but {seen}: {found.reason}")


async def refused(session: KubernetesSession, **spec: Any) -> HyperpodError:
    """Submit what cannot be; returns the error, after which nothing is left of the run."""
    with pytest.raises(HyperpodError) as told:
        await session.submit("echo ran", **spec)
    assert not (await session.hyperpod.runs.list()).runs
    left = session.cluster.get("pytorchjobs,jobs,pods", namespace=session.namespace)["items"]
    assert left == []
    return told.value


#: A command that says so many numbered lines, one after another with a pause, and then that it is done.
def numbers(count: int, pause: float = 0.1) -> str:
    """A shell command that prints the numbers from 1 on, and ``done`` at last."""
    return f"i=0; while [ $i -lt {count} ]; do i=$((i+1)); echo $i; sleep {pause}; done; echo done"


def whole(count: int) -> list[str]:
    """What ``numbers`` has said at its end."""
    return [*map(str, range(1, count + 1)), "done"]


async def follow(session: KubernetesSession, run_id: str, **chosen: Any) -> list[str]:
    """Follow a run's log to its end, as a reader who came at the beginning; what its processes said, without marks."""
    return await _said(session, LogRequest(run_id, follow=True, **chosen))


async def read(session: KubernetesSession, run_id: str, **chosen: Any) -> list[str]:
    """What a run's processes have said by now."""
    return await _said(session, LogRequest(run_id, **chosen))


async def _said(session: KubernetesSession, request: LogRequest) -> list[str]:
    lines: list[str] = []
    async for batch in session.hyperpod.logs.lines(request):
        lines += [line.line for line in batch if line.mark is None and line.rank is not None]
    return lines


@pytest.fixture
def behind(sessions: Sessions, proxy: FaultyProxy) -> KubernetesSession:
    """A session whose requests go through the proxy."""
    return sessions(kubeconfig=proxy.kubeconfig)
