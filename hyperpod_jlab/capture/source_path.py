"""Where a source's file lies on this machine."""

from __future__ import annotations

from pathlib import Path

from hyperpod_jlab.model.errors import InvalidInputError

_LONGEST_NAME = 200  # bytes; the bundle has folders and files named after it


def source_path(base: Path, text: str) -> Path:
    """The file that a source names, relative to `base`; ``~`` is the user's home folder.

    Raises:
        InvalidInputError: It can't be a file's name.
    """
    try:
        path = base / Path(text).expanduser()
    except RuntimeError as error:
        raise _no_file(text, "there is no such user") from error
    if path.name in {"", ".", ".."}:
        raise _no_file(text, "it names a folder")
    try:
        size = len(path.name.encode())
    except UnicodeEncodeError as error:
        raise _no_file(text, "its name is not UTF-8") from error
    if size > _LONGEST_NAME:
        raise _no_file(text, f"its name is longer than {_LONGEST_NAME} bytes")
    return path


def _no_file(text: str, reason: str) -> InvalidInputError:
    shown = text[:80].encode("utf-8", "backslashreplace").decode()
    return InvalidInputError(
        f"'{shown}' can't be sent: {reason}", code="no_such_file", detail={"field": "source.path"}
    )
