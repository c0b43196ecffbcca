"""Files of Lustre file systems that are linked to S3: where their bytes are, and transfers by Lustre's program."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from hyperpod_jlab.core.file_system import FileState, State, Verb, decide
from hyperpod_jlab.core.wire import Wire, wire_property
from hyperpod_jlab.storage.lfs import Lfs
from hyperpod_jlab.storage.mounts import mount_of
from hyperpod_jlab.storage.timeouts import run_with_timeout

NOT_PERMITTED = "Operation not permitted"
"""Lustre's error message when only root has permission, which is true for all but hydrating."""


@dataclass(frozen=True)
class Result(Wire):
    """The state of a file, or the result of a request for it.

    Attributes:
        path: The file.
        done: ``seen``: its state was read; ``asked``: Lustre has started; ``nothing``: there was nothing to do; ``refused``.
        file: Its state before; None if it cannot be read.
        reason: Why nothing was done, or why it was refused.
        hint: How to fix it.
    """

    path: str
    done: Literal["seen", "asked", "nothing", "refused"]
    file: FileState | None = None
    reason: str | None = None
    hint: str | None = None

    @property
    @wire_property
    def state(self) -> State | None:
        return self.file.state if self.file else None


async def file_states(paths: Sequence[Path], lfs: Lfs | None = None) -> list[Result]:
    """The state of each file, in order.

    Raises:
        UnsupportedError: Lustre's program is not installed on this machine.
        StorageError: It does not answer.
    """
    lfs = lfs or Lfs()
    problems = {str(path): await _problem(path) for path in paths}
    states = await lfs.states([path for path, problem in problems.items() if problem is None])
    results = []
    for path, problem in problems.items():
        state = states.get(path)
        if isinstance(state, FileState):
            results.append(Result(path, "seen", state))
        else:
            results.append(Result(path, "refused", reason=problem or state))
    return results


async def move(verb: Verb, paths: Sequence[Path]) -> list[Result]:
    """Request transfers of files' bytes: a result per path, in order. A failure for one path does not stop the others.

    Args:
        verb: The kind of transfer.
        paths: Absolute paths.

    Raises:
        UnsupportedError: Lustre's program is not installed on this machine.
        StorageError: It does not answer.
    """
    lfs = Lfs()
    results = {result.path: result for result in await file_states(paths, lfs)}
    by_device: dict[int | None, list[str]] = {}
    for path, result in results.items():
        if result.file is None:
            continue
        decision = decide(verb, result.file)
        if decision.outcome == "ask":
            by_device.setdefault(await run_with_timeout(Path(path), partial(_device, path)), []).append(path)
        else:
            results[path] = Result(path, decision.outcome, result.file, decision.reason, decision.hint)
    for device_paths in by_device.values():  # one request is for files of one file system
        for path, problem in (await _request(lfs, verb, device_paths)).items():
            file, hint = results[path].file, None
            if problem is not None and NOT_PERMITTED in problem:
                hint = "Lustre allows this only for root: use sudo, or a data repository task of AWS"
                if verb == "hydrate":
                    hint = "you must own the file; reading it also restores it"
            results[path] = Result(path, "refused" if problem else "asked", file, problem, hint)
    return list(results.values())


async def _request(lfs: Lfs, verb: Verb, paths: list[str]) -> dict[str, str | None]:
    """Request transfers; if a batch is refused, retry file by file, since one of them may be the reason."""
    responses = await lfs.ask(verb, paths)
    failed_paths = [path for path, problem in responses.items() if problem is not None]
    if len(paths) == 1 or not failed_paths:
        return responses
    for path, state in (await lfs.states(failed_paths)).items():
        # Skip files that the refused request has already started.
        if isinstance(state, FileState) and decide(verb, state).outcome == "nothing":
            responses[path] = None
        else:
            responses |= await lfs.ask(verb, [path])
    return responses


def _device(path: str) -> int | None:
    """Device number of a file's file system; None if the file does not exist."""
    try:
        return Path(path).stat().st_dev
    except OSError:
        return None


async def _problem(path: Path) -> str | None:
    """Why a path has no HSM state."""

    def look() -> str | None:
        try:
            mode = os.lstat(path).st_mode
        except OSError as error:
            return error.strerror or str(error)
        if stat.S_ISLNK(mode):
            return "it is a link: give its target"
        if not stat.S_ISREG(mode):
            return "it is not a regular file, so it has no such state"
        kind = mount_of(path).kind
        return None if kind == "lustre" else f"it is on {kind or 'something else'}, not on Lustre"

    return await run_with_timeout(path, look)
