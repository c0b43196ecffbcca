"""Who looks at folders of a file system, makes and deletes them: this machine, where it is mounted, or an errand to where it is. All of a plan's at once."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import functools
import os
import re
import secrets
import shlex
import textwrap
import zlib
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Protocol

from hyperpod_jlab.admin.folder_program import work as folder_work
from hyperpod_jlab.admin.fsx.models import Folder, FsxFileSystem, Grant
from hyperpod_jlab.aws.clusters import describe_cluster, list_instances
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.aws.session_manager import run
from hyperpod_jlab.core.errors import (
    HyperpodError,
    NotFoundError,
    RefusedError,
    StorageDeniedError,
    StorageError,
    UnreachableError,
)
from hyperpod_jlab.core.hyperpod import HyperpodCluster
from hyperpod_jlab.engines.remote_task import RemoteTask
from hyperpod_jlab.launcher import assemble_modules
from hyperpod_jlab.storage.mounts import Mount, mount_of

# --------------------------------------------------------------------------------------------------
# Whether a file system is mounted on this machine, as a whole, where somebody says it is: else folders would be made on the machine's own disk.

_SOURCE = re.compile(r"[^/]+:/(?P<name>[^/]+)/?")
"""What is mounted of Lustre: servers and mount name, and behind them the folder where it is not the whole."""


def check_mounted(root: Path, file_system: FsxFileSystem) -> None:
    """Refuse a folder at which the file system is not mounted. May block.

    Args:
        root: The folder.
        file_system: The file system.

    Raises:
        RefusedError: Nothing is mounted there, something else, or only a part of it.
    """
    with contextlib.suppress(OSError):  # what is mounted on demand (autofs) is so by being opened
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
    """What is there in its place; None: nothing else is."""
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
"""The file system itself, which may be looked at like a folder of it."""

_MAX_FOLDERS = 2000
"""Folders in a batch: an order travels in one word of a program, of which Linux takes 128 KiB."""

_PROGRAM_PARTS = ("paths", "access_lists", "folder", "removal", "work")
"""The program's, each standing only on those before it."""

_LOCAL_DELETE_S, _REMOTE_DELETE_S = 2.0, 200.0
"""Seconds after which a deletion is asked for once more: this machine can be interrupted in between, and a job has a time limit."""


Check = Callable[[], Awaitable[None]]
"""Sees whether something may go on, and raises what stands against it."""


class FolderProvisioner(Protocol):
    """Looks at folders of a file system, makes and deletes them. Paths are the file system's own, such as ``/alice``."""

    async def look(self, paths: Collection[str]) -> Mapping[str, Folder | None]:
        """Folders as they are, None where there is none; all at once.

        Raises:
            HyperpodError: They cannot be looked at.
        """
        ...

    async def make(self, desired: Mapping[str, Folder]) -> Mapping[str, HyperpodError | None]:
        """Make folders, or set owner, mode and lists of those that are there; what lies in them is left as it is. All at once, and again without harm.

        Returns:
            What kept each from being as wanted; None: nothing.

        Raises:
            HyperpodError: It is not known of any of them what became of it.
        """
        ...

    async def delete(
        self, owners: Mapping[str, int], check: Check
    ) -> Mapping[str, HyperpodError | None]:
        """Delete folders with all that is in them, each if it still belongs to this user. What is not there is deleted.

        Args:
            owners: Their owners' numbers, by path.
            check: Called before each go; what it raises ends the rest.

        Returns:
            What kept each from being deleted; None: nothing.
        """
        ...


class _BaseProvisioner(ABC):
    """What all keepers have in common: folders to an order, and an answer to folders."""

    deletes = _REMOTE_DELETE_S
    """Seconds for which a program deletes."""

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

    async def delete(
        self, owners: Mapping[str, int], check: Check
    ) -> Mapping[str, HyperpodError | None]:
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
            results += (await self._run_request(do, folders[begin : begin + _MAX_FOLDERS]))[
                "results"
            ]
        if [item["path"] for item in results] != [item["path"] for item in folders]:
            raise _no_response_error()
        return results


class LocalFolderProvisioner(_BaseProvisioner):
    """Folders below a mount point of this machine.

    Args:
        root: Where the whole file system is mounted.
        file_system: The file system that has to be mounted there, each time that something is to be done; None: whatever is there.
    """

    deletes = _LOCAL_DELETE_S

    def __init__(self, root: Path, file_system: FsxFileSystem | None = None) -> None:
        self._root, self._folder_spec = root, file_system

    def for_file_system(self, file_system: FsxFileSystem) -> LocalFolderProvisioner:
        """The same for just this file system."""
        return LocalFolderProvisioner(self._root, file_system)

    async def _run_request(self, do: str, folders: list[dict[str, Any]]) -> dict[str, Any]:
        if self._folder_spec is not None:
            await asyncio.to_thread(check_mounted, self._root, self._folder_spec)
        request = {"root": str(self._root), "do": do, "folders": folders, "seconds": self.deletes}
        return await asyncio.to_thread(folder_work.work, request)


class RemoteFolderProvisioner(_BaseProvisioner):
    """Folders of a file system that is mounted elsewhere.

    Args:
        task: The way there.
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
                f"no file system is mounted at {self._task.root} where folders are checked",
                code="not_mounted",
                hint="give the mount point of the whole file system there: --mounted-at",
            )
        return response


@functools.lru_cache(maxsize=1)
def folder_program() -> str:
    """The program without its order, as one text."""
    return assemble_modules(Path(folder_work.__file__).parent, _PROGRAM_PARTS).decode("ascii")


def _program(request: str) -> str:
    """The program with its order."""
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
    """What is to be said of a folder that is not as it was wanted, though the system said yes to all."""
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
    "no_path": (
        RefusedError,
        "'{path:.60}' is not a valid folder path",
        "it must start with a slash, such as /shared",
    ),
    "no_folder": (
        RefusedError,
        "{path} is a file or a link on the file system, or is below one",
        "check what it is, and move it",
    ),
    "no_parent": (
        RefusedError,
        "the parent folder of {path} does not exist",
        "create it, or choose another folder",
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
"""By the program's codes: kind, message and hint."""


def _error(path: str, error: Mapping[str, str]) -> HyperpodError:
    code, detail = error["code"], error["words"]
    if code in _ERRORS:
        kind, message, hint = _ERRORS[code]
        return kind(message.format(path=path, words=detail), code=code, hint=hint)
    if code == "denied":
        return StorageDeniedError(
            f"{path}: {detail}",
            hint="this needs root on a machine that mounts the file system without root squash",
        )
    return StorageError(f"{path}: {detail}")


# --------------------------------------------------------------------------------------------------
# An errand: a small program that runs once as root on the controller of a Slurm cluster, by a session of Systems Manager, and prints its answer.

TIMEOUT_S = 60.0
"""Seconds until a session is given up."""

GROUP = "controller-machine"
"""What AWS' samples and its console call the controller's instance group."""

ON_NODES = "/fsx"
"""Where HyperPod's life cycle scripts mount the cluster's file system, if AWS tells of no other place."""

_MAX_LINE = 1000
"""Letters of a line: a terminal takes no more than 4,095 at once."""

_READER = (
    "import base64,itertools,os,signal,sys,tty,zlib;signal.alarm(300);"
    "os.isatty(0) and tty.setcbreak(0);print({first!r}+{rest!r},flush=True);"
    "exec(zlib.decompress(base64.b64decode(''.join(itertools.takewhile(lambda line:line!='.\\n',sys.stdin)))))"
)
"""Reads a program and runs it: a session's command takes some kilobytes at most. The terminal does not repeat it, and it ends by itself. What it says first is in
two parts, since a terminal may show the command too.
"""


class NodeTask:
    """Runs programs on a node.

    Args:
        aws: AWS in the cluster's region.
        target: The node, as Systems Manager calls it.
        root: Where it has the whole file system.
    """

    result_dir: str | None = None

    def __init__(self, aws: Aws, target: str, root: str) -> None:
        self._aws, self._target = aws, target
        self.root = root

    async def run(self, program: str, name: str) -> str:
        """Run a program that prints its answer (see `engines.remote_task.RemoteTask`).

        Raises:
            UnreachableError: The node or its session does not answer.
            HyperpodError: See `aws.errors`.
        """
        token = f"{name}-{secrets.token_hex(6)}"
        encoded_program = base64.b64encode(zlib.compress(program.encode("ascii"), 9)).decode()
        text = "".join(f"{line}\n" for line in (*textwrap.wrap(encoded_program, _MAX_LINE), "."))
        return await run(self._aws, self._target, command(token), token, text, TIMEOUT_S)


def command(token: str) -> str:
    """The command: as root, whoever the session's user is."""
    reader = shlex.quote(_READER.format(first=token[:4], rest=token[4:]))
    return f'as=; [ "$(id -u)" -eq 0 ] || as="sudo -n"; exec $as python3 -I -c {reader}'


async def open_controller_task(
    aws: Aws, name: str, group: str | None, file_system: str | None
) -> NodeTask | None:
    """The way to a cluster's controller; None: it is none of Slurm.

    Args:
        aws: AWS in the cluster's region.
        name: The HyperPod cluster.
        group: The controller's instance group, where the cluster's settings do not say which it is.
        file_system: The file system that the controller is to have; None: the one that it mounts.

    Raises:
        NotFoundError: There is no such cluster, or no controller that runs.
        RefusedError: The controller mounts other file systems.
        HyperpodError: See `aws.errors`.
    """
    description = await describe_cluster(aws, HyperpodCluster(name, name, await aws.region(), ""))
    if not description.on_slurm:
        return None
    groups = [item for item in description.groups or () if item.slurm_role == "Controller"]
    groups = groups or [item for item in description.groups or () if item.name == (group or GROUP)]
    names = {item.name for item in groups}
    running = [
        (item.instance_group, item.name)
        async for page in list_instances(aws, name)
        for item in page
        if item.instance_group in names and item.status == "Running"
    ]
    if not running:
        raise NotFoundError(
            f"the cluster {name} has no running controller"
            + ("" if names else f": it has no instance group {group or GROUP}"),
            code="no_controller",
            hint="set ControllerGroup to the controller's instance group",
            detail={"field": "ControllerGroup"},
        )
    mounts = [storage for item in groups for storage in item.storage]
    matching = [item for item in mounts if file_system in {None, item.dns_name.partition(".")[0]}]
    if mounts and not matching:
        raise RefusedError(
            f"the controller of {name} does not mount {file_system}",
            code="not_mounted",
            hint="set FileSystemId to the file system that the cluster mounts",
        )
    root = next((item.path for item in matching if item.path), ON_NODES)
    ident, (instance_group, instance) = description.arn.rpartition("/")[2], min(running)
    return NodeTask(aws, f"sagemaker-cluster:{ident}_{instance_group}-{instance}", root)
