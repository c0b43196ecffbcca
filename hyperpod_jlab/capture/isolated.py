"""Calls functions of capture in a process of their own, with limits of time and memory.

Parsers of JSON and Python keep the interpreter to themselves, so a huge or hostile file would stop the Jupyter server. The process is not one of
`multiprocessing`, which would import JupyterLab again. It starts in ``/``, because the current folder may be the hostile one.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import resource
import select
import signal
import sys
import traceback
from collections.abc import Callable
from typing import BinaryIO, ParamSpec, TypeVar

from hyperpod_jlab.core.child_process import end_child, start_child
from hyperpod_jlab.core.errors import HyperpodError, InvalidInputError

MAX_SECONDS = 60
_MAX_CALLS = 4
"""At the same time."""
_MAX_MEMORY = 4 << 30
_MAX_KEPT_KIB = 512 << 10
"""A process that took more memory is not used again."""
_MAX_ANSWER = 64 << 20
_IDLE_S = 120.0

_P = ParamSpec("_P")
_R = TypeVar("_R")


class _EndedError(Exception):
    """The process ended without an answer; with its status."""


class Isolated:
    """Calls functions in other processes. One process waits for the next call, because previews come in a row."""

    def __init__(self) -> None:
        self._idle: asyncio.subprocess.Process | None = None
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
            try:
                answer = await self._ask(request)
            except TimeoutError as error:
                raise _too_large(f"takes longer than {MAX_SECONDS} s") from error
            except _EndedError as error:
                raise _too_large(f"ended its process (status {error})") from error
        result: _R | Exception = await asyncio.to_thread(pickle.loads, answer)
        if isinstance(result, Exception):
            raise result
        return result

    async def _ask(self, request: bytes) -> bytes:
        process, self._idle = self._idle, None
        if process is not None:
            with contextlib.suppress(_EndedError):  # it has waited long enough
                return await self._exchange(process, request)
        process = await start_child(sys.executable, "-P", "-m", __name__, cwd="/")
        return await self._exchange(process, request)

    async def _exchange(self, process: asyncio.subprocess.Process, request: bytes) -> bytes:
        assert process.stdin is not None
        assert process.stdout is not None
        is_kept = False
        try:
            async with asyncio.timeout(MAX_SECONDS):
                process.stdin.write(len(request).to_bytes(8) + request)
                await process.stdin.drain()
                size = int.from_bytes(await process.stdout.readexactly(8))
                answer = await process.stdout.readexactly(size)
            is_kept = self._idle is None and not self._is_closed
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise _EndedError(await process.wait()) from error
        finally:
            if is_kept:
                self._idle = process
            else:
                await end_child(process)
        return answer

    async def close(self) -> None:
        """End the process that waits."""
        self._is_closed = True
        if self._idle is not None:
            await end_child(self._idle)
            self._idle = None


def _too_large(reason: str) -> InvalidInputError:
    return InvalidInputError(
        f"reading the code and listing the project's files {reason}",
        code="capture_limit",
        hint="exclude files with .hyperpodignore, use --no-project-files, or move data from cells to files",
        detail={"field": "source"},
    )


def _answer(request: bytes) -> bytes:
    """The pickled result, or the error."""
    result: object
    try:
        function, args, kwargs = pickle.loads(request)  # noqa: S301 - from the server
        answer = pickle.dumps(function(*args, **kwargs))
        if len(answer) <= _MAX_ANSWER:
            return answer
        result = _too_large(f"makes more than {_MAX_ANSWER >> 20} MiB")
    except HyperpodError as error:
        result = error
    except MemoryError:
        result = _too_large(f"needs more than {_MAX_MEMORY >> 30} GiB of memory")
    except RecursionError:
        result = _too_large("meets what is nested too deeply")
    except Exception:  # noqa: BLE001 - the server raises and logs it
        result = RuntimeError(traceback.format_exc())
    return pickle.dumps(result)


def _serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests until the server is gone or asks no more."""
    # At first the kernel counts what the server had when it started this process.
    most_kib = max(_MAX_KEPT_KIB, _peak_kib())
    while select.select([requests], [], [], _IDLE_S)[0] and (header := requests.read(8)):
        signal.alarm(MAX_SECONDS + 5)  # ends this process if the server no longer can
        answer = _answer(requests.read(int.from_bytes(header)))
        signal.alarm(0)
        answers.write(len(answer).to_bytes(8) + answer)
        answers.flush()
        if _peak_kib() > most_kib:
            return


def _peak_kib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> None:
    """Serve on the pipes, which programs that are started here do not inherit."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "r+b", buffering=0) as nothing:  # noqa: PTH123
        for number in range(3):
            os.dup2(nothing.fileno(), number)
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    if hard == resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_DATA, (_MAX_MEMORY, hard))
    _serve(requests, answers)


if __name__ == "__main__":
    main()
