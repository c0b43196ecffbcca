"""Lustre's own program ``lfs``: what it says of files on a file system that is linked to S3, and asking for their bytes to move.

What it prints, and that it ends at the first file that it has something against, is from its source (lustre/utils/lfs.c of Lustre 2.15:
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

from hyperpod_jlab.core.errors import StorageError, UnsupportedError
from hyperpod_jlab.core.file_system import FileState, Verb

PROGRAM = "lfs"

_TIMEOUT = 60.0
"""Seconds that a call has. Releasing is done while it runs; the other requests are only taken."""

_AT_ONCE, _LENGTH = 200, 100_000
"""Files of one call, and bytes of their paths."""

_REQUESTS: dict[Verb, str] = {
    "hydrate": "hsm_restore",
    "release": "hsm_release",
    "export": "hsm_archive",
}
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
        UnsupportedError: It is not there.
    """

    def __init__(self, program: str | None = None, patience: float = _TIMEOUT) -> None:
        found = program or shutil.which(PROGRAM)
        if found is None:
            raise UnsupportedError(
                "the Lustre program lfs is not installed on this machine, so states of files cannot be read or changed here",
                code="no_lfs",
                hint="run this on a node of the cluster, or install the Lustre client",
            )
        self._program = found
        self._patience = patience

    async def states(self, paths: Sequence[str]) -> dict[str, FileState | str]:
        """The state of each file, or why it cannot be had.

        Args:
            paths: Absolute paths of files on Lustre.

        Raises:
            StorageError: The program does not answer, or answers something else.
        """
        flags = await self._each("hsm_state", paths, _STATE)
        known = [path for path in paths if not isinstance(flags[path], str)]
        actions = await self._each("hsm_action", known, _ACTION)
        found: dict[str, FileState | str] = {}
        for path in paths:
            state = flags[path]
            found[path] = state if isinstance(state, str) else _joined(path, state, actions[path])
        return found

    async def ask(self, verb: Verb, paths: Sequence[str]) -> dict[str, str | None]:
        """Ask for the bytes of files to be moved; for each file why that was refused, or None. Moving goes on after the answer.

        Args:
            verb: What is asked for.
            paths: Absolute paths of files on one file system.

        Raises:
            StorageError: The program does not answer.
        """
        told: dict[str, str | None] = {}
        for some in _parts(paths):
            output = await self._run(_REQUESTS[verb], some)
            told |= dict.fromkeys(some, None if output.code == 0 else _words(output))
        return told

    async def _each(
        self, command: str, paths: Sequence[str], pattern: re.Pattern[bytes]
    ) -> dict[str, re.Match[bytes] | str]:
        """The program's line on each file, or its complaint."""
        found: dict[str, re.Match[bytes] | str] = {}
        for part in _parts(paths):
            left = list(part)
            while left:
                output = await self._run(command, left)
                lines = list(_lines(output.out, left, pattern))
                found |= zip(left, lines, strict=False)
                left = left[len(lines) :]
                if not left:
                    break
                if output.code == 0:
                    raise StorageError(
                        f"lfs {command} printed unexpected output",
                        code="lfs_output",
                        detail={"output": output.out[:500].decode(errors="replace")},
                    )
                found[left[0]] = _words(output)  # it ends at the first one
                left = left[1:]
        return found

    async def _run(self, command: str, paths: Sequence[str]) -> _Output:
        process = await asyncio.create_subprocess_exec(
            self._program,
            command,
            *paths,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "LC_ALL": "C"},
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(self._patience):
                out, err = await process.communicate()
        except TimeoutError:
            raise StorageError(
                f"lfs {command} timed out after {self._patience:g} s",
                code="storage_no_answer",
                hint="the servers of the file system may be busy or down; try again",
                detail={"command": command},
            ) from None
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                # One that hangs in the kernel cannot be waited for; it ends when its file system answers.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(1):
                        await process.wait()
        return _Output(process.returncode or 0, out, err.decode(errors="replace").strip())


def _joined(path: str, state: re.Match[bytes], action: re.Match[bytes] | str) -> FileState | str:
    if isinstance(action, str):
        return action
    word = action[1].decode()
    archive = int(state[2]) if state[2] else None
    if word == _NOTHING:
        return FileState(path, int(state[1], 16), archive)
    progress = (action[2] or b"").decode(errors="replace").strip()
    return FileState(path, int(state[1], 16), archive, word, progress or None)


def _lines(
    out: bytes, paths: Sequence[str], pattern: re.Pattern[bytes]
) -> Iterator[re.Match[bytes]]:
    """The lines on the files, in their order. A file's name may have line breaks in it, so the names are what is gone by."""
    at = 0
    for path in paths:
        begin = os.fsencode(path) + b": "
        found = pattern.match(out, at + len(begin)) if out.startswith(begin, at) else None
        if found is None:
            return
        yield found
        at = found.end()


def _words(output: _Output) -> str:
    """What the program says against it: its last line."""
    return output.err.splitlines()[-1] if output.err else f"lfs ended with code {output.code}"


def _parts(paths: Sequence[str]) -> Iterator[list[str]]:
    """The files in parts that fit into one call."""
    part: list[str] = []
    for path in paths:
        length = sum(map(len, part)) + len(path)
        if part and (len(part) >= _AT_ONCE or length > _LENGTH):
            yield part
            part = []
        part.append(path)
    if part:
        yield part
