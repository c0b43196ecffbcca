"""Selects the project's files to include with the code."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Literal

from hyperpod_jlab.capture import git
from hyperpod_jlab.capture.captured import ProjectFile
from hyperpod_jlab.capture.ignore import MAX_LINES, IgnoreTree, TooManyPatternsError
from hyperpod_jlab.capture.secrets import is_secret_file
from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.core.finding import Finding, Level
from hyperpod_jlab.core.spec import FilesSpec
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.descent import OWN_FOLDER
from hyperpod_jlab.storage.partition import Partition

# --------------------------------------------------------------------------------------------------
# Lists a project's files: with git in a working tree, else by a walk that uses the same ignore
# files.

MAX_FILES = 20_000
"""A folder with more files than this is not a project but a home folder or a data set."""

MAX_SECONDS = 20.0
"""Timeout for listing; a slow file system must not delay a submit for minutes."""

GITS = ".gitignore"
HYPERPODIGNORE = ".hyperpodignore"

_COMMIT_TIMEOUT_S = 2.0
_MAX_IGNORE_FILE = 1 << 20
_CHECK_EVERY = 50
"""Files between looks at the clock. Each may be compared with thousands of patterns."""

_DEFAULT_EXCLUDES = (
    ".DS_Store .Trash .cache .eggs .git .hg .ipynb_checkpoints .mypy_cache .nox "
    ".pytest_cache .ruff_cache .svn .tox .venv __pycache__ __pypackages__ node_modules"
)
_EXCLUDED_NAMES = frozenset(_DEFAULT_EXCLUDES.split())
_ALWAYS_EXCLUDED = frozenset({".git", ".ipynb_checkpoints", "__pycache__"})
_ODD_COMPONENTS = frozenset({"", ".", ".."})


class TooManyFilesError(Exception):
    """The folder has more files than a project; the text names what was found."""


@dataclass
class Listing:
    """Paths relative to the root, and unreadable folders or files."""

    paths: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)


def find_commit(folder: Path) -> str | None:
    """The commit that is checked out in the working tree of a folder; None if it is in none, or git does not say in time."""
    try:
        output = git.ask(folder, "rev-parse", "--verify", "HEAD", seconds=_COMMIT_TIMEOUT_S)
    except git.SlowGitError:
        return None
    return output.decode("ascii", "replace").strip() or None if output else None


class Lister:
    """Lists one tree.

    Raises (``run``):
        TooManyFilesError: Too many entries (`MAX_FILES`), or a timeout.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._deadline = time.monotonic() + MAX_SECONDS
        self._listing = Listing()
        self._own_rules = IgnoreTree()

    def run(self) -> Listing:
        """List the tree under the root."""
        self._read_hyperpodignore(HYPERPODIGNORE)
        self._tree()
        self._listing.paths = sorted(set(self._listing.paths))
        return self._listing

    def list_below(self, folder: str) -> list[str]:
        """All files under a folder, including ignored ones, except what is never included."""
        self._listing = Listing()
        self._walk(folder, IgnoreTree(), heed=False)
        return self._listing.paths

    def _tree(self) -> None:
        """List the root and the repositories in it. Git names only the folder of a nested repository or a submodule."""
        pending, seen = [""], set[str]()
        while pending:
            prefix = pending.pop()
            place = os.path.realpath(self._root / prefix)
            if place in seen:  # a hostile index can name a folder that links to itself
                continue
            seen.add(place)
            paths = self._git(self._root / prefix)
            if paths is None:
                self._walk(prefix, IgnoreTree(), heed=True)
                continue
            for path in paths:
                if path.endswith(f"/{HYPERPODIGNORE}") or (prefix and path == HYPERPODIGNORE):
                    self._read_hyperpodignore(f"{prefix}{path}")
            for number, path in enumerate(paths):
                full_path = f"{prefix}{path}"
                if number % _CHECK_EVERY == 0:
                    self._check_time()
                if self._own_rules.ignores(full_path.rstrip("/"), folder=full_path.endswith("/")):
                    continue
                if full_path.endswith("/") or _is_real_folder(self._root / full_path):
                    pending.append(full_path.rstrip("/") + "/")
                else:
                    self._add(full_path)

    def _git(self, folder: Path) -> list[str] | None:
        """Tracked and new files from git; None if the folder is not in a usable working tree."""
        if not (folder / ".git").exists() and self._is_ignored(folder):
            return None
        options = ("-z", "-t", "--cached", "--others", "--exclude-standard")
        tagged = self._ask_git(folder, "ls-files", *options)
        if tagged is None:
            return None
        # The tag of a new file is "?". A tracked one is wanted whatever its name is.
        listed = ((one[:2] == "? ", one[2:]) for one in tagged)
        paths = [path for is_new, path in listed if not (is_new and _is_excluded(path))]
        # Git does not check the names in an index.
        return [path for path in paths if _ODD_COMPONENTS.isdisjoint(path.removesuffix("/").split("/"))]

    def _is_ignored(self, folder: Path) -> bool:
        """Whether an outer repository ignores this folder, as a repository for a home folder's dot files does."""
        return self._ask_git(folder.parent, "check-ignore", "-q", f"./{folder.name}") is not None

    def _ask_git(self, folder: Path, command: Literal["check-ignore", "ls-files"], *arguments: str) -> list[str] | None:
        try:
            seconds = self._deadline - time.monotonic()
            output = git.ask(folder, command, *arguments, seconds=seconds)
        except git.SlowGitError as error:
            raise TooManyFilesError(f"{error}") from error
        return None if output is None else [os.fsdecode(one) for one in output.split(b"\0") if one]

    def _walk(self, prefix: str, ignores: IgnoreTree, *, heed: bool) -> None:
        pending = [prefix]
        while pending:
            folder = pending.pop()
            entries = self._entries(folder)
            if heed:
                self._heed(folder, {entry.name for entry in entries}, ignores)
            for number, entry in enumerate(entries):
                if number % _CHECK_EVERY == 0:
                    self._check_time()
                path = f"{folder}{entry.name}"
                is_folder = entry.is_dir(follow_symlinks=False)
                if _has_component(entry.name, _EXCLUDED_NAMES if heed else _ALWAYS_EXCLUDED):
                    continue
                if heed and any(tree.ignores(path, folder=is_folder) for tree in (ignores, self._own_rules)):
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
        if path.endswith(".pyc") or _has_component(path, _ALWAYS_EXCLUDED):
            return
        self._listing.paths.append(path)
        if len(self._listing.paths) > MAX_FILES:
            raise TooManyFilesError(f"it holds more than {MAX_FILES} files")

    def _check_time(self) -> None:
        if time.monotonic() > self._deadline:
            raise TooManyFilesError(f"listing its files took longer than {MAX_SECONDS:.0f} s")

    def _heed(self, folder: str, names: set[str], ignores: IgnoreTree) -> None:
        """Read the ignore files of a folder in the walk."""
        if GITS in names:
            self._read_rules(f"{folder}{GITS}", ignores)
        if HYPERPODIGNORE in names and folder:
            self._read_hyperpodignore(f"{folder}{HYPERPODIGNORE}")

    def _read_hyperpodignore(self, path: str) -> None:
        """Read a ``.hyperpodignore``: its matches are left out, tracked or not."""
        self._read_rules(path, self._own_rules)

    def _read_rules(self, path: str, tree: IgnoreTree) -> None:
        self._check_time()
        try:
            data = descent.read_named(self._root / path, _MAX_IGNORE_FILE)
            tree.add(path.rpartition("/")[0], data.decode("utf-8-sig", "surrogateescape"))
        except TooManyPatternsError as error:
            raise TooManyFilesError(f"{path} has more than {MAX_LINES} lines") from error
        except OSError as error:
            if error.errno == errno.EFBIG:
                raise TooManyFilesError(f"{path} is larger than 1 MiB") from error


def _is_real_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except (OSError, ValueError):
        return False


def _is_excluded(path: str) -> bool:
    return _has_component(path, _EXCLUDED_NAMES)


def _has_component(path: str, names: frozenset[str]) -> bool:
    """Whether a path contains one of these names, or our own folder on a partition."""
    parts = path.split("/")
    return not names.isdisjoint(parts) or any(map(OWN_FOLDER.fullmatch, parts))


_SMALLER = "exclude files with .hyperpodignore, or use --no-project-files or --project-root"
_MAX_SHOWN = 5
_WILD = frozenset("*?[")
_SYSTEM_FOLDERS = {
    "/",
    "/data",
    "/fsx",
    "/home",
    "/media",
    "/mnt",
    "/opt",
    "/root",
    "/srv",
    "/tmp",  # noqa: S108 - nothing is written there
    "/usr",
    "/var",
}

_PROJECT_FILES = (".git", ".hyperpodignore", "pyproject.toml", "setup.py")


@dataclass(frozen=True)
class Project:
    """A project's root, its included files, and the findings."""

    root: Path
    files: tuple[ProjectFile, ...] = ()
    findings: tuple[Finding, ...] = ()

    def relative_to_root(self, path: Path) -> PurePosixPath | None:
        """The path relative to the root, and so to ``work/``; None outside of the root."""
        try:
            return PurePosixPath(_resolve_path(path).relative_to(_resolve_path(self.root)))
        except ValueError:
            return None

    def exclude(self, paths: Iterable[str]) -> tuple[ProjectFile, ...]:
        """The files without some that are included otherwise."""
        excluded_paths = set(paths)
        return tuple(file for file in self.files if file.path not in excluded_paths)


def _resolve_path(path: Path) -> Path:
    """An absolute path without ``..``; links are not resolved."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow links


@dataclass
class _Sorting:
    """The listed files, sorted into included and excluded ones."""

    included: dict[str, ProjectFile] = field(default_factory=dict)
    secret: list[str] = field(default_factory=list)
    outside_paths: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    unnamed: list[str] = field(default_factory=list)
    folder_links: list[tuple[str, str]] = field(default_factory=list)


def collect_project(files: FilesSpec, folder: Path, base: Path | None = None) -> Project:
    """List the project's files.

    Args:
        files: The spec's file settings.
        folder: The source's folder, which is the root unless the spec names another.
        base: The base folder for a relative root.

    Raises:
        InvalidInputError: The spec's root is not a folder, or a pattern is invalid.
    """
    root = _root(files, folder, base or folder)
    if not files.project:
        return Project(root)
    try:
        return _collect(files, root)
    except OSError as error:
        reason = f"{root} cannot be read ({error.strerror}); no project files are copied"
        return Project(root, (), (_finding("warning", "unreadable", reason),))


def _collect(files: FilesSpec, root: Path) -> Project:
    if not root.is_dir():
        return Project(
            root, (), (_finding("warning", "no_project", f"folder {root} not found; no project files are copied"),)
        )
    if files.root is None and _is_broad(root):
        paths, findings = _unmatched_includes(root)
    else:
        try:
            listing = Lister(root).run()
        except TooManyFilesError as error:
            return Project(root, (), (_too_many_files(root, str(error)),))
        paths, findings = listing.paths, []
        if listing.unreadable:
            findings.append(_excluded_finding("unreadable", "cannot be read", listing.unreadable))
    try:
        included = list(_included(root, files.include))
    except TooManyFilesError as error:
        return Project(root, (), (_too_many_files(root, str(error)),))
    sorting = _sort_files(root, [*paths, *included], set(files.include))
    project_files = tuple(sorting.included[path] for path in sorted(sorting.included))
    findings += _findings(root, files, sorting, project_files)
    return Project(root, project_files, tuple(findings))


def _root(files: FilesSpec, folder: Path, base: Path) -> Path:
    if files.root is None:
        return folder
    root = base / Path(files.root).expanduser()
    if root.is_dir():
        return root
    raise InvalidInputError(
        f"the project root {root} is not a folder", code="no_such_folder", detail={"field": "files.root"}
    )


def _is_broad(root: Path) -> bool:
    """Whether a folder has mixed content: a home folder, a file system's root, a storage partition."""
    resolved = root.resolve()
    if str(resolved) in _SYSTEM_FOLDERS or resolved == Path.home().resolve():
        return True
    if any((resolved / file_name).exists() for file_name in _PROJECT_FILES):
        return False
    own_folders = (
        resolved / partition_folder.folder.name / "runs" for partition_folder in Partition(resolved).own_folders
    )
    return any(folder.is_dir() for folder in own_folders) or resolved.is_mount()


def _unmatched_includes(root: Path) -> tuple[list[str], list[Finding]]:
    """For a folder that is not a project: the modules directly in it."""
    names = sorted(entry.name for entry in root.iterdir() if entry.suffix == ".py" and entry.is_file())
    message = f"{root} is not a project folder, so only the .py files directly in it are copied ({len(names)})"
    hint = "move the code into a separate folder, or use --project-root or --include"
    return names[:MAX_FILES], [_finding("info", "broad_root", message, hint)]


def _included(root: Path, patterns: Iterable[str]) -> Iterator[str]:
    """Files that match the patterns, including links that lead outside, which are reported and left out later."""
    escapes = _EscapeCache(root)
    for pattern in patterns:
        parts = PurePosixPath(pattern)
        try:
            if parts.is_absolute() or ".." in parts.parts or not parts.parts:
                raise ValueError("it leads out of the project")
            escape = _find_escape(escapes, parts)
            matches = [root / escape] if escape is not None else sorted(root.glob(pattern))
        except (ValueError, NotImplementedError) as error:
            raise InvalidInputError(
                f"the pattern '{pattern}' is not valid: {error}",
                code="bad_pattern",
                hint="use a pattern relative to the project root, such as data/*.csv",
                detail={"field": "files.include"},
            ) from error
        for match in matches:
            path = match.relative_to(root).as_posix()
            is_folder = match.is_dir() and not match.is_symlink()
            if is_folder and escapes.find(path) is not None:
                yield from Lister(root).list_below(f"{path}/")
            else:
                yield path


def _find_escape(escapes: _EscapeCache, pattern: PurePosixPath) -> str | None:
    """The first folder of a pattern's literal prefix that links outside of the project, so that its content is not even listed."""
    path = PurePosixPath()
    for part in pattern.parts[:-1]:
        if _WILD.intersection(part):
            return None
        path /= part
        try:
            if (escapes.root / path).is_symlink() and escapes.find(str(path)) is None:
                return str(path)
        except (OSError, RuntimeError):
            return None  # a dangling or circular link: there is no file
    return None


class _EscapeCache:
    """Resolved paths of a project's files, with links in any folder followed. Each folder is resolved once.

    Attributes:
        root: The project's root, as given.
        resolved: The same with links resolved.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.resolved = root.resolve()
        self._folders: dict[str, str | None] = {}

    def find(self, path: str) -> str | None:
        """The resolved path relative to the root; None outside of it.

        Raises:
            OSError: The path does not exist, or a link is circular.
            RuntimeError: The same, in older versions of Python.
        """
        if (self.root / path).is_symlink():
            return self._find_link_escape((self.root / path).resolve(strict=True))
        folder, _, name = path.rpartition("/")
        if folder not in self._folders:
            self._folders[folder] = self._find_link_escape((self.root / folder).resolve(strict=True))
        paths = self._folders[folder]
        return f"{paths}/{name}" if paths else None if paths is None else name

    def _find_link_escape(self, link: Path) -> str | None:
        if link == self.resolved:
            return ""
        if not link.is_relative_to(self.resolved):
            return None
        return link.relative_to(self.resolved).as_posix()


def _sort_files(root: Path, paths: Iterable[str], requested: set[str]) -> _Sorting:
    sorting = _Sorting()
    escapes = _EscapeCache(root)
    for path in paths:
        if path in sorting.included:
            continue
        if is_secret_file(path) and path not in requested:
            sorting.secret.append(path)
        elif not _has_printable_name(path):
            sorting.unnamed.append(path.encode("utf-8", "backslashreplace").decode())
        else:
            _sort_file(escapes, path, sorting)
    for link, target in sorting.folder_links:
        # A link to a folder of the project: its files again, under the link's name.
        for file in list(sorting.included.values()):
            if file.path.startswith(f"{target}/"):
                place = f"{link}/{file.path[len(target) + 1 :]}"
                sorting.included.setdefault(place, ProjectFile(place, file.location, file.size, file.executable))
    return sorting


def _sort_file(escapes: _EscapeCache, path: str, sorting: _Sorting) -> None:
    source = escapes.root / path
    try:
        inner = escapes.find(path)
        if inner is None:
            sorting.outside_paths.append(path)
            return
        if inner != path:
            source = escapes.resolved / inner
            if is_secret_file(inner):
                sorting.secret.append(path)
                return
            if source.is_dir():
                sorting.folder_links.append((path, inner))
                return
        status = source.stat()
    except FileNotFoundError:
        return  # tracked but deleted, a dangling link, or deleted since the listing
    except (OSError, RuntimeError):
        sorting.unreadable.append(path)
        return
    if not stat.S_ISREG(status.st_mode):
        return  # sockets and pipes are not project files
    if not os.access(source, os.R_OK):
        sorting.unreadable.append(path)
        return
    executable = bool(status.st_mode & stat.S_IXUSR)
    sorting.included[path] = ProjectFile(path, str(source), status.st_size, executable)


def _has_printable_name(path: str) -> bool:
    """Whether a name is UTF-8; others cannot be sent to the nodes."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _findings(root: Path, files: FilesSpec, sorting: _Sorting, paths: tuple[ProjectFile, ...]) -> Iterator[Finding]:
    if sorting.secret:
        yield _excluded_finding(
            "secret_files",
            "look like secrets and are not copied",
            sorting.secret,
            "use --secret for secrets, or --include NAME for a file that is not secret",
        )
    if sorting.outside_paths:
        yield _excluded_finding(
            "outside_links",
            "are links to outside the project and are not copied",
            sorting.outside_paths,
            "copy their targets into the project",
        )
    if sorting.unreadable:
        yield _excluded_finding("unreadable", "cannot be read and are not copied", sorting.unreadable)
    if sorting.unnamed:
        yield _excluded_finding("odd_names", "have names that are not UTF-8 and are not copied", sorting.unnamed)
    size = sum(file.size for file in paths)
    if len(paths) > MAX_FILES:
        yield _too_many_files(root, f"it holds more than {MAX_FILES} files")
    elif size > files.max_bytes:
        largest_files = sorted(paths, key=lambda file: -file.size)[:_MAX_SHOWN]
        names = ", ".join(f"{file.path} ({_format_size(file.size)})" for file in largest_files)
        message = f"the project files are {_format_size(size)}, more than {_format_size(files.max_bytes)}; the largest: {names}"
        yield _finding("error", "project_too_large", message, _SMALLER)
    elif paths:
        noun = "file" if len(paths) == 1 else "files"
        message = f"{len(paths)} project {noun} ({_format_size(size)}) will be copied from {root}"
        yield _finding("info", "project_files", message)


def _excluded_finding(code: str, reason: str, paths: list[str], hint: str | None = None) -> Finding:
    shown_paths = ", ".join(paths[:_MAX_SHOWN])
    more_text = f" and {len(paths) - _MAX_SHOWN} more" if len(paths) > _MAX_SHOWN else ""
    return _finding("warning", code, f"these files {reason}: {shown_paths}{more_text}", hint)


def _too_many_files(root: Path, detail: str) -> Finding:
    return _finding("error", "project_too_many_files", f"{root} is too large for a project: {detail}", _SMALLER)


def _finding(level: Level, code: str, message: str, hint: str | None = None) -> Finding:
    return Finding(level=level, code=code, message=message, hint=hint, field="files")


def _format_size(size: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
