"""Export, import and release of files by AWS: data repository tasks, for paths as this machine has them."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from hyperpod_jlab.aws.file_systems import find_file_system, list_associations
from hyperpod_jlab.aws.lustre import LustreMount, lustre_mounts
from hyperpod_jlab.aws.repository_tasks import cancel_task, create_task, list_tasks
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.model.errors import HyperpodError, InvalidInputError, NotFoundError
from hyperpod_jlab.model.file_system import Association
from hyperpod_jlab.model.repository_task import (
    MOST_PATHS,
    RepositoryTask,
    TaskVerb,
    linked_places,
    path_problem,
    task_path,
)
from hyperpod_jlab.services.file_states import Result
from hyperpod_jlab.storage.mounts import mount_of
from hyperpod_jlab.storage.patience import within


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
