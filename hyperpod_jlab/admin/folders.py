"""Who looks at folders of a file system, makes and deletes them: this machine, where it is mounted, or an errand to where it is. All of a plan's at once."""

from __future__ import annotations

import asyncio
import functools
import secrets
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Protocol

from hyperpod_jlab.admin.folder_program import work as folder_work
from hyperpod_jlab.admin.mounted import check_mounted
from hyperpod_jlab.admin.there import FileSystem, Folder, Grant
from hyperpod_jlab.launcher import assembled
from hyperpod_jlab.model.errors import (
    HyperpodError,
    RefusedError,
    StorageDeniedError,
    StorageError,
    UnreachableError,
)

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


class FolderKeeper(Protocol):
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


class Errand(Protocol):
    """Has a small program run as root where the whole file system is mounted.

    Attributes:
        root: Where it is mounted there.
        reply: The folder of the file system in which the program leaves its answer as a file; None: it prints it.
    """

    @property
    def root(self) -> str: ...  # noqa: D102

    @property
    def reply(self) -> str | None: ...  # noqa: D102

    async def run(self, program: str, name: str) -> str:
        """Run a Python program (3.8 or later, standard library) to its end; its answer, which may be less than all of it.

        Args:
            program: Its text: plain ASCII.
            name: A new name, of small letters and digits: the answer's file.

        Raises:
            HyperpodError: It was not run, or has failed.
        """
        ...


class _Keeper(ABC):
    """What all keepers have in common: folders to an order, and an answer to folders."""

    deletes = _DELETES_THERE
    """Seconds for which a program deletes."""

    @abstractmethod
    async def _answer(self, do: str, folders: list[dict[str, Any]]) -> dict[str, Any]: ...

    async def look(self, paths: Collection[str]) -> Mapping[str, Folder | None]:
        """See `FolderKeeper`."""
        found: dict[str, Folder | None] = {}
        for result in await self._results("look", [{"path": path} for path in paths]):
            if result["error"] is not None:
                raise _error(result["path"], result["error"])
            found[result["path"]] = _folder(result["found"])
        return found

    async def make(self, wanted: Mapping[str, Folder]) -> Mapping[str, HyperpodError | None]:
        """See `FolderKeeper`."""
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
        """See `FolderKeeper`."""
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

    def __init__(self, root: Path, wanted: FileSystem | None = None) -> None:
        self._root, self._wanted = root, wanted

    def of(self, wanted: FileSystem) -> FoldersHere:
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

    def __init__(self, errand: Errand) -> None:
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
                f"nothing is mounted at {self._errand.root} where folders are looked at",
                code="not_mounted",
                hint="say where the whole file system is mounted there: --mounted-at",
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
    said = "not there" if found is None else found.words
    return StorageError(
        f"{path} is {said}, although the file system took all of it",
        code="not_as_wanted",
        hint="see whether somebody else changes it, and run this again",
    )


def _no_answer() -> UnreachableError:
    return UnreachableError(
        "the answer on the folders did not come back whole",
        code="no_answer",
        hint="run this again: what was done already is left as it is",
    )


_ERRORS: Mapping[str, tuple[type[HyperpodError], str, str]] = {
    "no_path": (
        RefusedError,
        "'{path:.60}' is no folder of a file system",
        "it begins with a slash, such as /shared",
    ),
    "no_folder": (
        RefusedError,
        "{path} is a file or a link on the file system, or lies below one",
        "see what it is, and move it away",
    ),
    "no_parent": (
        RefusedError,
        "the folder above {path} is not there",
        "make it, or name another",
    ),
    "foreign_folder": (
        RefusedError,
        "{path} belongs to uid {words} and is left to it",
        "see whose it is and what is in it, and move it away or give it away by chown",
    ),
    "in_use": (
        RefusedError,
        "somebody puts files into {path} as fast as they are deleted",
        "stop what writes there, and delete what is left where the file system is mounted",
    ),
    "mounted_below": (
        RefusedError,
        "something is mounted at {path} or in it, at {words}: it was left as it is, and so is what is around it",
        "unmount it there, and delete what is left",
    ),
    "no_acl": (
        StorageError,
        "{path}: the file system keeps no access lists (ACLs), so only its owner is let in",
        "mount it with ACLs, or leave --cluster-user out",
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
            hint="this takes root where the file system is mounted without root squash",
        )
    return StorageError(f"{path}: {words}")
