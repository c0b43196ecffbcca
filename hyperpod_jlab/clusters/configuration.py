"""Read the configuration: TOML files; later files override earlier ones."""

from __future__ import annotations

import os
import re
import stat
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hyperpod_jlab.aws.file_systems import LustreMount, lustre_mounts
from hyperpod_jlab.clusters.identity import private_reason, shared_space
from hyperpod_jlab.clusters.toml_place import place_of, steps_to, written
from hyperpod_jlab.core.config import Settings
from hyperpod_jlab.core.errors import ConflictError, InvalidInputError, StorageDeniedError, StorageError
from hyperpod_jlab.core.nested import merge
from hyperpod_jlab.core.validation import parse
from hyperpod_jlab.storage.mounts import Mount, all_mounts
from hyperpod_jlab.storage.partition import Partition

if TYPE_CHECKING:
    from tomlkit import TOMLDocument


# --------------------------------------------------------------------------------------------------
# The storage partition for runs, and the reason for the choice.

STUDIO_MOUNT = Path("/mnt/custom-file-systems/fsx_lustre")
"""Where Studio mounts FSx for Lustre file systems, each in its own folder."""

_NAME_PATH_HINT = "set path under [storage] in the configuration to use another one"


@dataclass(frozen=True)
class PartitionChoice:
    """The partition, how it was chosen, and notes on the candidates that were not."""

    partition: Partition
    chosen_by: str
    notes: tuple[str, ...] = ()


def choose_partition(settings: Settings) -> PartitionChoice:
    """The storage partition: the configured one, else a mount of Studio, else a folder in the user's data directory.

    Takes the first writable mount by name; in a shared space it skips the private partitions of user profiles.

    Raises:
        InvalidInputError: The configured path is not absolute.
    """
    shared = settings.storage.shared
    if settings.storage.path is not None:
        root = Path(settings.storage.path).expanduser()
        if not root.is_absolute():
            raise InvalidInputError(
                f"storage.path must be an absolute path, not {settings.storage.path}",
                code="invalid_config",
                hint="start it with a slash, such as /home/sagemaker-user/fsx",
                detail={"field": "storage.path"},
            )
        return PartitionChoice(_partition(root, shared), "the configuration")
    mounts = _studio_mounts()
    if not mounts:
        return PartitionChoice(_partition(_data_folder(), shared), "default")
    private = _private_mounts(mounts)
    notes = [f"{path} cannot be used in this shared space: {reason}" for path, reason in private.items()]
    offered = [path for path in mounts if path not in private]
    if not offered:
        notes.append(f"runs go to a folder of this machine, which clusters cannot see; {_NAME_PATH_HINT}")
        return PartitionChoice(_partition(_data_folder(), shared), "default", tuple(notes))
    best_path = min(offered, key=lambda path: (mounts[path].read_only, path))
    if len(offered) > 1:
        other_mounts = ", ".join(str(path) for path in offered if path != best_path)
        notes.append(f"runs go to {best_path}, although {other_mounts} is mounted too; {_NAME_PATH_HINT}")
    return PartitionChoice(_partition(best_path, shared), "Studio's mount", tuple(notes))


def _partition(root: Path, shared: bool) -> Partition:
    return Partition(Path(os.path.normpath(root)), shared=shared)


def _studio_mounts() -> dict[Path, Mount]:
    """Reads the mount table only: touching a mount whose server is gone can block forever."""
    try:
        mounts = {Path(mount.point): mount for mount in all_mounts()}
    except OSError:  # not Linux
        return {}
    return {point: mounts[point] for point in sorted(mounts) if point.parent == STUDIO_MOUNT}


def _private_mounts(mounts: Iterable[Path]) -> dict[Path, str]:
    """The mounts that are private in this space, with the reason."""
    if shared_space() is None:
        return {}
    lustre: dict[Path, LustreMount] = {mount.point: mount for mount in lustre_mounts()}
    reasons = {path: private_reason(lustre[path]) for path in mounts if path in lustre}
    return {path: reason for path, reason in reasons.items() if reason is not None}


def _data_folder() -> Path:
    home = os.environ.get("XDG_DATA_HOME") or Path("~/.local/share").expanduser()
    return Path(home) / "hyperpod-jlab" / "partition"


_LINE = re.compile(r"\(at line (\d+), column (\d+)\)")


def config_files() -> list[Path]:
    """The configuration files in order of precedence, lowest first; ``$HYPERPOD_CONFIG`` replaces all of them."""
    environment_file = os.environ.get("HYPERPOD_CONFIG")
    if environment_file:
        return [Path(environment_file)]
    home = os.environ.get("XDG_CONFIG_HOME") or Path("~/.config").expanduser()
    return [Path("/etc/hyperpod-jlab/config.toml"), Path(home) / "hyperpod-jlab" / "config.toml"]


def load_settings(files: list[Path] | None = None) -> Settings:
    """Read and merge the configuration.

    Raises:
        InvalidInputError: A file is not valid TOML (with line and column), or has an unknown or wrong key; anybody could have written it;
            ``$HYPERPOD_CONFIG`` does not exist.
    """
    documents: list[tuple[Path, dict[str, Any]]] = []
    merged: dict[str, Any] = {}
    for path in config_files() if files is None else files:
        documents.append((path, _read(path)))
        merged = merge(merged, documents[-1][1])
    try:
        settings = parse(Settings, merged, code="invalid_config")
    except InvalidInputError as error:
        raise _with_file(documents, error) from error
    if settings.default_cluster not in settings.clusters:
        raise _with_file(
            documents,
            InvalidInputError(
                f"default_cluster: cluster '{settings.default_cluster}' not found",
                code="invalid_config",
                hint="add it under [clusters], or choose another one: " + ", ".join(settings.clusters),
                detail={"field": "default_cluster"},
            ),
        )
    return settings


def _with_file(documents: list[tuple[Path, dict[str, Any]]], error: InvalidInputError) -> InvalidInputError:
    """The error with the file, line and column of its field: in the last file that contains the longest prefix of the field's path."""
    field = str(error.detail["field"])
    path, document = max(reversed(documents), key=lambda item: len(steps_to(item[1], field)[0]))
    steps, rest = steps_to(document, field)
    message = error.message
    if message.startswith(f"{field}: "):
        shown = ".".join(part for part in (written(steps), rest) if part)
        message = f"{shown}{message[len(field) :]}"
    detail = {**error.detail, "path": str(path)}
    where = str(path)
    if steps:
        line, column = place_of(path.read_text(encoding="utf-8"), steps)
        where = f"{path}:{line}:{column}"
        detail |= {"line": line, "column": column}
    return InvalidInputError(f"{where}: {message}", code=error.code, hint=error.hint, detail=detail)


def find_partition(settings: Settings) -> Partition:
    """The storage partition for runs (see `choose_partition`)."""
    return choose_partition(settings).partition


def _read(path: Path) -> dict[str, Any]:
    try:
        _check_writers(path)
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        if os.environ.get("HYPERPOD_CONFIG") == str(path):
            raise _syntax_error(path, "file not found (set by $HYPERPOD_CONFIG)") from None
        return {}
    except OSError as error:
        raise _syntax_error(path, f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise _syntax_error(path, "is not UTF-8 text") from error
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        match = _LINE.search(str(error))
        line, column = (int(match.group(1)), int(match.group(2))) if match else _end_position(text)
        message = _LINE.sub("", str(error)).removesuffix("(at end of document)").strip()
        raise InvalidInputError(
            f"{path}, line {line}, column {column}: {message}",
            code="invalid_config",
            hint="fix the file; its format is TOML",
            detail={"path": str(path), "line": line, "column": column},
        ) from error


def _check_writers(path: Path) -> None:
    """Refuse a file that any user could have written: it names programs that run as its reader, such as ``python`` and ``commands``."""
    file, folder = path.stat(), path.resolve().parent
    mode = folder.stat().st_mode
    if file.st_mode & stat.S_IWOTH:
        reason, fix = "all users can write to it", f"chmod o-w {path}"
    elif not mode & stat.S_IWOTH:
        return
    elif not mode & stat.S_ISVTX:
        reason, fix = f"all users can replace it in {folder}", f"chmod o-w {folder}"
    elif file.st_uid not in {0, os.getuid()}:
        reason = f"uid {file.st_uid} created it in {folder}, to which all users can write"
        fix = "use a file in a folder of your own"
    else:
        return
    raise InvalidInputError(
        f"{path} is not read: {reason}",
        code="invalid_config",
        hint=f"check its contents, then {fix}",
        detail={"path": str(path)},
    )


def _end_position(text: str) -> tuple[int, int]:
    lines = text.split("\n")
    return len(lines), len(lines[-1]) + 1


def _syntax_error(path: Path, problem: str) -> InvalidInputError:
    return InvalidInputError(f"{path}: {problem}", code="invalid_config", detail={"path": str(path)})


# --------------------------------------------------------------------------------------------------
# Edit the user's configuration file. `tomlkit` keeps comments and layout. The file is replaced
# atomically, after the result was validated.


def user_file() -> Path:
    """The user's own configuration file: ``$HYPERPOD_CONFIG``, else that in the home folder."""
    return config_files()[-1]


def add_cluster(name: str, block: str) -> Path:
    """Add a cluster to the user's configuration file; creates the file if necessary.

    Args:
        name: The cluster's name in the configuration.
        block: Its table in TOML.

    Returns:
        The file.

    Raises:
        ConflictError: The configuration already has a cluster of this name.
        InvalidInputError: The result would not be valid; the file is unchanged.
        StorageError: The file cannot be written.
    """
    check_not_used(name)

    def add(document: TOMLDocument) -> None:
        import tomlkit

        clusters = document.get("clusters")
        if isinstance(clusters, tomlkit.items.InlineTable):
            table = tomlkit.inline_table()
            table.update(tomllib.loads(block)["clusters"][name])
            clusters[name] = table
        else:
            document.append("clusters", tomlkit.parse(block)["clusters"])

    try:
        return edit_user_file(add)
    except InvalidInputError as error:
        raise InvalidInputError(
            f"the cluster cannot be added to {user_file()}: {error.message}",
            code="cannot_add",
            hint="add it with an editor; to print its table: hpj config add NAME --dry-run",
            detail={"path": str(user_file()), "config": block},
        ) from error


def check_not_used(name: str) -> None:
    """Check that no cluster of the configuration has a name.

    Raises:
        ConflictError: One has.
        InvalidInputError: The configuration is not valid.
    """
    existing = [path for path in config_files() if path.exists()]
    if name in load_settings(existing).clusters:
        raise ConflictError(
            f"the configuration already has a cluster '{name}'",
            code="cluster_exists",
            hint="use another name: hpj config add NAME --hyperpod CLUSTER",
            detail={"cluster": name},
        )


def remove_cluster(name: str) -> Path:
    """Remove a cluster from the user's configuration file.

    Args:
        name: The cluster's name in the configuration.

    Returns:
        The file.

    Raises:
        ConflictError: The cluster is not in the user's own file.
        InvalidInputError: The file, or the result, is not valid; the file is unchanged.
        StorageError: The file cannot be written.
    """

    def remove(document: TOMLDocument) -> None:
        clusters = document.get("clusters", {})
        if name not in clusters:
            raise ConflictError(
                f"cluster '{name}' is not in {user_file()}",
                code="not_in_user_file",
                hint="remove it from the file that names it: " + ", ".join(map(str, config_files())),
                detail={"cluster": name},
            )
        del clusters[name]

    return edit_user_file(remove)


def edit_user_file(change: Callable[[TOMLDocument], None]) -> Path:
    """Edit the user's configuration file; follows a symbolic link.

    Args:
        change: Changes the parsed document.

    Raises:
        InvalidInputError: The file is not valid TOML, or the result would not be a valid configuration; the file is unchanged.
        StorageError: The file cannot be written.
    """
    # Imported here: slow to import, and few commands edit the file.
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    path = user_file().resolve()
    with _write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        old_text = path.read_text(encoding="utf-8") if path.exists() else ""
        mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o644
        try:
            document = tomlkit.parse(old_text)
            change(document)
        except TOMLKitError as error:
            raise InvalidInputError(str(error), code="bad_config") from error
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                os.fchmod(descriptor, mode)
                file.write(tomlkit.dumps(document))
            _check(Path(temporary), path)
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink()
            raise
    return path


@contextmanager
def _write_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        denied = isinstance(error, PermissionError)
        reason = "" if denied else f": {error.strerror or error}"
        raise (StorageDeniedError if denied else StorageError)(
            f"the configuration file {path} cannot be written{reason}",
            hint="check the permissions of the file and its folder" if denied else None,
            detail={"path": str(path), "os_error": error.strerror},
        ) from error


def _check(written_file: Path, path: Path) -> None:
    try:
        load_settings([*config_files()[:-1], written_file])
    except InvalidInputError as error:
        message = error.message.replace(str(written_file), str(path))
        raise InvalidInputError(message, code="bad_config") from error


# --------------------------------------------------------------------------------------------------
# The base folder of relative paths when the user gives none.


def current_folder() -> Path:
    """This process's current folder.

    Raises:
        InvalidInputError: It was deleted.
    """
    try:
        return Path.cwd()
    except OSError as error:
        raise InvalidInputError(
            f"the current folder cannot be used: {error.strerror}",
            code="no_current_folder",
            hint="it may have been removed; change to another folder, such as: cd ~",
        ) from error
