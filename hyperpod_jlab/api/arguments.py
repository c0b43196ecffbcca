"""Arguments of the wrong kind or out of range, said in words where Python would say TypeError or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hyperpod_jlab.model.errors import InvalidInputError

_VOWELS = "aeioAEIO"


def kind_of(value: object) -> str:
    """What a value is, such as ``an int``; None is ``None``."""
    if value is None:
        return "None"
    name = type(value).__name__
    return f"an {name}" if name.startswith(tuple(_VOWELS)) else f"a {name}"


def check_text(value: Any, field: str, meant: str, *, optional: bool = True) -> None:
    """Look whether an argument is text.

    Args:
        value: The argument.
        field: Its name.
        meant: What it should be, such as "a run id".
        optional: Whether None will do.

    Raises:
        InvalidInputError: It is not.
    """
    if not isinstance(value, str) and not (optional and value is None):
        raise _refused(f"{field} is {kind_of(value)}, not {meant}", field)


def check_number(value: Any, field: str, least: int) -> None:
    """Look whether an argument is None or a whole number, and at least so large.

    Raises:
        InvalidInputError: It is not.
    """
    if value is None:
        return
    if not _is_whole(value):
        raise _refused(f"{field} is {kind_of(value)}, not a whole number", field)
    if value < least:
        raise _refused(f"{field} is {value}, but must be at least {least}", field)


def check_seconds(value: Any, field: str) -> None:
    """Look whether an argument is None or a number of seconds.

    Raises:
        InvalidInputError: It is not.
    """
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise _refused(f"{field} is {kind_of(value)}, not a number of seconds", field)


def ranks_of(value: Any) -> tuple[int, ...] | None:
    """The ranks that are meant by one rank, by several, or by None.

    Raises:
        InvalidInputError: It is something else.
    """
    if value is None:
        return None
    several = isinstance(value, Sequence | range | set | frozenset) and not isinstance(value, str)
    ranks = tuple(value) if several else (value,)
    for rank in ranks:
        if not _is_whole(rank):
            raise _refused(f"rank is {kind_of(rank)}, not a whole number or a list of them", "rank")
        check_number(rank, "rank", 0)
    return tuple(int(rank) for rank in ranks)


def _is_whole(value: object) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, bool)


def _refused(message: str, field: str) -> InvalidInputError:
    return InvalidInputError(message, detail={"field": field})
