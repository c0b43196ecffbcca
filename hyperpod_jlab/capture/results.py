"""Reads a function run's result: its value, or its exception, which is raised here with the remote traceback."""

from __future__ import annotations

import io
import json
import os
import pickle
import stat
import sys
from pathlib import Path
from typing import Any, ClassVar

from hyperpod_jlab.core.errors import DeniedError, HyperpodError, NotFoundError
from hyperpod_jlab.core.finding import Finding
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.bundle import open_linked
from hyperpod_jlab.storage.files import storage_errors
from hyperpod_jlab.storage.locate import SUSPECT

_MAX_BYTES = 4 << 30
_MAX_FOREIGN_BYTES = 256 << 20
"""Maximum size in bytes of another user's result, which is read into memory."""

_TRUST_HINT = "a pickle can run code when it is loaded; use trust=True if you trust everyone who can write there"


class RemoteError(HyperpodError):
    """The function failed on the cluster. ``detail`` holds ``type`` and ``traceback``."""

    default_code: ClassVar[str] = "remote_error"
    exit_code: ClassVar[int] = 1
    status: ClassVar[int] = 409


class RemoteTraceback(Exception):  # noqa: N818 - it is no error of its own, but the cause that carries a text
    """Carries the remote traceback, as the cause of the exception that is raised here."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}" if self.args else ""


def load_result(records: Path, *, trust: bool = False) -> Any:
    """The value that a function's run returned.

    JSON and numpy files are always loaded (another user's up to 256 MiB, else up to 4 GiB). A
    pickle is loaded only if no other user (except root) can write the file or any folder up to the
    partition's root, or with `trust`.

    Args:
        records: The folder of the run's records.
        trust: Load a pickle even if other users could have written it.

    Raises:
        RemoteError: The function failed and its exception cannot be loaded; otherwise that
            exception itself is raised.
        NotFoundError: The run left no result.
        StorageError: The result is unreadable or too large.
        DeniedError: The result is an untrusted pickle.
    """
    for name, load in (("result.json", _load_json), ("result.npy", _load_npy)):
        data = _read(records / name)
        if data is not None:
            return load(data)
    data = _read_pickle(records / "result.pkl", trust=trust)
    if data is not None:
        return _load_pickle(data)
    _raise_remote(records, trust=trust)
    raise NotFoundError(
        "the run has no result",
        code="no_result",
        hint="only functions have results, after they have ended; read the log of the run",
        detail={"path": str(records)},
    )


def _load_json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise RemoteError("result.json is damaged", code="damaged_result") from error


def _load_npy(data: bytes) -> Any:
    try:
        import numpy as np
    except ImportError as error:
        raise HyperpodError(
            "the result is a numpy array, but numpy is not installed here", code="no_numpy", hint="pip install numpy"
        ) from error
    try:
        return np.load(io.BytesIO(data), allow_pickle=False)
    except Exception as error:  # for example one that claims to be larger than the memory
        raise RemoteError("result.npy is damaged", code="damaged_result") from error


def _load_pickle(data: bytes) -> Any:
    try:
        return pickle.loads(data)  # noqa: S301 - only after `_read_pickle` said that it is to be trusted
    except Exception as error:
        raise RemoteError(
            f"the result cannot be loaded here: {type(error).__name__}: {error}",
            code="result_not_loadable",
            hint="return plain data, numpy arrays or .cpu() tensors, or install the packages of its types here",
        ) from error


def _raise_remote(records: Path, *, trust: bool) -> None:
    """Raise the function's exception, if there is one."""
    text = _read(records / "exception.json")
    if text is None:
        return
    document = _load_json(text)
    if not isinstance(document, dict):
        raise RemoteError("exception.json is damaged", code="damaged_result")
    traceback = str(document.get("traceback", ""))
    try:
        data = _read_pickle(records / "exception.pkl", trust=trust)
        error = pickle.loads(data) if data is not None else None  # noqa: S301 - as above
    except Exception:  # noqa: BLE001 - not to be trusted, or not loadable here: the text form says all
        error = None
    if isinstance(error, BaseException):
        raise error from RemoteTraceback(traceback)
    raise RemoteError(
        f"{document.get('type')}: {document.get('message')}",
        detail={"type": document.get("type"), "traceback": traceback},
    ) from RemoteTraceback(traceback)


def _read(path: Path) -> bytes | None:
    max_bytes = _MAX_FOREIGN_BYTES if descent.is_foreign(path) else _MAX_BYTES
    with storage_errors(path):
        try:
            return descent.read(path, max_bytes)
        except (FileNotFoundError, NotADirectoryError):
            return None


def _read_pickle(path: Path, *, trust: bool) -> bytes | None:
    """A pickle's bytes, read from the same open file that was checked."""
    try:
        descriptor = open_linked(path) if trust else descent.open_file(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _untrusted(path, "is a link or cannot be opened") from error
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not trust:
            if any(descent.is_file(folder / SUSPECT) for folder in path.parents[:4]):
                raise _untrusted(path, "is in a folder to which another user could write")
            _check(path, status)
            for folder in _folders(path):
                _check(folder, folder.lstat())
        if status.st_size > _MAX_BYTES:
            raise _untrusted(path, "is larger than 4 GiB")
        return file.read(_MAX_BYTES)


def _folders(path: Path) -> list[Path]:
    """The folders above a file, up to the partition's root."""
    parents = list(path.absolute().parents)
    is_bundle_folder = (descent.OWN_FOLDER.fullmatch(folder.name) is not None for folder in parents)
    bundle_index = next((index for index, is_bundle in enumerate(is_bundle_folder) if is_bundle), None)
    return parents if bundle_index is None else parents[: bundle_index + 2]


def _check(path: Path, status: os.stat_result) -> None:
    """Reject what another user owns or can replace.

    Raises:
        DeniedError: With code ``untrusted_result``.
    """
    folder = stat.S_ISDIR(status.st_mode)
    if not folder and not stat.S_ISREG(status.st_mode):
        raise _untrusted(path, "is a link or not a regular file")
    if status.st_uid not in {os.getuid(), 0}:
        raise _untrusted(path, f"belongs to another user (uid {status.st_uid})")
    writable = bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))
    # In a folder with the sticky bit other users may add files, but not replace files that they do
    # not own.
    if writable and not (folder and status.st_mode & stat.S_ISVTX):
        raise _untrusted(path, "is writable by other users")


def _untrusted(path: Path, reason: str) -> DeniedError:
    return DeniedError(
        f"the result is a pickle and was not loaded: {path} {reason}",
        code="untrusted_result",
        hint=_TRUST_HINT,
        detail={"path": str(path)},
    )


# --------------------------------------------------------------------------------------------------
# Whether the nodes' Python can load what this Python pickled.


def python_version_finding(local: tuple[int, ...] | None, remote: tuple[int, ...]) -> Finding | None:
    """The finding that rejects a function when the Python versions differ, or None.

    A pickled function contains byte code, which works only in the minor version that compiled it.

    Args:
        local: Version of the Python that pickled, such as ``(3, 11, 7)``; None for this process.
        remote: Version of the Python that will run it.
    """
    local_version = (local or tuple(sys.version_info[:3]))[:2]
    if local_version == remote[:2]:
        return None
    local_text, remote_text = (".".join(str(part) for part in version[:2]) for version in (local_version, remote))
    return Finding(
        level="error",
        code="python_version",
        message=f"the function was pickled by Python {local_text}, but the job would run it with Python {remote_text}",
        hint=f"choose Python {local_text} on the cluster with --python or --image, or submit a script or notebook instead",
        field="environment.python",
    )
