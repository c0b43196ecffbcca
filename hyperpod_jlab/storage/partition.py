"""The storage partition as this machine sees it, and the paths of our files on it.

The kernel determines a run's owner: on a shared partition each user has a folder ``.hyperpod-<uid>`` that nobody else can write to. Users share no
folder of ours: the owner of a folder may rename everything in it, sticky bit or not.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath

from hyperpod_jlab.core.errors import InvalidInputError, StorageDeniedError, StorageError
from hyperpod_jlab.core.run_id import RUN_ID, SHARDS, shard_of, split_run_id
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.acl import has_acl, is_uid, own_uid
from hyperpod_jlab.storage.files import storage_errors
from hyperpod_jlab.storage.mounts import check_present, note_present
from hyperpod_jlab.storage.owners import unsafe_parent

FOLDER = ".hyperpod"
"""Our folder on a private partition."""

_MAX_RUNS = 300
"""Maximum runs read from one shard of another user."""

_MAX_USERS = 4096
"""Maximum number of users whose folders are read."""


@dataclass(frozen=True)
class RunFolder:
    """A folder that may contain runs.

    Attributes:
        folder: The folder, ``.hyperpod`` or ``.hyperpod-<uid>``.
        uid: The user whose runs are read from it; entries of other users are ignored.
    """

    folder: Path
    uid: int

    @property
    def runs(self) -> Path:
        """The folder of its shards."""
        return self.folder / "runs"

    def bundle(self, run_id: str) -> Path:
        """The path of a run's bundle here; it need not exist."""
        parent, _ = split_run_id(run_id)
        return self.runs / shard_of(parent) / parent

    def run_ids(self) -> Iterator[str]:
        """The ids of the runs here, of any owner; of another user's folder at most the limit. May block."""
        limit = None if self.uid == own_uid() else _MAX_RUNS
        for number in range(SHARDS):
            with contextlib.suppress(OSError):
                list_names = descent.list_names(self.runs / f"{number:02x}", limit)
                yield from filter(RUN_ID.fullmatch, list_names)


@dataclass(frozen=True)
class Partition:
    """A storage partition.

    Attributes:
        root: The partition's root on this machine.
        shared: Whether other users of the partition may read bundles and have their own there.
    """

    root: Path
    shared: bool = False

    @property
    def folder(self) -> Path:
        """This user's folder on the partition, for new runs."""
        return self.root / (f"{FOLDER}-{own_uid()}" if self.shared else FOLDER)

    @property
    def runs(self) -> Path:
        """The folder of this user's shards."""
        return self.folder / "runs"

    @property
    def content(self) -> Path:
        """This user's content store."""
        return self.folder / "code"

    @property
    def environments(self) -> Path:
        """This user's environments, which runs bring along."""
        return self.folder / "environments"

    @property
    def folder_mode(self) -> int:
        """Mode of our folders."""
        return 0o755 if self.shared else 0o700

    @property
    def file_mode(self) -> int:
        """Mode of our files."""
        return 0o644 if self.shared else 0o600

    @property
    def own_folders(self) -> tuple[RunFolder, RunFolder]:
        """The folders that may contain this user's runs: the current one, and the one from before ``shared`` was set or changed."""
        own_id = own_uid()
        own_name, other_name = f"{FOLDER}-{own_id}", FOLDER
        first, second = (own_name, other_name) if self.shared else (other_name, own_name)
        return RunFolder(self.root / first, own_id), RunFolder(self.root / second, own_id)

    def other_folders(self) -> Iterator[RunFolder]:
        """The folders of the other users of a shared partition, by uid. May block.

        Raises:
            StorageError: The partition's root cannot be listed.
        """
        if not self.shared:
            return
        with storage_errors(self.root):
            try:
                with os.scandir(self.root) as entries:
                    known_uids = (uid for uid in map(_owner_of, entries) if uid is not None)
                    uids = sorted(islice(known_uids, _MAX_USERS))
            except FileNotFoundError:
                return
        for uid in uids:
            if uid != own_uid():
                yield RunFolder(self.root / f"{FOLDER}-{uid}", uid)

    def bundle(self, run_id: str) -> Path:
        """The path of a new run's bundle, or of the array that a child belongs to.

        Raises:
            InvalidInputError: It is not a run id.
        """
        return self.own_folders[0].bundle(run_id)

    def find(self, run_id: str) -> tuple[Path, int] | None:
        """The bundle of a run (for a child: its array's) and its required owner; this user's own before others'. May block.

        Raises:
            InvalidInputError: It is not a run id.
            StorageError: Permission denied, or the partition fails.
        """
        first, second = self.own_folders
        bundle = first.bundle(run_id)
        if _state(bundle) is not None:
            return bundle, first.uid
        with contextlib.suppress(StorageDeniedError):
            bundle = second.bundle(run_id)
            status = _state(bundle)
            # In the old layout's folder, other users' runs are beside one's own.
            if status is not None and is_uid(status.st_uid, second.uid):
                return bundle, second.uid
        foreign = self.find_foreign(run_id)
        return None if foreign is None else (foreign.bundle(run_id), foreign.uid)

    def run_ids(self) -> set[str]:
        """The ids of all runs on the partition, of all users: cheaper than looking up many ids. May block."""
        folders = (*self.own_folders, *self.other_folders())
        return {run_id for folder in folders for run_id in folder.run_ids()}

    def find_foreign(self, run_id: str) -> RunFolder | None:
        """The folder in which another user of a shared partition has a run of this id. May block.

        Raises:
            InvalidInputError: It is not a run id.
            StorageError: The partition fails.
        """
        for folder in self.other_folders():
            try:
                if _state(folder.bundle(run_id)) is not None:
                    return folder
            except StorageDeniedError:  # its owner has closed it, or the owner is wrong
                continue
        return None

    def has_run(self, run_id: str) -> bool:
        """Whether the bundle of the run, or of a child's array, exists. May block.

        Raises:
            InvalidInputError: It is not a run id.
            StorageError: Permission denied, or the partition fails.
        """
        return self.find(run_id) is not None

    def prepare(self) -> None:
        """Create our folders, and refuse a partition on which another user could replace them.

        Raises:
            StorageError: The partition is missing, not mounted or not writable; another user can replace folders on it; or our folder is a symlink or
                another user's.
        """
        check_present(self.root)
        with storage_errors(self.root):
            if not self.root.is_dir():
                self._make_root()
            unsafe = unsafe_parent(self.root, group=self.shared)
            if self.shared and unsafe is not None and unsafe.path == Path(os.path.realpath(self.root)):
                # The root is this user's own, but open to everybody, as Studio creates it: close
                # it.
                with contextlib.suppress(PermissionError):
                    self.root.chmod(unsafe.mode | stat.S_ISVTX)
                    unsafe = unsafe_parent(self.root, group=self.shared)
        if unsafe is not None:
            raise StorageError(
                f"another user can replace your files: {unsafe.path} {unsafe.reason}",
                code="untrusted_parent",
                hint=unsafe.fix,
                detail={"path": str(unsafe.path), "owner": unsafe.uid, "mode": f"{unsafe.mode:04o}"},
            )
        for folder in (self.folder, self.runs, self.content):
            self.make_folder(folder)
        note_present(self.root)

    def _make_root(self) -> None:
        try:
            for folder in reversed([self.root, *self.root.parents]):
                if not folder.is_dir():  # regardless of the umask, nobody else may replace its entries
                    folder.mkdir(exist_ok=True, mode=0o700 if folder == self.root else 0o755)
        except (PermissionError, FileExistsError, FileNotFoundError, NotADirectoryError) as error:
            kind = StorageDeniedError if isinstance(error, PermissionError) else StorageError
            raise kind(
                f"the storage partition {self.root} cannot be created: {error.strerror}",
                hint="set path under [storage] in the configuration to your own folder; without it, the home folder is used",
                detail={"path": str(self.root), "os_error": error.strerror},
            ) from error

    def make_folder(self, folder: Path) -> None:
        """Create a folder of ours if it does not exist.

        Raises:
            StorageError: It cannot be created, is a link or a file, or belongs to another user.
        """
        with storage_errors(folder):
            try:
                if descent.make_folder(folder, self.folder_mode):
                    return
            except NotADirectoryError:
                pass  # reported below
            self._check_own(folder)

    def _check_own(self, folder: Path) -> None:
        """Refuse a folder that is a symlink, not a folder, another user's, or writable by others."""
        status = descent.state(folder)
        mode = stat.S_IMODE(status.st_mode)
        if not stat.S_ISDIR(status.st_mode):
            problem = "is a symbolic link" if stat.S_ISLNK(status.st_mode) else "is not a folder"
            raise StorageError(
                f"{folder} {problem}",
                code="untrusted_folder",
                hint="delete it or ask an administrator to, or set path under [storage] in the configuration to another folder",
                detail={"path": str(folder)},
            )
        if status.st_uid != os.getuid():
            raise StorageDeniedError(
                f"{folder} belongs to another user (uid {status.st_uid})",
                code="untrusted_folder",
                hint="set path under [storage] in the configuration to another folder, or ask an administrator",
                detail={"path": str(folder), "owner": status.st_uid},
            )
        # With an access list, which admits the jobs' user, the group bits are its mask; else they
        # are the group's.
        strict_mode = mode & ~(0o002 if has_acl(folder) else 0o022)
        expected_mode = strict_mode | 0o055 if self.shared else strict_mode
        if expected_mode != mode:
            descent.change_mode(folder, expected_mode)


def _owner_of(entry: os.DirEntry[str]) -> int | None:
    """The user of one of our folders; None if it is something else, or its owner does not match its name."""
    match = entry.name.startswith(f"{FOLDER}-") and descent.OWN_FOLDER.fullmatch(entry.name)
    if not match:
        return None
    try:
        owner = entry.stat(follow_symlinks=False).st_uid
    except OSError:
        return None
    uid = int(match[1])
    return uid if is_uid(owner, uid) else None


def _state(path: Path) -> os.stat_result | None:
    """The lstat of a path; None if it does not exist."""
    with storage_errors(path):
        try:
            return descent.state(path)
        except (FileNotFoundError, NotADirectoryError, descent.ForeignFolderError):
            return None


# --------------------------------------------------------------------------------------------------
# Path translation: the same partition as this machine and as the nodes see it.
#
# Paths in a bundle are relative to the partition, so this is the only place that maps between the
# two.


@dataclass(frozen=True)
class PathMap:
    """The partition's root `local` (on this machine) and `remote` (on the nodes, or in the pods).

    Attributes:
        shared: Whether both are the same partition; else only the code of a run with our launcher is copied to `remote`.
    """

    local: PurePosixPath
    remote: PurePosixPath
    shared: bool = True

    @classmethod
    def create_map(
        cls, local: str | PurePosixPath, remote: str | PurePosixPath | None = None, *, shared: bool = True
    ) -> PathMap:
        """Create a map; without `remote` the nodes see the partition at the same path."""
        return cls(PurePosixPath(local), PurePosixPath(remote if remote is not None else local), shared)

    def to_cluster_path(self, path: str | PurePosixPath) -> PurePosixPath:
        """A path of this machine as the nodes see it.

        Raises:
            InvalidInputError: The path is not on the partition.
        """
        return self._move(PurePosixPath(path), self.local, self.remote)

    def to_local_path(self, path: str | PurePosixPath) -> PurePosixPath:
        """A path of the nodes as this machine sees it.

        Raises:
            InvalidInputError: The path is not on the partition.
        """
        return self._move(PurePosixPath(path), self.remote, self.local)

    def to_cluster_python(self, python: str) -> str:
        """A Python's path on the nodes: translated if it is on the partition, else unchanged."""
        path = PurePosixPath(python)
        return str(self.to_cluster_path(path)) if path.is_relative_to(self.local) else python

    @staticmethod
    def _move(path: PurePosixPath, source: PurePosixPath, target: PurePosixPath) -> PurePosixPath:
        if ".." in path.parts or not path.is_relative_to(source):
            raise InvalidInputError(
                f"{path} is not on the storage partition {source}",
                code="outside_partition",
                hint="move it to the partition, or use a path on it",
                detail={"path": str(path), "partition": str(source)},
            )
        return target / path.relative_to(source)
