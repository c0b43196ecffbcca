"""Listing the files of a project: by git where the folder is a working tree, else by a walk that heeds the same ignore files."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from hyperpod_jlab.capture.ignore import IgnoreTree
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.descent import OUR_FOLDER

MAX_FILES = 20_000
"""A project with more files than this is no project, but a home folder or a data set."""

MAX_SECONDS = 20.0
"""Time for listing; a slow file system must not hold a submit up for minutes."""

GITS = ".gitignore"
OURS = ".hyperpodignore"

_LEFT_OUT_NAMES = (
    ".DS_Store .Trash .cache .eggs .git .hg .ipynb_checkpoints .mypy_cache .nox "
    ".pytest_cache .ruff_cache .svn .tox .venv __pycache__ __pypackages__ node_modules"
)
_LEFT_OUT = frozenset(_LEFT_OUT_NAMES.split())
_NEVER = frozenset({".git", ".ipynb_checkpoints", "__pycache__"})


class TooManyFilesError(Exception):
    """The folder holds more than a project does; the text says what was met."""


@dataclass
class Listing:
    """Paths relative to the root, and folders or files that could not be read."""

    paths: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)


class Lister:
    """Lists one tree.

    Raises (``run``):
        TooManyFilesError: After `MAX_FILES` entries, or when it takes too long.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._until = time.monotonic() + MAX_SECONDS
        self._listing = Listing()
        self._ours = IgnoreTree()

    def run(self) -> Listing:
        """List the tree under the root."""
        self._heed_ours(OURS)
        self._tree("")
        self._listing.paths = sorted(set(self._listing.paths))
        return self._listing

    def below(self, folder: str) -> list[str]:
        """All files under a folder, ignored ones too, but for what never goes along."""
        self._listing = Listing()
        self._walk(folder, IgnoreTree(), heed=False)
        return self._listing.paths

    def _tree(self, prefix: str) -> None:
        """List a folder that may be a repository of its own."""
        found = self._git(self._root / prefix)
        if found is None:
            self._walk(prefix, IgnoreTree(), heed=True)
            return
        for path in found:
            if path.endswith(f"/{OURS}") or (prefix and path == OURS):
                self._heed_ours(f"{prefix}{path}")
        for path in found:
            whole = f"{prefix}{path}"
            if self._ours.ignores(whole.rstrip("/"), folder=whole.endswith("/")):
                continue
            target = self._root / whole
            if whole.endswith("/") or (target.is_dir() and not target.is_symlink()):
                # A repository in the repository, or a submodule: git names only its folder.
                self._tree(whole.rstrip("/") + "/")
            else:
                self._add(whole)

    def _git(self, folder: Path) -> list[str] | None:
        """Tracked and new files by git; None when the folder is no part of a working tree that git would read."""
        if not (folder / ".git").exists() and self._is_ignored(folder):
            return None
        tracked = self._ask_git(folder, "ls-files", "-z", "--cached")
        if tracked is None:
            return None
        new = self._ask_git(folder, "ls-files", "-z", "--others", "--exclude-standard") or []
        return tracked + [path for path in new if not _is_left_out(path)]

    def _is_ignored(self, folder: Path) -> bool:
        """Whether an outer repository ignores this very folder, as one that holds a home folder's dot files does."""
        return self._ask_git(folder.parent, "check-ignore", "-q", folder.name) is not None

    def _ask_git(self, folder: Path, *arguments: str) -> list[str] | None:
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("GIT_")
        }
        environment.update(GIT_OPTIONAL_LOCKS="0", LC_ALL="C")
        # A repository's configuration may name a program for core.fsmonitor: listing files must not start it.
        command = ["git", "-c", "core.fsmonitor=false", "-C", str(folder), *arguments]
        left = self._until - time.monotonic()
        try:
            done = subprocess.run(
                command, capture_output=True, check=False, timeout=max(0.1, left), env=environment
            )
        except subprocess.TimeoutExpired as error:
            raise TooManyFilesError(
                f"git needs more than {MAX_SECONDS:.0f} s to list it"
            ) from error
        except OSError:
            return None
        if done.returncode != 0:
            return None
        return [os.fsdecode(name) for name in done.stdout.split(b"\0") if name]

    def _walk(self, prefix: str, ignores: IgnoreTree, *, heed: bool) -> None:
        pending = [prefix]
        while pending:
            folder = pending.pop()
            entries = self._entries(folder)
            if heed:
                self._heed(folder, {entry.name for entry in entries}, ignores)
            for entry in entries:
                path = f"{folder}{entry.name}"
                is_folder = entry.is_dir(follow_symlinks=False)
                if _has_any(entry.name, _LEFT_OUT if heed else _NEVER):
                    continue
                if heed and any(
                    tree.ignores(path, folder=is_folder) for tree in (ignores, self._ours)
                ):
                    continue
                if not is_folder:
                    self._add(path)
                elif not (heed and (Path(entry.path) / "pyvenv.cfg").is_file()):
                    pending.append(path + "/")

    def _entries(self, folder: str) -> list[os.DirEntry[str]]:
        self._check_time()
        try:
            with os.scandir(self._root / folder) as entries:
                return list(entries)
        except OSError:
            self._listing.unreadable.append(folder or ".")
            return []

    def _add(self, path: str) -> None:
        if path.endswith(".pyc") or _has_any(path, _NEVER):
            return
        self._listing.paths.append(path)
        if len(self._listing.paths) > MAX_FILES:
            raise TooManyFilesError(f"it holds more than {MAX_FILES} files")
        if len(self._listing.paths) % 500 == 0:
            self._check_time()

    def _check_time(self) -> None:
        if time.monotonic() > self._until:
            raise TooManyFilesError(f"listing it takes more than {MAX_SECONDS:.0f} s")

    def _heed(self, folder: str, names: set[str], ignores: IgnoreTree) -> None:
        """Read the ignore files of a folder that is walked."""
        if GITS in names:
            ignores.add(folder.rstrip("/"), _read_text(self._root / folder / GITS))
        if OURS in names and folder:
            self._heed_ours(f"{folder}{OURS}")

    def _heed_ours(self, path: str) -> None:
        """Read a ``.hyperpodignore``: what it names stays, tracked or not."""
        self._ours.add(path.rpartition("/")[0], _read_text(self._root / path))


def _is_left_out(path: str) -> bool:
    return _has_any(path, _LEFT_OUT)


def _has_any(path: str, names: frozenset[str]) -> bool:
    """Whether a part of a path is one of these names, or our own folder on a partition."""
    parts = path.split("/")
    return not names.isdisjoint(parts) or any(map(OUR_FOLDER.fullmatch, parts))


def _read_text(path: Path) -> str:
    try:
        return descent.read_named(path).decode("utf-8-sig", "replace")
    except OSError:
        return ""
