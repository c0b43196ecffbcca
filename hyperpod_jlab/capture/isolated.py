"""Calls functions of capture in a process of their own, with limits of time and memory.

Parsers of JSON and Python keep the interpreter to themselves, so a huge or hostile file would stop the Jupyter server and the kernels' messages. The
process is not `multiprocessing`'s, which would import JupyterLab again. It starts in ``/``: the current folder may be the hostile one.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import resource
import select
import signal
import sys
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from hyperpod_jlab.core.child_process import end_child, start_child
from hyperpod_jlab.core.errors import HyperpodError, InvalidInputError

MAX_SECONDS = 60.0
_MAX_MEMORY = 4 << 30
_MAX_ANSWER = 64 << 20
_MAX_CALLS = 4
"""At the same time."""
_SPARE_SECONDS = 120.0
"""How long a process waits for work."""

_P = ParamSpec("_P")
_R = TypeVar("_R")


class Isolated:
    """Calls functions in other processes. One process is started ahead for the next call: previews come in a row."""

    def __init__(self) -> None:
        self._spare: asyncio.Task[asyncio.subprocess.Process] | None = None
        self._is_closed = False
        self._slots = asyncio.Semaphore(_MAX_CALLS)

    async def call(self, function: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """What a function of a module of ours returns. If the call is cancelled, its process ends.

        Raises:
            HyperpodError: What the function raises.
            InvalidInputError: It needs too much time or memory.
        """
        request = await asyncio.to_thread(pickle.dumps, (function, args, kwargs))
        async with self._slots:
            status, answer, log = await self._ask(request)
            if status == 0 and not answer:  # the spare process had just waited long enough
                status, answer, log = await self._ask(request)
        if not answer:
            if status < 0:
                raise _too_large(f"ended it with signal {-status}")
            raise RuntimeError(
                f"capture ended with {status}: {log[-10_000:].decode(errors='replace')}"
            )
        result: _R | HyperpodError = await asyncio.to_thread(pickle.loads, answer)
        if isinstance(result, HyperpodError):
            raise result
        return result

    async def _ask(self, request: bytes) -> tuple[int, bytes, bytes]:
        """The exit status, the answer and the log of a process."""
        spare, self._spare = self._spare, None
        process = await spare if spare is not None else await _start()
        if process.returncode is not None:  # the spare one has waited long enough
            process = await _start()
        try:
            async with asyncio.timeout(MAX_SECONDS):
                answer, log = await process.communicate(request)
                return await process.wait(), answer, log
        except TimeoutError as error:
            raise _too_large(f"takes longer than {MAX_SECONDS:.0f} s") from error
        finally:
            await end_child(process)
            self._start_spare()

    def _start_spare(self) -> None:
        if self._spare is None and not self._is_closed:
            self._spare = asyncio.create_task(_start())

    async def close(self) -> None:
        """End the spare process."""
        self._is_closed = True
        if self._spare is not None:
            await end_child(await self._spare)
            self._spare = None


async def _start() -> asyncio.subprocess.Process:
    return await start_child(sys.executable, "-P", "-m", __name__, cwd="/")


def _too_large(reason: str) -> InvalidInputError:
    return InvalidInputError(
        f"reading the code and listing the project's files {reason}",
        code="capture_limit",
        hint="exclude files with .hyperpodignore, use --no-project-files, or move data from cells to files",
        detail={"field": "source"},
    )


def _answer(request: bytes) -> bytes:
    try:
        function, args, kwargs = pickle.loads(request)  # noqa: S301 - from the server
        answer = pickle.dumps(function(*args, **kwargs))
        if len(answer) > _MAX_ANSWER:
            raise _too_large(f"makes more than {_MAX_ANSWER >> 20} MiB")
    except HyperpodError as error:
        return pickle.dumps(error)
    except MemoryError:
        return pickle.dumps(_too_large(f"needs more than {_MAX_MEMORY >> 30} GiB of memory"))
    except RecursionError:
        return pickle.dumps(_too_large("is nested too deeply"))
    return answer


def main() -> None:
    """Answer one request: from standard input to standard output, which programs started here do not have."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    import hyperpod_jlab.capture.cells  # noqa: F401 - while the server asks for nothing

    if not select.select([0], [], [], _SPARE_SECONDS)[0]:
        return
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    if hard == resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_DATA, (_MAX_MEMORY, hard))
    signal.alarm(int(MAX_SECONDS) + 5)  # if the server is gone
    request = sys.stdin.buffer.read()
    if request:
        with out:
            out.write(_answer(request))


if __name__ == "__main__":
    main()
