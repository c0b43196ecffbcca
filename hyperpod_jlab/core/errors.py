"""The one shape of an error: ``{code, message, hint, detail}``.

Every face turns a `HyperpodError` into its own form: an HTTP status, an exit code, a notification, an exception in the kernel.
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
    """The one shape of an error."""

    code: str
    message: str
    hint: str | None
    detail: dict[str, Any]


class HyperpodError(Exception):
    """Base of all errors that a user may see.

    Args:
        message: One sentence that says what is wrong, without a trailing full stop being required.
        code: A stable word for programs; the class's own when left out.
        hint: What to do about it, or None.
        detail: Further plain data (JSON types only), such as ``{"field": "resources.nodes"}``.
    """

    default_code: ClassVar[str] = "internal"
    exit_code: ClassVar[int] = 70
    status: ClassVar[int] = 500

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        hint: str | None = None,
        detail: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.hint = hint
        self.detail: dict[str, Any] = dict(detail or {})

    @property
    def shape(self) -> Error:
        """The error as it is on the wire."""
        return Error(self.code, self.message, self.hint, self.detail)

    def to_dict(self) -> dict[str, Any]:
        """The error as plain data, ready for JSON; quickly, for a command may fail before anything is loaded."""
        return vars(self.shape)

    @classmethod
    def __get_pydantic_core_schema__(
        cls, _source: type[Any], handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        from pydantic_core import core_schema

        shape = core_schema.plain_serializer_function_ser_schema(
            lambda error: error.shape, return_schema=handler.generate_schema(Error)
        )
        return core_schema.is_instance_schema(cls, serialization=shape)

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class InternalError(HyperpodError):
    """A fault of ours."""


class InvalidInputError(HyperpodError):
    """Something in the arguments, the spec, the configuration or the code is wrong."""

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
    """The user may not do this."""

    default_code = "denied"
    exit_code = 4
    status = 403


class UnreachableError(HyperpodError):
    """The cluster does not answer."""

    default_code = "unreachable"
    exit_code = 5
    status = 502


class StorageError(HyperpodError):
    """The storage partition cannot be read or written: full, read-only, or not to be trusted."""

    default_code = "storage"
    exit_code = 2
    status = 507


class StorageDeniedError(StorageError):
    """The user has no right to what lies on the storage partition."""

    default_code = "storage_denied"
    exit_code = 4
    status = 403


def nearest(word: str, valid: Iterable[str]) -> str | None:
    """The valid word most like `word`, or None when none is near."""
    import difflib  # slow to load, and only errors need it

    matches = difflib.get_close_matches(word.lower(), list(valid), n=1, cutoff=0.6)
    return matches[0] if matches else None


def nearest_hint(word: str, valid: Iterable[str]) -> str | None:
    """A hint that offers the nearest valid word, or lists all of them when none is near; None when no word is valid."""
    valid_words = sorted(valid)
    closest = nearest(word, valid_words)
    if closest is not None:
        return f"did you mean '{closest}'?"
    return "valid: " + ", ".join(valid_words) if valid_words else None


# --------------------------------------------------------------------------------------------------
# Addresses in messages.

USER_INFO = re.compile(r"(?<=://)[^/\s\"'<>]*@")
"""Name and password in an address, as proxies and endpoints of an environment have them."""


def mask_credentials(text: object) -> str:
    """A message of a library, without user names and passwords in URLs."""
    return USER_INFO.sub("***@", str(text))
