"""Lists of numbers as people write them: cells ``2-5,7`` and arrays ``0-9%4``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator

_PART = re.compile(r"([0-9]+)(?:-([0-9]+))?")
_MAX_NUMBER = 999_999_999
_MAX_TASKS = 100_000
_LONGEST = 1_000_000


def parse_ranges(text: str) -> tuple[int, ...]:
    """The numbers in ``2-5,7``, in rising order and without repeats.

    Raises:
        ValueError: The text is no such list, or a range runs backwards.
    """
    if len(text) > _LONGEST:
        raise ValueError(f"the list is longer than {_LONGEST} characters")
    numbers: set[int] = set()
    listed = 0
    for part in text.split(","):
        match = _PART.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"'{text[:60]}' is not a list such as 2-5,7, with the digits 0 to 9")
        if any(len(number or "") > len(str(_MAX_NUMBER)) for number in match.groups()):
            raise ValueError(f"the range {part.strip()[:60]} goes beyond {_MAX_NUMBER}")
        first = int(match.group(1))
        last = int(match.group(2) or first)
        if last < first:
            raise ValueError(f"the range {first}-{last} runs backwards; write {last}-{first}")
        if last - first >= _MAX_TASKS:
            raise ValueError(f"the range {first}-{last} is longer than {_MAX_TASKS}")
        listed += last - first + 1
        if listed > 2 * _MAX_TASKS:  # some may stand there twice
            raise ValueError(f"the list has more than {_MAX_TASKS} numbers")
        numbers.update(range(first, last + 1))
    return tuple(sorted(numbers))


def format_ranges(numbers: Iterable[int]) -> str:
    """Numbers as people write them: ``2-5,7``, in rising order and without repeats."""
    parts: list[list[int]] = []
    for number in sorted(set(numbers)):
        if parts and number == parts[-1][-1] + 1:
            parts[-1][1:] = [number]
        else:
            parts.append([number])
    return ",".join("-".join(map(str, part)) for part in parts)


@dataclass(frozen=True)
class ArraySpec:
    """The indices of an array and how many of its children may run at once (None: no limit)."""

    indices: tuple[int, ...]
    throttle: int | None = None


def parse_array(text: str) -> ArraySpec:
    """Parse ``0-9``, ``1,3,5`` or ``0-9%4``.

    Raises:
        ValueError: The text is no such array, has too many indices, or a throttle of zero.
    """
    listed, percent, limit = text.partition("%")
    if percent and not re.fullmatch(r"[1-9][0-9]{0,5}", limit):
        raise ValueError(f"'{text[:60]}': after % comes how many may run at once, such as 0-9%4")
    indices = parse_ranges(listed)
    if len(indices) > _MAX_TASKS:
        raise ValueError(f"an array has at most {_MAX_TASKS} children")
    return ArraySpec(indices, int(limit) if percent else None)


def _check_array(text: str) -> str:
    parse_array(text)
    return text


ArrayText = Annotated[str, AfterValidator(_check_array)]
"""An array as text that `parse_array` takes."""
