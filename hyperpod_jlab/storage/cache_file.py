"""Answers of slow or paid services, kept in a file of the user's cache folder."""

from __future__ import annotations

import contextlib
import os
import threading
from typing import TYPE_CHECKING, TypeVar

from hyperpod_jlab.storage.mounts import own_cache_folder

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")


def read_cache(name: str, kind: TypeAdapter[T]) -> T | None:
    """The content of a cache file; None if it is missing or damaged.

    Args:
        name: The file's name.
        kind: The type of the content.
    """
    folder = own_cache_folder()
    try:
        return None if folder is None else kind.validate_json((folder / name).read_bytes())
    except (OSError, ValueError):
        return None


def write_cache(name: str, kind: TypeAdapter[T], content: T) -> None:
    """Replace a cache file. If it cannot be written, the service is asked again next time."""
    folder = own_cache_folder()
    if folder is None:
        return
    # Several threads of a server may write the same file.
    temporary = folder / f"{name}.{os.getpid()}.{threading.get_ident()}"
    with contextlib.suppress(OSError):
        temporary.write_bytes(kind.dump_json(content))
        temporary.replace(folder / name)
