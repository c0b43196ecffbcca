"""Lustre's own program ``lfs``: HSM states of files on a file system that is linked to S3, and requests for transfers.

Its output format, and that it stops at the first file with an error, are from its source (lustre/utils/lfs.c of Lustre 2.15:
``lfs_hsm_state``, ``lfs_hsm_action``, ``lfs_hsm_request``).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hyperpod_jlab.core.child_process import start_child
from hyperpod_jlab.core.errors import StorageError, UnsupportedError
from hyperpod_jlab.core.file_system import FileState, Verb

PROGRAM = "lfs"

_TIMEOUT = 60.0
"""Timeout of a call, in seconds. A release completes within the call; the other requests are only accepted."""

_BATCH_SIZE, _MAX_ARGUMENT_BYTES = 200, 100_000
"""Maximum files per call, and bytes of their paths."""

_REQUESTS: dict[Verb, str] = {"hydrate": "hsm_restore", "release": "hsm_release"}
_STATE = re.compile(rb"\(0x([0-9a-f]+)\)[^\n]*?(?:, archive_id:(\d+))?\n")
_ACTION = re.compile(rb"(\w+)(?: ([^\n]*))?\n")
_NOTHING = "NOOP"


@dataclass(frozen=True)
class _Output:
    code: int
    out: bytes
    err: str


class Lfs:
    """The program on this machine.

    Args:
        program: Its path; default: that on PATH.

    Raises:
        UnsupportedError: It is not installed.
    """

    def __init__(self, program: str | None = None, timeout_s: float = _TIMEOUT) -> None:
        executable = program or shutil.which(PROGRAM)
        if executable is None:
            raise UnsupportedError(
                "the Lustre program lfs is not installed on this machine, so states of files cannot be read or changed here",
                code="no_lfs",
                hint="run this on a node of the cluster, or install the Lustre client",
            )
        self._program = executable
        self._timeout_s = timeout_s

    async def states(self, paths: Sequence[str]) -> dict[str, FileState | str]:
        """The state of each file, or the error.

        Args:
            paths: Absolute paths of files on Lustre.

        Raises:
            StorageError: The program does not answer, or its output is invalid.
        """
        flags = await self._run_each("hsm_state", paths, _STATE)
        readable = [path for path in paths if not isinstance(flags[path], str)]
        actions = await self._run_each("hsm_action", readable, _ACTION)
        result: dict[str, FileState | str] = {}
        for path in paths:
            state = flags[path]
            result[path] = state if isinstance(state, str) else _parse_state(path, state, actions[path])
        return result

    async def ask(self, verb: Verb, paths: Sequence[str]) -> dict[str, str | None]:
        """Request transfers of files' bytes; for each file the error if it was refused, or None. Transfers continue after the call.

        Args:
            verb: The kind of transfer.
            paths: Absolute paths of files on one file system.

        Raises:
            StorageError: The program does not answer.
        """
        refusals: dict[str, str | None] = {}
        for batch in _batches(paths):
            output = await self._run(_REQUESTS[verb], batch)
            refusals |= dict.fromkeys(batch, None if output.code == 0 else _error_line(output))
        return refusals

    async def _run_each(
        self, command: str, paths: Sequence[str], pattern: re.Pattern[bytes]
    ) -> dict[str, re.Match[bytes] | str]:
        """The program's output line for each file, or its error."""
        results: dict[str, re.Match[bytes] | str] = {}
        for part in _batches(paths):
            remaining = list(part)
            while remaining:
                output = await self._run(command, remaining)
                lines = list(_lines(output.out, remaining, pattern))
                results |= zip(remaining, lines, strict=False)
                remaining = remaining[len(lines) :]
                if not remaining:
                    break
                if output.code == 0:
                    raise StorageError(
                        f"lfs {command} printed unexpected output",
                        code="lfs_output",
                        detail={"output": output.out[:500].decode(errors="replace")},
                    )
                results[remaining[0]] = _error_line(output)  # it stops at the first one
                remaining = remaining[1:]
        return results

    async def _run(self, command: str, paths: Sequence[str]) -> _Output:
        process = await start_child(
            self._program, command, *paths, stdin=asyncio.subprocess.DEVNULL, env={**os.environ, "LC_ALL": "C"}
        )
        try:
            async with asyncio.timeout(self._timeout_s):
                output, err = await process.communicate()
        except TimeoutError:
            raise StorageError(
                f"lfs {command} timed out after {self._timeout_s:g} s",
                code="storage_no_answer",
                hint="the servers of the file system may be busy or down; try again",
                detail={"command": command},
            ) from None
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                # A process that hangs in the kernel cannot be waited for; it ends when its file
                # system answers.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(1):
                        await process.wait()
        return _Output(process.returncode or 0, output, err.decode(errors="replace").strip())


def _parse_state(path: str, state: re.Match[bytes], action: re.Match[bytes] | str) -> FileState | str:
    if isinstance(action, str):
        return action
    action_name = action[1].decode()
    archive = int(state[2]) if state[2] else None
    if action_name == _NOTHING:
        return FileState(path, int(state[1], 16), archive)
    progress = (action[2] or b"").decode(errors="replace").strip()
    return FileState(path, int(state[1], 16), archive, action_name, progress or None)


def _lines(output: bytes, paths: Sequence[str], pattern: re.Pattern[bytes]) -> Iterator[re.Match[bytes]]:
    """The lines of the files, in order. File names may contain line breaks, so lines are matched by name."""
    position = 0
    for path in paths:
        begin = os.fsencode(path) + b": "
        match = pattern.match(output, position + len(begin)) if output.startswith(begin, position) else None
        if match is None:
            return
        yield match
        position = match.end()


def _error_line(output: _Output) -> str:
    """The program's error message: its last line."""
    return output.err.splitlines()[-1] if output.err else f"lfs ended with code {output.code}"


def _batches(paths: Sequence[str]) -> Iterator[list[str]]:
    """The files in batches that fit into one call."""
    part: list[str] = []
    for path in paths:
        length = sum(map(len, part)) + len(path)
        if part and (len(part) >= _BATCH_SIZE or length > _MAX_ARGUMENT_BYTES):
            yield part
            part = []
        part.append(path)
    if part:
        yield part
