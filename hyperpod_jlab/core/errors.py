"""The error shape: ``{code, message, hint, detail}``.

Each interface maps a `HyperpodError` to its own form: an HTTP status, an exit code, a notification, an exception in the kernel.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema


@dataclass(frozen=True)
class Error:
    """The error shape."""

    code: str
    message: str
    hint: str | None
    detail: dict[str, Any]


class HyperpodError(Exception):
    """Base of all errors that a user may see.

    Args:
        message: One sentence that says what is wrong; the trailing full stop is optional.
        code: A stable code; default: the class's own.
        hint: How to fix it, or None.
        detail: Further plain data (JSON types only), such as ``{"field": "resources.nodes"}``.
    """

    default_code: ClassVar[str] = "internal"
    exit_code: ClassVar[int] = 70
    status: ClassVar[int] = 500

    def __init__(
        self, message: str, *, code: str | None = None, hint: str | None = None, detail: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.hint = hint
        self.detail: dict[str, Any] = dict(detail or {})

    @property
    def shape(self) -> Error:
        """The error in the wire format."""
        return Error(self.code, self.message, self.hint, self.detail)

    def to_dict(self) -> dict[str, Any]:
        """The error as plain data for JSON. Fast: a command may fail before anything is imported."""
        return vars(self.shape)

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: type[Any], handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic_core import core_schema

        shape = core_schema.plain_serializer_function_ser_schema(
            lambda error: error.shape, return_schema=handler.generate_schema(Error)
        )
        return core_schema.is_instance_schema(cls, serialization=shape)

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class InternalError(HyperpodError):
    """An internal error."""


class InvalidInputError(HyperpodError):
    """Something in the arguments, the spec, the configuration or the code is invalid."""

    default_code = "invalid_input"
    exit_code = 2
    status = 400


class RefusedError(HyperpodError):
    """Preflight or the scheduler refuses the run."""

    default_code = "refused"
    exit_code = 2
    status = 422


class UnsupportedError(HyperpodError):
    """The engine cannot do this."""

    default_code = "unsupported"
    exit_code = 2
    status = 422


class ConflictError(HyperpodError):
    """The same run id with another spec, or an action that does not fit the run's state."""

    default_code = "conflict"
    exit_code = 2
    status = 409


class NotFoundError(HyperpodError):
    """A run or another named object does not exist."""

    default_code = "not_found"
    exit_code = 3
    status = 404


class DeniedError(HyperpodError):
    """Permission denied."""

    default_code = "denied"
    exit_code = 4
    status = 403


class UnreachableError(HyperpodError):
    """The cluster does not answer."""

    default_code = "unreachable"
    exit_code = 5
    status = 502


class StorageError(HyperpodError):
    """The storage partition cannot be read or written: full, read-only, or not trustworthy."""

    default_code = "storage"
    exit_code = 2
    status = 507


class StorageDeniedError(StorageError):
    """No permission for a path on the storage partition."""

    default_code = "storage_denied"
    exit_code = 4
    status = 403


def nearest(word: str, valid: Iterable[str]) -> str | None:
    """The valid word closest to `word`, or None if none is close."""
    import difflib  # slow to import, and only errors need it

    matches = difflib.get_close_matches(word.lower(), list(valid), n=1, cutoff=0.6)
    return matches[0] if matches else None


def nearest_hint(word: str, valid: Iterable[str]) -> str | None:
    """A hint with the closest valid word, or with all valid words if none is close; None if there are no valid words."""
    valid_words = sorted(valid)
    closest = nearest(word, valid_words)
    if closest is not None:
        return f"did you mean '{closest}'?"
    return "valid: " + ", ".join(valid_words) if valid_words else None


# --------------------------------------------------------------------------------------------------
# URLs in messages.

USER_INFO = re.compile(r"(?<=://)[^/\s\"'<>]*@")
"""User name and password in a URL, as in proxy and endpoint variables."""


def mask_credentials(text: object) -> str:
    """A library's message, without user names and passwords in URLs."""
    return USER_INFO.sub("***@", str(text))
