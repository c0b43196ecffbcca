"""States of files on file systems that are linked to S3: looking at them, and hydrate, release and export with one result for each file."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from hyperpod_jlab.aws.file_systems import (
    LustreMount,
    find_file_system,
    list_associations,
    lustre_mounts,
)
from hyperpod_jlab.aws.presence import points_to_aws
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.errors import (
    HyperpodError,
    InvalidInputError,
    NotFoundError,
    UnsupportedError,
)
from hyperpod_jlab.core.file_system import Association, FileState, State, Verb, verdict_of
from hyperpod_jlab.core.wire import Wire, shown
from hyperpod_jlab.features.storage.aws import cancel_task, create_task, list_tasks
from hyperpod_jlab.features.storage.models import (
    MOST_PATHS,
    RepositoryTask,
    TaskVerb,
    linked_places,
    path_problem,
    task_path,
)
from hyperpod_jlab.storage.lfs import PROGRAM, Lfs
from hyperpod_jlab.storage.mounts import mount_of
from hyperpod_jlab.storage.timeouts import within

NOT_PERMITTED = "Operation not permitted"
"""What Lustre's program says where only root may ask."""


@dataclass(frozen=True)
class Result(Wire):
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

    @property
    @shown
    def state(self) -> State | None:
        """Its state in one word."""
        return self.file.state if self.file else None


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


# --------------------------------------------------------------------------------------------------
# Export, import and release of files by AWS: data repository tasks, for paths as this machine has them.


@dataclass(frozen=True)
class TaskOptions:
    """How a task is done.

    Attributes:
        unused_days: A release takes only what nobody has read or changed for so many days.
        report: Place in S3 for a list of the files that failed; None: none is made.
    """

    unused_days: int = 0
    report: str | None = None


@dataclass(frozen=True)
class Moved:
    """What became of a request: one result for each path, the tasks of AWS that do it, and why AWS refused some."""

    results: list[Result]
    tasks: list[RepositoryTask] = field(default_factory=list)
    errors: list[HyperpodError] = field(default_factory=list)


@dataclass(frozen=True)
class _Linked:
    """A file system with its links to S3; None where they may not be asked for."""

    name: str
    links: tuple[Association, ...] | None
    refusal: HyperpodError | None = None


class RepositoryTasks:
    """Has AWS do something to files.

    Args:
        aws: AWS in the region of the file systems.
    """

    def __init__(self, aws: Aws) -> None:
        self._aws = aws

    async def begin(
        self, verb: TaskVerb, paths: Sequence[Path], options: TaskOptions | None = None
    ) -> Moved:
        """Ask for files and folders: one task for each file system. One that is refused stops no other.

        Args:
            verb: What to do.
            paths: Absolute paths of this machine.
            options: How.
        """
        placed: dict[LustreMount, dict[str, str]] = {}
        results: dict[str, Result] = {}
        for path in paths:
            mount, there = await _placed(path)
            if mount is None:
                results[str(path)] = Result(str(path), "refused", reason=there)
            else:
                results[str(path)] = Result(str(path), "asked")
                placed.setdefault(mount, {})[str(path)] = there
        moved = Moved(list(results.values()))
        for mount, whereabouts in placed.items():
            try:
                await self._on_one(
                    verb, mount, whereabouts, options or TaskOptions(), results, moved
                )
            except HyperpodError as error:
                moved.errors.append(error)
                for name in whereabouts:
                    if results[name].done == "asked":
                        results[name] = _refused(name, error.message, error.hint)
        return replace(moved, results=list(results.values()))

    async def known(self, tasks: Sequence[str] = ()) -> list[RepositoryTask]:
        """Tasks of the file systems that are mounted here, or of all of the region where none is or the mounts do not name them.

        Args:
            tasks: Only these, wherever they are.

        Raises:
            NotFoundError: There is no task of an id.
            HyperpodError: See `aws.errors`.
        """
        mounted = {mount.file_system for mount in lustre_mounts()}
        known = sorted(name for name in mounted if name is not None)
        everywhere = bool(tasks) or None in mounted
        return await list_tasks(self._aws, () if everywhere else known, tasks)

    async def cancel(self, task: str) -> str:
        """Cancel a task; returns its state in AWS' word.

        Raises:
            ConflictError: It has ended.
            NotFoundError: There is no such task.
            HyperpodError: See `aws.errors`.
        """
        return await cancel_task(self._aws, task)

    async def _on_one(
        self,
        verb: TaskVerb,
        mount: LustreMount,
        whereabouts: dict[str, str],
        options: TaskOptions,
        results: dict[str, Result],
        moved: Moved,
    ) -> None:
        """Make the task for files of one file system, and note what becomes of each."""
        linked = await self._linked(mount)
        if linked.links is None and verb == "import":
            assert linked.refusal is not None
            raise linked.refusal
        wanted: dict[str, list[str]] = {}
        for path, there in whereabouts.items():
            places = None if linked.links is None else linked_places(there, linked.links)
            if places == []:
                results[path] = _not_linked(path, linked)
            else:
                wanted[path] = (places or []) if verb == "import" else [task_path(there)]
        given = list(dict.fromkeys(place for places in wanted.values() for place in places))
        if not given:
            return
        if len(given) > MOST_PATHS:
            raise InvalidInputError(
                f"a task takes at most {MOST_PATHS} paths, and these are {len(given)}",
                code="too_many_paths",
                hint="name the folder that they are in",
                detail={"field": "paths"},
            )
        made = await create_task(
            self._aws, linked.name, verb, given, options.unused_days, options.report
        )
        moved.tasks.append(made)
        for path in wanted:
            results[path] = replace(results[path], task=made.task_id)

    async def _linked(self, mount: LustreMount) -> _Linked:
        """The file system of a mount. What may not be asked for is not needed where the mount names it."""
        try:
            found = await find_file_system(self._aws, mount)
        except HyperpodError as error:
            if error.code != "missing_right" or mount.file_system is None:
                raise
            found = None
        else:
            if found is None:
                raise NotFoundError(
                    f"AWS has not exactly one file system with the mount name {mount.mount_name}",
                    hint="do this where the mount point has the file system's id, as in Studio",
                )
            if found.associations is not None:
                return _Linked(found.name, found.associations)
        name = found.name if found else str(mount.file_system)
        try:
            return _Linked(name, await list_associations(self._aws, name))
        except HyperpodError as error:
            if error.code != "missing_right":
                raise
            return _Linked(name, None, error)


async def _placed(path: Path) -> tuple[LustreMount | None, str]:
    """Where a path lies on its file system, or None and why a task cannot have it."""

    def look() -> tuple[LustreMount | None, str]:
        try:
            found = os.lstat(path)
        except OSError as error:
            return None, error.strerror or str(error)
        if stat.S_ISLNK(found.st_mode):
            return None, "it is a link: name what it leads to"
        mount = mount_of(path)
        part = next((one for one in lustre_mounts() if str(one.point) == mount.point), None)
        if part is None:
            return None, f"it lies on {mount.kind or 'something else'}, not on Lustre"
        there = part.path_there(path.resolve())
        problem = path_problem(there)
        return (part, there) if problem is None else (None, problem)

    return await within(path, look)


def _not_linked(path: str, linked: _Linked) -> Result:
    folders = ", ".join(link.folder for link in linked.links or ())
    hint = f"linked are, from the file system's root: {folders}" if folders else "nothing is linked"
    return _refused(path, "it is not in a folder that is linked to S3", hint)


def _refused(path: str, reason: str, hint: str | None) -> Result:
    return Result(path, "refused", reason=reason, hint=hint)


# --------------------------------------------------------------------------------------------------
# Hydrate, release and export of files, by Lustre's program here or by AWS, whichever can.

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
