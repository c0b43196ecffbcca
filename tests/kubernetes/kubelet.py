"""A stand-in for the API server and the kubelet: one pod with one container, whose log answers break off in all ways."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from hyperpod_jlab.core.errors import InvalidInputError, NotFoundError, UnreachableError
from hyperpod_jlab.engines.kubernetes.api.access import ApiAccess
from hyperpod_jlab.engines.kubernetes.api.client import Backoff, KubeClient, ResponseStream
from hyperpod_jlab.engines.kubernetes.api.errors import STREAM_CUT
from hyperpod_jlab.engines.kubernetes.observe import pod_log

SECOND = 1_000_000_000
BEGIN = 1_790_000_000 * SECOND


@dataclass
class Container:
    """What one container wrote: lines with their stamps, the last maybe without its newline; and how it ended."""

    lines: list[tuple[int, bytes]] = field(default_factory=list)
    code: int | None = None
    kept_from: int = 0
    removed: bool = False

    def write(self, stamp: int, text: bytes) -> None:
        """Write whole lines, or a last one without newline."""
        self.lines += [(stamp, line) for line in re.findall(rb"[^\n]*\n|[^\n]+", text)]

    @property
    def text(self) -> bytes:
        return b"".join(line for _, line in self.lines)

    def answer(self, since: int) -> bytes:
        return b"".join(
            stamped(stamp) + line for stamp, line in self.lines[self.kept_from :] if stamp // SECOND >= since
        )


def stamped(stamp: int) -> bytes:
    second = datetime.fromtimestamp(stamp // SECOND, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{second}.{stamp % SECOND:09}Z ".encode()


@dataclass(frozen=True)
class Fault:
    """What becomes of an answer: it is cut, or ends as if it were complete, after so many bytes; or it is this text."""

    after: int = 0
    cut: bool = False
    text: bytes | None = None


class Answer(ResponseStream):
    """An answer of the stand-in."""

    def __init__(self, chunks: Callable[[], AsyncIterator[bytes]]) -> None:
        self.chunks = chunks  # type: ignore[assignment]


class Kubelet(KubeClient):
    """A cluster of one pod with one container, which may start again."""

    def __init__(self, restart_policy: str = "Never") -> None:
        super().__init__(ApiAccess("http://nowhere", False, dict))
        self.containers = [Container()]
        self.uid = "u"
        self.policy = restart_policy
        self.gone = False
        self.faults: list[Fault] = []
        self.chance = random.Random(0)
        self.faulty = self.dies = False
        self.opened = 0
        self.seen = 1  # containers that the API server knows of; the kubelet may know more
        self.looks = 0

    @property
    def now(self) -> Container:
        return self.containers[-1]

    def restart(self, *, seen: bool = True) -> Container:
        self.containers.append(Container())
        self.seen = len(self.containers) if seen else self.seen
        return self.now

    async def get(self, path: str, **_: Any) -> dict[str, Any]:
        self.looks += 1
        if self.gone:
            raise NotFoundError("no pod")
        known = self.containers[: self.seen]
        self.seen = len(self.containers)
        newest = known[-1]
        status: dict[str, Any] = {
            "name": "c",
            "restartCount": len(known) - 1,
            "containerID": f"x://{self.uid}{len(known) - 1}",
            "state": {"running": {}} if newest.code is None else self._end(len(known) - 1),
        }
        if len(known) > 1:
            status["lastState"] = self._end(len(known) - 2)
        over = newest.code is not None and (self.policy == "Never" or newest.code == 0)
        return {
            "metadata": {"name": "p", "uid": self.uid, "resourceVersion": "1"},
            "spec": {"restartPolicy": self.policy, "containers": [{"name": "c"}]},
            "status": {
                "phase": "Failed" if over and newest.code else "Succeeded" if over else "Running",
                "containerStatuses": [status],
            },
        }

    def _end(self, number: int) -> dict[str, Any]:
        code = self.containers[number].code
        return {"terminated": {"exitCode": code, "containerID": f"x://{self.uid}{number}"}}

    @asynccontextmanager
    async def stream(self, path: str, **query: str) -> AsyncIterator[ResponseStream]:
        self.opened += 1
        previous = query.get("previous") == "true"
        if previous and len(self.containers) < 2:
            raise InvalidInputError('previous terminated container "c" in pod "p" not found')
        container = self.containers[-2 if previous else -1]
        fault = self.faults.pop(0) if self.faults else None
        if fault is None and self.faulty and self.chance.random() < 0.7:
            # A kubelet that dies ends answers cleanly, but not each of them: it is away then.
            self.dies = not self.dies and self.chance.random() < 0.5
            whole = len(container.text) + 31 * len(container.lines)
            fault = Fault(self.chance.randrange(whole + 1), cut=not self.dies)

        async def chunks() -> AsyncIterator[bytes]:
            left = fault.after if fault is not None else -1
            sent = 0
            while True:
                since = query.get("sinceTime")
                second = int(datetime.fromisoformat(since).timestamp()) if since else 0
                text = container.answer(second)
                if container.removed:
                    text = b"unable to retrieve container logs for containerd://x"
                if fault is not None and fault.text is not None:
                    yield fault.text
                    return
                while sent < len(text):
                    size = min(len(text) - sent, self.chance.randint(1, 20_000))
                    size = min(size, left) if fault is not None else size
                    yield text[sent : sent + size]
                    sent, left = sent + size, left - size
                    if fault is not None and left <= 0:
                        if fault.cut:
                            raise UnreachableError("cut", code=STREAM_CUT)
                        return
                if "follow" not in query or container.code is not None:
                    return
                await asyncio.sleep(0.001)

        yield Answer(chunks)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No time passes between tries."""
    monkeypatch.setattr(pod_log, "_RETRY_S", 0.0)
    monkeypatch.setattr(pod_log, "Backoff", lambda *_: Backoff(0.001, 0.002))
