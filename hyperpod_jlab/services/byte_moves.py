"""Hydrate, release and export of files, by Lustre's program here or by AWS, whichever can."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from hyperpod_jlab.aws.presence import points_to_aws
from hyperpod_jlab.model.errors import UnsupportedError
from hyperpod_jlab.model.file_state import Verb
from hyperpod_jlab.services.file_states import NOT_PERMITTED, Result, move_bytes
from hyperpod_jlab.services.repository_tasks import Moved, RepositoryTasks, TaskOptions
from hyperpod_jlab.storage.lfs import PROGRAM

Way = Literal["lfs", "aws"]
"""By Lustre's program on this machine, or by a data repository task of AWS."""


async def move(
    verb: Verb,
    paths: Sequence[Path],
    tasks: RepositoryTasks,
    by: Way | None = None,
    options: TaskOptions | None = None,
) -> Moved:
    """Ask for bytes of files to be moved: a result for each path, in their order.

    Args:
        verb: What is asked for.
        paths: Absolute paths.
        tasks: Whom to ask for tasks of AWS.
        by: How. None: by Lustre's program where it is, and by AWS what that is not permitted, or where it is not.
        options: How a task is done; where some are given, only a task can.

    Raises:
        UnsupportedError: Lustre's program is not here, and AWS cannot do it or is not to.
        StorageError: It does not answer.
    """
    if options is not None and by is None:
        by = "aws"
    if by == "aws":
        return await _by_aws(verb, paths, tasks, options)
    may_ask_aws = by is None and verb != "hydrate" and points_to_aws()
    if may_ask_aws and shutil.which(PROGRAM) is None:
        return await _by_aws(verb, paths, tasks, options)
    results = await move_bytes(verb, paths)
    denied = [
        one for one in results if one.done == "refused" and NOT_PERMITTED in (one.reason or "")
    ]
    if not (may_ask_aws and denied):
        return Moved(results)
    moved = await _by_aws(verb, [Path(one.path) for one in denied], tasks, options)
    again = {one.path: one for one in moved.results}
    return replace(moved, results=[_joined(one, again.get(one.path)) for one in results])


async def _by_aws(
    verb: Verb, paths: Sequence[Path], tasks: RepositoryTasks, options: TaskOptions | None
) -> Moved:
    if verb == "hydrate":
        raise UnsupportedError(
            "AWS has no task that brings bytes back",
            code="no_such_task",
            hint="a file comes back when it is read, such as by: cat FILE > /dev/null",
        )
    return await tasks.begin(verb, paths, options)


def _joined(refused: Result, by_aws: Result | None) -> Result:
    """What became of a file that Lustre refused, once AWS was asked."""
    if by_aws is None:
        return refused
    if by_aws.done == "refused":
        reason = f"{refused.reason}; AWS: {by_aws.reason}"
        return replace(by_aws, file=refused.file, reason=reason)
    return replace(by_aws, file=refused.file)
