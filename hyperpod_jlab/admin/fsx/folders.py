"""Folder provisioners: this machine, if the file system is mounted, or a remote task. Each handles all folders of a plan at once."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import re
import secrets
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Protocol

from hyperpod_jlab.admin.folder_program import work as folder_work
from hyperpod_jlab.admin.fsx.models import Folder, FsxFileSystem, Grant
from hyperpod_jlab.core.errors import HyperpodError, RefusedError, StorageDeniedError, StorageError, UnreachableError
from hyperpod_jlab.engines.remote_task import RemoteTask
from hyperpod_jlab.launcher import assemble_modules
from hyperpod_jlab.storage.mounts import Mount, mount_of

# --------------------------------------------------------------------------------------------------
# Checks that all of a file system is mounted at a folder; otherwise folders would be created on the
# local disk.

_SOURCE = re.compile(r"[^/]+:/(?P<name>[^/]+)/?")
"""The source of a Lustre mount: servers and mount name, followed by the folder unless all of it is mounted."""


def check_mounted(root: Path, file_system: FsxFileSystem) -> None:
    """Refuse a folder at which the file system is not mounted. May block.

    Args:
        root: The folder.
        file_system: The file system.

    Raises:
        RefusedError: Nothing, another file system, or only a part of it is mounted there.
    """
    with contextlib.suppress(OSError):  # opening it triggers an automount (autofs)
        os.close(os.open(root, os.O_RDONLY | os.O_DIRECTORY))
    problem = _other_mount(mount_of(root), root.resolve(), file_system.mount_name)
    if problem is not None:
        raise RefusedError(
            f"the file system {file_system.name} is not mounted at {root}: {problem}",
            code="not_mounted",
            hint="mount the whole file system there first, or give its mount point with --mounted-at; 'findmnt -t lustre' lists mounts, "
            f"and its mount name is {file_system.mount_name}",
            detail={"field": "mounted_at"},
        )


def _other_mount(mount: Mount, options: Path, name: str | None) -> str | None:
    """The wrong mount; None if there is none."""
    if Path(mount.point) != options:
        return "this is a folder of the mount at " + mount.point
    if mount.kind != "lustre":
        return f"the file system mounted there is {mount.kind}, not Lustre"
    source = _SOURCE.fullmatch(mount.source or "")
    if source is None or mount.subpath != "/":
        return "only a folder of a file system is mounted there"
    if name not in {None, source["name"]}:
        return f"the file system mounted there has the mount name {source['name']}"
    return None


ROOT = "/"
"""The file system's root, which can be read like a folder."""

_MAX_FOLDERS = 2000
"""Folders per batch: a request is one argument of a program, which Linux limits to 128 KiB."""

_PROGRAM_PARTS = ("paths", "access_lists", "folder", "removal", "work")
"""The program's modules, in dependency order."""

_LOCAL_DELETE_S, _REMOTE_DELETE_S = 2.0, 200.0
"""Seconds after which a deletion is requested again: this machine may be interrupted in between, and a job has a time limit."""


Check = Callable[[], Awaitable[None]]
"""Raises if the work must not continue."""


class FolderProvisioner(Protocol):
    """Reads, provisions and deletes folders of a file system. Paths are the file system's own, such as ``/alice``."""

    async def look(self, paths: Collection[str]) -> Mapping[str, Folder | None]:
        """The folders' states, None if missing; all at once.

        Raises:
            HyperpodError: They cannot be read.
        """
        ...

    async def make(self, desired: Mapping[str, Folder]) -> Mapping[str, HyperpodError | None]:
        """Create folders, or set owner, mode and lists of existing ones; their contents are unchanged. All at once, and idempotent.

        Returns:
            The error of each folder; None on success.

        Raises:
            HyperpodError: The outcome is unknown for all of them.
        """
        ...

    async def delete(self, owners: Mapping[str, int], check: Check) -> Mapping[str, HyperpodError | None]:
        """Delete folders with their contents, each only if it still has this owner. A missing folder counts as deleted.

        Args:
            owners: Their owners' uids, by path.
            check: Called before each request; an exception stops the rest.

        Returns:
            The error of each folder; None on success.
        """
        ...


class _BaseProvisioner(ABC):
    """Shared by all provisioners: converts between folders and requests."""

    deletes = _REMOTE_DELETE_S
    """Time limit of one deletion request, in seconds."""

    @abstractmethod
    async def _run_request(self, do: str, folders: list[dict[str, Any]]) -> dict[str, Any]: ...

    async def look(self, paths: Collection[str]) -> Mapping[str, Folder | None]:
        """See `FolderProvisioner`."""
        folders: dict[str, Folder | None] = {}
        for result in await self._results("look", [{"path": path} for path in paths]):
            if result["error"] is not None:
                raise _error(result["path"], result["error"])
            folders[result["path"]] = _folder(result["found"])
        return folders

    async def make(self, desired: Mapping[str, Folder]) -> Mapping[str, HyperpodError | None]:
        """See `FolderProvisioner`."""
        results: dict[str, HyperpodError | None] = {}
        request = [_folder_spec(path, folder) for path, folder in desired.items()]
        for result in await self._results("make", request):
            path, error = result["path"], result["error"]
            if error is not None:
                results[path] = _error(path, error)
            else:
                results[path] = _difference_error(path, _folder(result["found"]), desired[path])
        return results

    async def delete(self, owners: Mapping[str, int], check: Check) -> Mapping[str, HyperpodError | None]:
        """See `FolderProvisioner`."""
        ended: dict[str, HyperpodError | None] = {}
        try:
            while remaining := [path for path in owners if path not in ended]:
                await check()
                request = [{"path": path, "uid": owners[path]} for path in remaining]
                for result in await self._results("delete", request):
                    path, problem = result["path"], result["error"]
                    if problem is not None:
                        ended[path] = _error(path, problem)
                    elif result["found"]:
                        ended[path] = None
        except HyperpodError as error:
            ended |= dict.fromkeys((path for path in owners if path not in ended), error)
        return {path: ended[path] for path in owners}

    async def _results(self, do: str, folders: list[dict[str, Any]]) -> list[dict[str, Any]]:
        if not folders:
            return []
        results: list[dict[str, Any]] = []
        for begin in range(0, len(folders), _MAX_FOLDERS):
            results += (await self._run_request(do, folders[begin : begin + _MAX_FOLDERS]))["results"]
        if [item["path"] for item in results] != [item["path"] for item in folders]:
            raise _no_response_error()
        return results


class LocalFolderProvisioner(_BaseProvisioner):
    """Provisions folders below a mount point of this machine.

    Args:
        root: Where the whole file system is mounted.
        file_system: The file system that must be mounted there on each request; None: any.
    """

    deletes = _LOCAL_DELETE_S

    def __init__(self, root: Path, file_system: FsxFileSystem | None = None) -> None:
        self._root, self._folder_spec = root, file_system

    def for_file_system(self, file_system: FsxFileSystem) -> LocalFolderProvisioner:
        """The same, restricted to this file system."""
        return LocalFolderProvisioner(self._root, file_system)

    async def _run_request(self, do: str, folders: list[dict[str, Any]]) -> dict[str, Any]:
        if self._folder_spec is not None:
            await asyncio.to_thread(check_mounted, self._root, self._folder_spec)
        request = {"root": str(self._root), "do": do, "folders": folders, "seconds": self.deletes}
        return await asyncio.to_thread(folder_work.work, request)


class RemoteFolderProvisioner(_BaseProvisioner):
    """Provisions folders of a file system that is mounted elsewhere.

    Args:
        task: The remote task.
    """

    def __init__(self, task: RemoteTask) -> None:
        self._task = task

    async def _run_request(self, do: str, folders: list[dict[str, Any]]) -> dict[str, Any]:
        key, name = secrets.token_hex(32), f"hpj-folders-{secrets.token_hex(6)}"
        request = {
            "root": self._task.root,
            "do": do,
            "folders": folders,
            "seconds": self.deletes,
            "key": key,
            "reply": self._task.result_dir,
            "name": name,
        }
        program = await asyncio.to_thread(_program, folder_work.encode_request(request))
        response = folder_work.open_response(await self._task.run(program, name), key)
        if response is None:
            raise _no_response_error()
        if response.get("error") == "not_mounted":
            raise RefusedError(
                f"no file system is mounted at {self._task.root} on the machine that checks the folders",
                code="not_mounted",
                hint="give the mount point of the whole file system there: --mounted-at",
            )
        return response


@functools.lru_cache(maxsize=1)
def folder_program() -> str:
    """The program without its request, as one text."""
    return assemble_modules(Path(folder_work.__file__).parent, _PROGRAM_PARTS).decode("ascii")


def _program(request: str) -> str:
    """The program with its request."""
    return f'{folder_program()}\n\nsys.exit(main("{request}"))\n'


def _folder_spec(path: str, folder: Folder) -> dict[str, Any]:
    return {
        "path": path,
        "uid": folder.uid,
        "gid": folder.gid,
        "mode": folder.mode,
        "acl": [list(grant) for grant in folder.acl],
        "default": [list(grant) for grant in folder.default],
    }


def _folder(data: Mapping[str, Any] | None) -> Folder | None:
    if data is None:
        return None
    if data.get("other"):
        return Folder(0, 0, 0, other=True)
    return Folder(
        data["uid"],
        data["gid"],
        data["mode"],
        _grants(data["acl"]),
        _grants(data["default"]),
        takes_acls=data["takes_acls"],
        empty=data["empty"],
    )


def _grants(grants: list[list[Any]]) -> tuple[Grant, ...]:
    return tuple((str(tag), number, int(bits)) for tag, number, bits in grants)


def _difference_error(path: str, actual: Folder | None, desired: Folder) -> HyperpodError | None:
    """The error for a folder that differs from the desired state although all system calls succeeded."""
    if actual == desired:
        return None
    state_text = "missing" if actual is None else actual.words
    return StorageError(
        f"{path} is {state_text}, although all changes were accepted",
        code="not_as_wanted",
        hint="check whether someone else changes it, then run this again",
    )


def _no_response_error() -> UnreachableError:
    return UnreachableError(
        "the answer about the folders was incomplete",
        code="no_answer",
        hint="run this again; finished steps are not repeated",
    )


_ERRORS: Mapping[str, tuple[type[HyperpodError], str, str]] = {
    "no_path": (RefusedError, "'{path:.60}' is not a valid folder path", "it must start with a slash, such as /shared"),
    "no_folder": (
        RefusedError,
        "{path} is a file or a link on the file system, or is below one",
        "check what it is, and move it",
    ),
    "no_parent": (RefusedError, "the parent folder of {path} does not exist", "create it, or choose another folder"),
    "foreign_parent": (
        RefusedError,
        "{path} was not created or changed, since others could replace it: {words}",
        "let root own the folders above it and only root write to them, or choose another folder",
    ),
    "foreign_folder": (
        RefusedError,
        "{path} belongs to uid {words} and was not changed",
        "check its owner and content, then move it or change its owner with chown",
    ),
    "in_use": (
        RefusedError,
        "a program keeps writing files into {path} while they are deleted",
        "stop that program, then delete the rest where the file system is mounted",
    ),
    "mounted_below": (
        RefusedError,
        "a file system is mounted at {path} or below it, at {words}; it and the folders around it were not changed",
        "unmount it there, then delete the rest",
    ),
    "no_acl": (
        StorageError,
        "{path}: the file system has no ACLs, so only its owner has access",
        "mount it with ACLs, or leave out --cluster-user",
    ),
}
"""By the program's error codes: kind, message and hint."""


def _error(path: str, error: Mapping[str, str]) -> HyperpodError:
    code, detail = error["code"], error["words"]
    if code in _ERRORS:
        kind, message, hint = _ERRORS[code]
        return kind(message.format(path=path, words=detail), code=code, hint=hint)
    if code == "denied":
        return StorageDeniedError(
            f"{path}: {detail}", hint="this needs root on a machine that mounts the file system without root squash"
        )
    return StorageError(f"{path}: {detail}")
