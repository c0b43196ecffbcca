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
from hyperpod_jlab.launcher import assembled
from hyperpod_jlab.storage.mounts import Mount, mount_of

# --------------------------------------------------------------------------------------------------
# Whether a file system is mounted on this machine, as a whole, where somebody says it is: else folders would be made on the machine's own disk.

_SOURCE = re.compile(r"[^/]+:/(?P<name>[^/]+)/?")
"""What is mounted of Lustre: servers and mount name, and behind them the folder where it is not the whole."""


def check_mounted(root: Path, wanted: FsxFileSystem) -> None:
    """Refuse a folder at which the file system is not mounted. May block.

    Args:
        root: The folder.
        wanted: The file system.

    Raises:
        RefusedError: Nothing is mounted there, something else, or only a part of it.
    """
    with contextlib.suppress(OSError):  # what is mounted on demand (autofs) is so by being opened
        os.close(os.open(root, os.O_RDONLY | os.O_DIRECTORY))
    said = _otherwise(mount_of(root), root.resolve(), wanted.mount_name)
    if said is not None:
        raise RefusedError(
            f"the file system {wanted.name} is not mounted at {root}: {said}",
            code="not_mounted",
            hint="mount the whole file system there first, or give its mount point with --mounted-at; 'findmnt -t lustre' lists mounts, "
            f"and its mount name is {wanted.mount_name}",
            detail={"field": "mounted_at"},
        )


def _otherwise(mount: Mount, place: Path, name: str | None) -> str | None:
    """What is there in its place; None: nothing else is."""
    if Path(mount.point) != place:
        return "this is a folder of the mount at " + mount.point
    if mount.kind != "lustre":
        return f"the file system mounted there is {mount.kind}, not Lustre"
    source = _SOURCE.fullmatch(mount.source or "")
    if source is None or mount.inner != "/":
        return "only a folder of a file system is mounted there"
    if name not in {None, source["name"]}:
        return f"the file system mounted there has the mount name {source['name']}"
    return None


ROOT = "/"
"""The file system itself, which may be looked at like a folder of it."""

_MOST = 2000
"""Folders in a batch: an order travels in one word of a program, of which Linux takes 128 KiB."""

_PARTS = ("paths", "access_lists", "folder", "removal", "work")
"""The program's, each standing only on those before it."""

_DELETES_HERE, _DELETES_THERE = 2.0, 200.0
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

    async def make(self, wanted: Mapping[str, Folder]) -> Mapping[str, HyperpodError | None]:
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


class _Keeper(ABC):
    """What all keepers have in common: folders to an order, and an answer to folders."""

    deletes = _DELETES_THERE
    """Seconds for which a program deletes."""

    @abstractmethod
    async def _answer(self, do: str, folders: list[dict[str, Any]]) -> dict[str, Any]: ...

    async def look(self, paths: Collection[str]) -> Mapping[str, Folder | None]:
        """See `FolderProvisioner`."""
        found: dict[str, Folder | None] = {}
        for result in await self._results("look", [{"path": path} for path in paths]):
            if result["error"] is not None:
                raise _error(result["path"], result["error"])
            found[result["path"]] = _folder(result["found"])
        return found

    async def make(self, wanted: Mapping[str, Folder]) -> Mapping[str, HyperpodError | None]:
        """See `FolderProvisioner`."""
        made: dict[str, HyperpodError | None] = {}
        order = [_wanted(path, folder) for path, folder in wanted.items()]
        for result in await self._results("make", order):
            path, said = result["path"], result["error"]
            if said is not None:
                made[path] = _error(path, said)
            else:
                made[path] = _unlike(path, _folder(result["found"]), wanted[path])
        return made

    async def delete(
        self, owners: Mapping[str, int], check: Check
    ) -> Mapping[str, HyperpodError | None]:
        """See `FolderProvisioner`."""
        ended: dict[str, HyperpodError | None] = {}
        try:
            while left := [path for path in owners if path not in ended]:
                await check()
                order = [{"path": path, "uid": owners[path]} for path in left]
                for result in await self._results("delete", order):
                    path, said = result["path"], result["error"]
                    if said is not None:
                        ended[path] = _error(path, said)
                    elif result["found"]:
                        ended[path] = None
        except HyperpodError as error:
            ended |= dict.fromkeys((path for path in owners if path not in ended), error)
        return {path: ended[path] for path in owners}

    async def _results(self, do: str, folders: list[dict[str, Any]]) -> list[dict[str, Any]]:
        if not folders:
            return []
        results: list[dict[str, Any]] = []
        for begin in range(0, len(folders), _MOST):
            results += (await self._answer(do, folders[begin : begin + _MOST]))["results"]
        if [one["path"] for one in results] != [one["path"] for one in folders]:
            raise _no_answer()
        return results


class FoldersHere(_Keeper):
    """Folders below a mount point of this machine.

    Args:
        root: Where the whole file system is mounted.
        wanted: The file system that has to be mounted there, each time that something is to be done; None: whatever is there.
    """

    deletes = _DELETES_HERE

    def __init__(self, root: Path, wanted: FsxFileSystem | None = None) -> None:
        self._root, self._wanted = root, wanted

    def of(self, wanted: FsxFileSystem) -> FoldersHere:
        """The same for just this file system."""
        return FoldersHere(self._root, wanted)

    async def _answer(self, do: str, folders: list[dict[str, Any]]) -> dict[str, Any]:
        if self._wanted is not None:
            await asyncio.to_thread(check_mounted, self._root, self._wanted)
        order = {"root": str(self._root), "do": do, "folders": folders, "seconds": self.deletes}
        return await asyncio.to_thread(folder_work.work, order)


class FoldersThere(_Keeper):
    """Folders of a file system that is mounted elsewhere.

    Args:
        errand: The way there.
    """

    def __init__(self, errand: RemoteTask) -> None:
        self._errand = errand

    async def _answer(self, do: str, folders: list[dict[str, Any]]) -> dict[str, Any]:
        key, name = secrets.token_hex(32), f"hpj-folders-{secrets.token_hex(6)}"
        order = {
            "root": self._errand.root,
            "do": do,
            "folders": folders,
            "seconds": self.deletes,
            "key": key,
            "reply": self._errand.reply,
            "name": name,
        }
        program = await asyncio.to_thread(_program, folder_work.packed(order))
        answer = folder_work.unsealed(await self._errand.run(program, name), key)
        if answer is None:
            raise _no_answer()
        if answer.get("error") == "not_mounted":
            raise RefusedError(
                f"no file system is mounted at {self._errand.root} where folders are checked",
                code="not_mounted",
                hint="give the mount point of the whole file system there: --mounted-at",
            )
        return answer


@functools.lru_cache(maxsize=1)
def folder_program() -> str:
    """The program without its order, as one text."""
    return assembled(Path(folder_work.__file__).parent, _PARTS).decode("ascii")


def _program(order: str) -> str:
    """The program with its order."""
    return f'{folder_program()}\n\nsys.exit(main("{order}"))\n'


def _wanted(path: str, folder: Folder) -> dict[str, Any]:
    return {
        "path": path,
        "uid": folder.uid,
        "gid": folder.gid,
        "mode": folder.mode,
        "acl": [list(grant) for grant in folder.acl],
        "default": [list(grant) for grant in folder.default],
    }


def _folder(found: Mapping[str, Any] | None) -> Folder | None:
    if found is None:
        return None
    if found.get("other"):
        return Folder(0, 0, 0, other=True)
    return Folder(
        found["uid"],
        found["gid"],
        found["mode"],
        _grants(found["acl"]),
        _grants(found["default"]),
        takes_acls=found["takes_acls"],
        empty=found["empty"],
    )


def _grants(listed: list[list[Any]]) -> tuple[Grant, ...]:
    return tuple((str(tag), number, int(bits)) for tag, number, bits in listed)


def _unlike(path: str, found: Folder | None, wanted: Folder) -> HyperpodError | None:
    """What is to be said of a folder that is not as it was wanted, though the system said yes to all."""
    if found == wanted:
        return None
    said = "missing" if found is None else found.words
    return StorageError(
        f"{path} is {said}, although all changes were accepted",
        code="not_as_wanted",
        hint="check whether someone else changes it, then run this again",
    )


def _no_answer() -> UnreachableError:
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


def _error(path: str, said: Mapping[str, str]) -> HyperpodError:
    code, words = said["code"], said["words"]
    if code in _ERRORS:
        kind, message, hint = _ERRORS[code]
        return kind(message.format(path=path, words=words), code=code, hint=hint)
    if code == "denied":
        return StorageDeniedError(
            f"{path}: {words}",
            hint="this needs root on a machine that mounts the file system without root squash",
        )
    return StorageError(f"{path}: {words}")


# --------------------------------------------------------------------------------------------------
# An errand: a small program that runs once as root on the controller of a Slurm cluster, by a session of Systems Manager, and prints its answer.

TIMEOUT = 60.0
"""Seconds until a session is given up."""

GROUP = "controller-machine"
"""What AWS' samples and its console call the controller's instance group."""

ON_NODES = "/fsx"
"""Where HyperPod's life cycle scripts mount the cluster's file system, if AWS tells of no other place."""

_LINE = 1000
"""Letters of a line: a terminal takes no more than 4,095 at once."""

_READER = (
    "import base64,itertools,os,signal,sys,tty,zlib;signal.alarm(300);"
    "os.isatty(0) and tty.setcbreak(0);print({first!r}+{rest!r},flush=True);"
    "exec(zlib.decompress(base64.b64decode(''.join(itertools.takewhile(lambda line:line!='.\\n',sys.stdin)))))"
)
"""Reads a program and runs it: a session's command takes some kilobytes at most. The terminal does not repeat it, and it ends by itself. What it says first is in
two parts, since a terminal may show the command too.
"""


class NodeErrand:
    """Runs programs on a node.

    Args:
        aws: AWS in the cluster's region.
        target: The node, as Systems Manager calls it.
        root: Where it has the whole file system.
    """

    reply: str | None = None

    def __init__(self, aws: Aws, target: str, root: str) -> None:
        self._aws, self._target = aws, target
        self.root = root

    async def run(self, program: str, name: str) -> str:
        """Run a program that prints its answer (see `engines.remote_task.RemoteTask`).

        Raises:
            UnreachableError: The node or its session does not answer.
            HyperpodError: See `aws.errors`.
        """
        ready = f"{name}-{secrets.token_hex(6)}"
        packed = base64.b64encode(zlib.compress(program.encode("ascii"), 9)).decode()
        text = "".join(f"{line}\n" for line in (*textwrap.wrap(packed, _LINE), "."))
        return await run(self._aws, self._target, command(ready), ready, text, TIMEOUT)


def command(ready: str) -> str:
    """The command: as root, whoever the session's user is."""
    reader = shlex.quote(_READER.format(first=ready[:4], rest=ready[4:]))
    return f'as=; [ "$(id -u)" -eq 0 ] || as="sudo -n"; exec $as python3 -I -c {reader}'


async def to_controller(
    aws: Aws, name: str, group: str | None, file_system: str | None
) -> NodeErrand | None:
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
    found = await describe_cluster(aws, HyperpodCluster(name, name, await aws.region(), ""))
    if not found.on_slurm:
        return None
    groups = [one for one in found.groups or () if one.slurm_role == "Controller"]
    groups = groups or [one for one in found.groups or () if one.name == (group or GROUP)]
    names = {one.name for one in groups}
    running = [
        (one.instance_group, one.name)
        async for page in list_instances(aws, name)
        for one in page
        if one.instance_group in names and one.status == "Running"
    ]
    if not running:
        raise NotFoundError(
            f"the cluster {name} has no running controller"
            + ("" if names else f": it has no instance group {group or GROUP}"),
            code="no_controller",
            hint="set ControllerGroup to the controller's instance group",
            detail={"field": "ControllerGroup"},
        )
    mounts = [storage for one in groups for storage in one.storage]
    fitting = [one for one in mounts if file_system in {None, one.dns_name.partition(".")[0]}]
    if mounts and not fitting:
        raise RefusedError(
            f"the controller of {name} does not mount {file_system}",
            code="not_mounted",
            hint="set FileSystemId to the file system that the cluster mounts",
        )
    root = next((one.path for one in fitting if one.path), ON_NODES)
    ident, (instance_group, instance) = found.arn.rpartition("/")[2], min(running)
    return NodeErrand(aws, f"sagemaker-cluster:{ident}_{instance_group}-{instance}", root)
