"""The tasks of an array, as squeue lists them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice


def tasks_of(listed: str | None, most: int | None = None) -> tuple[int, ...]:
    """The indices in a list of squeue's (``-O ArrayTaskID``): ``3``, ``0-9%2`` or, of regular lists, ``0-9:3``; the first `most` of them. Without a list, none.

    Raises:
        ValueError: It is no such list.
    """
    return tuple(islice(chain.from_iterable(_spans(listed)), most))


def has_task(listed: str | None, index: int) -> bool:
    """Whether a list of squeue's has an index; without going through all that it has.

    Raises:
        ValueError: It is no such list.
    """
    return any(index in span for span in _spans(listed))


def _spans(listed: str | None) -> Iterator[range]:
    if listed is None:
        return
    for part in listed.partition("%")[0].strip("[]").split(","):
        span, _, step = part.partition(":")
        first, _, last = span.partition("-")
        yield range(int(first), int(last or first) + 1, int(step or 1))
