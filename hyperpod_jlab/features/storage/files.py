"""Files of Lustre file systems that are linked to S3: where their bytes are, and transfers by Lustre's program or by a data repository task of AWS."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Literal

from hyperpod_jlab.aws.file_systems import (
    LustreMount,
    find_file_system,
    list_associations,
    lustre_mounts,
)
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.aws.studio import points_to_aws
from hyperpod_jlab.core.errors import (
    HyperpodError,
    InvalidInputError,
    NotFoundError,
    UnsupportedError,
)
from hyperpod_jlab.core.file_system import Association, FileState, State, Verb, decide
from hyperpod_jlab.core.wire import Wire, wire_property
from hyperpod_jlab.features.storage.aws import cancel_task, create_task, list_tasks
from hyperpod_jlab.features.storage.models import (
    MAX_PATHS,
    RepositoryTask,
    TaskVerb,
    linked_places,
    path_problem,
    task_path,
)
from hyperpod_jlab.storage.lfs import PROGRAM, Lfs
from hyperpod_jlab.storage.mounts import mount_of
from hyperpod_jlab.storage.timeouts import run_with_timeout

Way = Literal["lfs", "aws"]
"""By Lustre's program on this machine, or by a data repository task of AWS."""

NOT_PERMITTED = "Operation not permitted"
"""Lustre's error message when only root has permission, which is true for all but hydrating."""


@dataclass(frozen=True)
class Result(Wire):
    """The state of a file, or the result of a request for it.

    Attributes:
        path: The file.
        done: ``seen``: its state was read; ``asked``: Lustre or AWS has started; ``nothing``: there was nothing to do; ``refused``.
        file: Its state before; None if it cannot be read.
        reason: Why nothing was done, or why it was refused.
        hint: How to fix it.
        task: Id of the AWS task.
    """

    path: str
    done: Literal["seen", "asked", "nothing", "refused"]
    file: FileState | None = None
    reason: str | None = None
    hint: str | None = None
    task: str | None = None

    @property
    @wire_property
    def state(self) -> State | None:
        return self.file.state if self.file else None


@dataclass(frozen=True)
class TaskOptions:
    """Options of an AWS task.

    Attributes:
        unused_days: Release only files that were not read or changed for this many days.
        report: S3 prefix for the report of failed files; None: no report.
    """

    unused_days: int = 0
    report: str | None = None


@dataclass(frozen=True)
class TransferResult:
    """The outcome of a request: a result per path, the AWS tasks, and why AWS refused some."""

    results: list[Result]
    tasks: list[RepositoryTask] = field(default_factory=list)
    errors: list[HyperpodError] = field(default_factory=list)


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


async def move(
    verb: Verb,
    paths: Sequence[Path],
    tasks: RepositoryTaskService,
    by: Way | None = None,
    options: TaskOptions | None = None,
) -> TransferResult:
    """Request transfers of files' bytes: a result per path, in order. A failure for one path does not stop the others.

    Args:
        verb: The kind of transfer.
        paths: Absolute paths.
        tasks: The AWS tasks.
        by: The way. None: by Lustre's program, and by AWS where the program is missing or has no permission.
        options: Options of an AWS task; if given, only a task is possible.

    Raises:
        UnsupportedError: Lustre's program is missing, and AWS cannot do it or is not available.
        StorageError: The program does not answer.
    """
    may_ask_aws = by is None and verb != "hydrate" and points_to_aws()
    missing = shutil.which(PROGRAM) is None
    if by == "aws" or (by is None and options is not None) or (may_ask_aws and missing):
        if verb == "hydrate":
            raise UnsupportedError(
                "a data repository task of AWS cannot restore files",
                code="no_such_task",
                hint="leave out --by aws, or read the file: cat FILE > /dev/null",
            )
        return await tasks.begin(verb, paths, options)
    results = await _move_with_lfs(verb, paths)
    denied = [
        Path(result.path)
        for result in results
        if result.done == "refused" and NOT_PERMITTED in (result.reason or "")
    ]
    if verb == "hydrate" or not may_ask_aws or not denied:
        return TransferResult(results)
    task_result = await tasks.begin(verb, denied, options)
    by_aws = {result.path: result for result in task_result.results}
    for number, lfs_result in enumerate(results):
        if (aws_result := by_aws.get(lfs_result.path)) is not None:
            refused = aws_result.done == "refused"
            reason = (
                f"{lfs_result.reason}; AWS: {aws_result.reason}" if refused else aws_result.reason
            )
            results[number] = replace(aws_result, file=lfs_result.file, reason=reason)
    return replace(task_result, results=results)


async def _move_with_lfs(verb: Verb, paths: Sequence[Path]) -> list[Result]:
    lfs = Lfs()
    results = {result.path: result for result in await file_states(paths, lfs)}
    by_device: dict[int | None, list[str]] = {}
    for path, result in results.items():
        if result.file is None:
            continue
        decision = decide(verb, result.file)
        if decision.outcome == "ask":
            by_device.setdefault(
                await run_with_timeout(Path(path), partial(_device, path)), []
            ).append(path)
        else:
            results[path] = Result(
                path, decision.outcome, result.file, decision.reason, decision.hint
            )
    for device_paths in by_device.values():  # one request is for files of one file system
        for path, problem in (await _request(lfs, verb, device_paths)).items():
            file, hint = results[path].file, None
            if problem is not None and NOT_PERMITTED in problem:
                hint = "Lustre allows this only for root: use sudo, or AWS with --by aws"
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


class RepositoryTaskService:
    """Data repository tasks, for this machine's paths.

    Args:
        aws: AWS in the region of the file systems.
    """

    def __init__(self, aws: Aws) -> None:
        self._aws = aws

    async def begin(
        self, verb: TaskVerb, paths: Sequence[Path], options: TaskOptions | None = None
    ) -> TransferResult:
        """Create tasks for files and folders: one per file system. A failure of one does not stop the others."""
        transfer = TransferResult([])
        results: dict[str, Result] = {}
        by_mount: dict[LustreMount, dict[str, str]] = {}
        for path in map(str, paths):
            mount, remote_path = await _locate(Path(path))
            if mount is None:
                results[path] = Result(path, "refused", reason=remote_path)
            else:
                results[path] = Result(path, "asked")
                by_mount.setdefault(mount, {})[path] = remote_path
        for mount, remote_by_path in by_mount.items():
            try:
                targets = await self._task_targets(verb, mount, remote_by_path, results)
                task = await self._make(verb, *targets, options or TaskOptions())
            except HyperpodError as error:
                transfer.errors.append(error)
                refusal = Result("", "refused", reason=error.message, hint=error.hint)
            else:
                transfer.tasks.extend(task)
                refusal = Result("", "asked", task=task[0].task_id if task else None)
            for path in remote_by_path:
                if results[path].done == "asked":
                    results[path] = replace(refusal, path=path)
        return replace(transfer, results=list(results.values()))

    async def list_known_tasks(self, tasks: Sequence[str] = ()) -> list[RepositoryTask]:
        """Tasks of the mounted file systems, or of the whole region if there are none or their ids are unknown.

        Args:
            tasks: Only these, on any file system.

        Raises:
            NotFoundError: A task does not exist.
            HyperpodError: See `aws.errors`.
        """
        mounted = {mount.file_system for mount in lustre_mounts()}
        known_names = sorted(name for name in mounted if name is not None)
        everywhere = bool(tasks) or None in mounted
        return await list_tasks(self._aws, () if everywhere else known_names, tasks)

    async def cancel(self, task: str) -> str:
        """Cancel a task; returns its state as AWS reports it.

        Raises:
            ConflictError: It has ended.
            NotFoundError: The task does not exist.
            HyperpodError: See `aws.errors`.
        """
        return await cancel_task(self._aws, task)

    async def _task_targets(
        self,
        verb: TaskVerb,
        mount: LustreMount,
        remote_paths: dict[str, str],
        results: dict[str, Result],
    ) -> tuple[str, list[str]]:
        """The file system and the paths of its task; paths without a link are refused in `results`."""
        name, links = await self._file_system_links(mount, needs_links=verb == "import")
        targets: dict[str, None] = {}
        for path, remote_path in remote_paths.items():
            linked = None if links is None else linked_places(remote_path, links)
            if linked == []:
                folders = ", ".join(link.folder for link in links or ())
                hint = f"linked folders, from the root of the file system: {folders}"
                reason = "it is not in a folder that is linked to S3"
                hint = hint if folders else "no folders are linked"
                results[path] = Result(path, "refused", reason=reason, hint=hint)
            else:
                task_paths = (linked or []) if verb == "import" else [task_path(remote_path)]
                targets |= dict.fromkeys(task_paths)
        return name, list(targets)

    async def _make(
        self, verb: TaskVerb, name: str, targets: list[str], options: TaskOptions
    ) -> list[RepositoryTask]:
        if not targets:
            return []
        if len(targets) > MAX_PATHS:
            raise InvalidInputError(
                f"a task accepts at most {MAX_PATHS} paths, but {len(targets)} are given",
                code="too_many_paths",
                hint="give the folder that contains them",
                detail={"field": "paths"},
            )
        days, report = options.unused_days, options.report
        return [await create_task(self._aws, name, verb, targets, days, report)]

    async def _file_system_links(
        self, mount: LustreMount, *, needs_links: bool
    ) -> tuple[str, Sequence[Association] | None]:
        """The file system of a mount, and its links to S3: None if there is no permission to read them and they are not needed."""
        name = mount.file_system
        try:
            description = await find_file_system(self._aws, mount)
        except HyperpodError as error:
            if error.code != "missing_right" or name is None:
                raise
        else:
            if description is None:
                raise NotFoundError(
                    f"AWS does not have exactly one file system with the mount name {mount.mount_name}",
                    hint="run this where the mount shows the id of the file system, as in Studio",
                )
            if description.associations is not None:
                return description.name, description.associations
            name = description.name
        try:
            return name, await list_associations(self._aws, name)
        except HyperpodError as error:
            if error.code != "missing_right" or needs_links:
                raise
            return name, None


async def _locate(path: Path) -> tuple[LustreMount | None, str]:
    """A path's mount and its path on the file system, or None and why a task cannot process it."""

    def look() -> tuple[LustreMount | None, str]:
        try:
            if stat.S_ISLNK(os.lstat(path).st_mode):
                return None, "it is a link: give its target"
        except OSError as error:
            return None, error.strerror or str(error)
        mount = mount_of(path)
        part = next(
            (part_mount for part_mount in lustre_mounts() if str(part_mount.point) == mount.point),
            None,
        )
        if part is None:
            return None, f"it is on {mount.kind or 'something else'}, not on Lustre"
        remote_path = part.path_there(path.resolve())
        problem = path_problem(remote_path)
        return (part, remote_path) if problem is None else (None, problem)

    return await run_with_timeout(path, look)
