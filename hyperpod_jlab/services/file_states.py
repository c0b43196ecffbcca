"""States of files on file systems that are linked to S3: looking at them, and hydrate, release and export with one result for each file."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hyperpod_jlab.model.file_state import FileState, Verb, verdict_of
from hyperpod_jlab.storage.lfs import Lfs
from hyperpod_jlab.storage.mounts import mount_of
from hyperpod_jlab.storage.patience import within

NOT_PERMITTED = "Operation not permitted"
"""What Lustre's program says where only root may ask."""


@dataclass(frozen=True)
class Result:
    """What is known of one file, or became of a request for it.

    Attributes:
        path: The file.
        done: ``seen`` for a state that was only looked at; ``asked``: Lustre or AWS does it now; ``nothing``: there was nothing to do; ``refused``.
        file: Its state before; None where it cannot be had.
        reason: Why nothing was done, or it was refused.
        hint: What to do about it.
        task: Id of the task by which AWS does it; None where Lustre does.
    """

    path: str
    done: Literal["seen", "asked", "nothing", "refused"]
    file: FileState | None = None
    reason: str | None = None
    hint: str | None = None
    task: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "path": self.path,
            "done": self.done,
            "state": self.file and self.file.state,
            "file": self.file and self.file.to_dict(),
            "reason": self.reason,
            "hint": self.hint,
            "task": self.task,
        }


async def file_states(paths: Sequence[Path], lfs: Lfs | None = None) -> list[Result]:
    """The state of each file, in their order.

    Raises:
        UnsupportedError: Lustre's program is not on this machine.
        StorageError: It does not answer.
    """
    lfs = lfs or Lfs()
    checked = {str(path): await _unfit(path) for path in paths}
    fit = [path for path, problem in checked.items() if problem is None]
    found = await lfs.states(fit)
    results = []
    for path, problem in checked.items():
        state = found.get(path)
        if isinstance(state, FileState):
            results.append(Result(path, "seen", state))
        else:
            results.append(Result(path, "refused", reason=problem or state))
    return results


async def move_bytes(verb: Verb, paths: Sequence[Path], lfs: Lfs | None = None) -> list[Result]:
    """Ask for the bytes of files to be moved: a result for each file, in their order. One that is refused stops no other.

    Raises:
        UnsupportedError: Lustre's program is not on this machine.
        StorageError: It does not answer.
    """
    lfs = lfs or Lfs()
    results = {result.path: result for result in await file_states(paths, lfs)}
    wanted: dict[int | None, list[str]] = {}
    for path, result in results.items():
        if result.file is None:
            continue
        verdict = verdict_of(verb, result.file)
        if verdict.does == "ask":
            wanted.setdefault(await _device(path), []).append(path)
        else:
            results[path] = Result(path, verdict.does, result.file, verdict.reason, verdict.hint)
    for some in wanted.values():  # one request is for files of one file system
        for path, problem in (await _asked(lfs, verb, some)).items():
            file = results[path].file
            done: Literal["asked", "refused"] = "asked" if problem is None else "refused"
            results[path] = Result(path, done, file, problem, _hint(verb, problem))
    return list(results.values())


async def _asked(lfs: Lfs, verb: Verb, paths: list[str]) -> dict[str, str | None]:
    """Ask for files, and one by one for those of a request that was refused as a whole, for it may be one of them only."""
    told = await lfs.ask(verb, paths)
    failed = [path for path, problem in told.items() if problem is not None]
    if len(paths) == 1 or not failed:
        return told
    fresh = await lfs.states(failed)
    for path in failed:
        state = fresh[path]
        # What the refused request had done already is not asked for again.
        if isinstance(state, FileState) and verdict_of(verb, state).does == "nothing":
            told[path] = None
        else:
            told |= await lfs.ask(verb, [path])
    return told


async def _device(path: str) -> int | None:
    """Number of a file's file system; None when the file has gone."""

    def look() -> int | None:
        try:
            return Path(path).stat().st_dev
        except OSError:
            return None

    return await within(Path(path), look)


async def _unfit(path: Path) -> str | None:
    """Why a path has no such state."""

    def look() -> str | None:
        try:
            found = os.lstat(path)
        except OSError as error:
            return error.strerror or str(error)
        if stat.S_ISLNK(found.st_mode):
            return "it is a link: name the file that it leads to"
        if not stat.S_ISREG(found.st_mode):
            return "it is no file: only files have such a state"
        kind = mount_of(path).kind
        return None if kind == "lustre" else f"it lies on {kind or 'something else'}, not on Lustre"

    return await within(path, look)


def _hint(verb: Verb, problem: str | None) -> str | None:
    """What to do when Lustre lets only root ask for it, which it does for all but hydrating."""
    if problem is None or NOT_PERMITTED not in problem:
        return None
    if verb == "hydrate":
        return "it must be your file; reading it brings it back too"
    return "Lustre lets only root of this machine ask for it: sudo; or have AWS do it: --by aws"
