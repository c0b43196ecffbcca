"""Durations, sizes and ranges as users write them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_SPAN = r"([0-9]{1,9}(?:\.[0-9]{1,6})?) ?(s|m|h|d|w|sec|min|hour|day|week|secs|mins|hours|days|weeks|seconds?|minutes?|hrs?)"
_SLURM_TIME = re.compile(r"(?:([0-9]{1,9})-)?([0-9]{1,9})(?::([0-9]{1,2}))?(?::([0-9]{1,2}))?")
_SIZE = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,18})?)\s*(?:([KMGTP])i?)?B?", re.IGNORECASE)
MAX_SECONDS = 366 * 86400
_MAX_TEXT = 100


def parse_duration(text: str, longest: int = MAX_SECONDS) -> int:
    """Seconds in ``90``, ``90s``, ``15m``, ``2h``, ``1d12h``, ``1h 30m``, ``1.5h``, ``10 min``, ``02:00:00`` or Slurm's ``1-00:00:00``.

    A bare number counts seconds. ``2:00`` is refused: Slurm means minutes and seconds, most people hours and minutes.

    Raises:
        ValueError: The text is none of these, is zero, or is longer than `longest` seconds.
    """
    seconds = _parse_duration(text.strip().lower()) if len(text) <= _MAX_TEXT else None
    if seconds is None:
        raise ValueError(f"'{text[:40]}' is not a duration such as 30m, 2h, 1d12h or 1-00:00:00")
    if not 0 < seconds <= longest:
        raise ValueError(f"a duration must be between one second and {longest // 86400} days")
    return seconds


def _parse_duration(text: str) -> int | None:
    if re.fullmatch(r"[0-9]{1,12}", text):
        return int(text)
    if re.fullmatch(rf"(?:{_SPAN} ?)+", text):
        return round(sum(float(n) * _UNITS[unit[0]] for n, unit in re.findall(_SPAN, text)))
    if re.fullmatch(r"[0-9]{1,9}:[0-9]{1,2}", text):
        raise ValueError(f"the duration '{text}' is ambiguous: use {text}:00 for hours, or 0:{text} for minutes")
    match = _SLURM_TIME.fullmatch(text)
    if match is None or ("-" not in text and ":" not in text):
        return None
    days, first, second, third = (int(part or 0) for part in match.groups())
    hours, minutes, rest = first, second, third
    if minutes > 59 or rest > 59:
        return None
    return days * 86400 + hours * 3600 + minutes * 60 + rest


def format_duration(seconds: float) -> str:
    """Format a duration, such as ``45s``, ``2m 05s`` or ``1d 3h``."""
    total = int(seconds)
    if total < 60:
        return f"{total}s"
    if total < 3600:
        return f"{total // 60}m {total % 60:02d}s"
    if total < 86400:
        return f"{total // 3600}h {total % 3600 // 60:02d}m"
    return f"{total // 86400}d {total % 86400 // 3600}h"


def parse_size(text: str) -> int:
    """Bytes in ``512M``, ``16G``, ``16GiB`` or ``1.5T`` (all units are powers of 1024).

    Raises:
        ValueError: The text is not a size, or is zero.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"'{text[:40]}' is not a size such as 512M or 16G")
    size = int(float(match.group(1)) * 1024 ** " KMGTP".index((match.group(2) or " ").upper()))
    if not 0 < size <= 1024**6:
        raise ValueError("a size must be between one byte and 1024 PiB")
    return size


def format_size(size: int) -> str:
    """Format a size, such as ``1.5 GiB``."""
    value = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


# --------------------------------------------------------------------------------------------------
# Lists of numbers as users write them: cells ``2-5,7`` and arrays ``0-9%4``.

_PART = re.compile(r"([0-9]+)(?:-([0-9]+))?")
_MAX_NUMBER = 999_999_999
_MAX_TASKS = 100_000
_MAX_ITEMS = 1_000_000


def parse_ranges(text: str) -> tuple[int, ...]:
    """The numbers in ``2-5,7``, ascending and without duplicates.

    Raises:
        ValueError: The text is not such a list, or a range runs backwards.
    """
    if len(text) > _MAX_ITEMS:
        raise ValueError(f"the list is longer than {_MAX_ITEMS} characters")
    numbers: set[int] = set()
    count = 0
    for part in text.split(","):
        match = _PART.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"'{text[:60]}' is not a list such as 2-5,7")
        if any(len(number or "") > len(str(_MAX_NUMBER)) for number in match.groups()):
            raise ValueError(f"the range {part.strip()[:60]} goes beyond {_MAX_NUMBER}")
        first = int(match.group(1))
        last = int(match.group(2) or first)
        if last < first:
            raise ValueError(f"the range {first}-{last} is reversed; write {last}-{first}")
        if last - first >= _MAX_TASKS:
            raise ValueError(f"the range {first}-{last} is longer than {_MAX_TASKS}")
        count += last - first + 1
        if count > 2 * _MAX_TASKS:  # there may be duplicates
            raise ValueError(f"the list has more than {_MAX_TASKS} numbers")
        numbers.update(range(first, last + 1))
    return tuple(sorted(numbers))


def format_ranges(numbers: Iterable[int]) -> str:
    """Format numbers as ``2-5,7``, ascending and without duplicates."""
    parts: list[list[int]] = []
    for number in sorted(set(numbers)):
        if parts and number == parts[-1][-1] + 1:
            parts[-1][1:] = [number]
        else:
            parts.append([number])
    return ",".join("-".join(map(str, part)) for part in parts)


@dataclass(frozen=True)
class ArraySpec:
    """The indices of an array, and how many of its children may run concurrently (None: no limit)."""

    indices: tuple[int, ...]
    throttle: int | None = None


def parse_array(text: str) -> ArraySpec:
    """Parse ``0-9``, ``1,3,5`` or ``0-9%4``.

    Raises:
        ValueError: The text is not such an array, has too many indices, or a throttle of zero.
    """
    indices_text, percent, limit = text.partition("%")
    if percent and not re.fullmatch(r"[1-9][0-9]{0,5}", limit):
        raise ValueError(f"'{text[:60]}': after %, give the number of tasks that run at once, such as 0-9%4")
    indices = parse_ranges(indices_text)
    if len(indices) > _MAX_TASKS:
        raise ValueError(f"an array has at most {_MAX_TASKS} children")
    return ArraySpec(indices, int(limit) if percent else None)
