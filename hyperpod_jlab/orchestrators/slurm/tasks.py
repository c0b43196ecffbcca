"""The tasks of an array, as squeue lists them."""

from __future__ import annotations


def tasks_of(listed: str | None) -> tuple[int, ...]:
    """The indices in a list of squeue's (``-O ArrayTaskID``): ``3``, ``0-9%2`` or, of regular lists, ``0-9:3``. Without one, none.

    Raises:
        ValueError: It is no such list.
    """
    if listed is None:
        return ()
    found: list[int] = []
    for part in listed.partition("%")[0].strip("[]").split(","):
        span, _, step = part.partition(":")
        first, _, last = span.partition("-")
        found += range(int(first), int(last or first) + 1, int(step or 1))
    return tuple(found)
