"""Numbers of runs as text: newest values, progress, alarms, and courses as one line of characters."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hyperpod_jlab.cli.output import format_moment
from hyperpod_jlab.core.metric_names import main_name, order_names
from hyperpod_jlab.core.quantities import format_duration

if TYPE_CHECKING:
    from hyperpod_jlab.run.metrics import MetricSummary, MetricValue, Progress, RunAlarm

_BLOCKS = "▁▂▃▄▅▆▇█"
_ASCII = "_.-=+*#@"
_MAX_NAMES = 6


def format_number(value: float | None) -> str:
    """A value with four significant digits; one that is not finite is nan."""
    return "nan" if value is None else f"{value:.4g}"


def format_progress(progress: Progress | None) -> str | None:
    """Step, total and time left; None if unknown."""
    if progress is None:
        return None
    if progress.total is None:
        return f"step {progress.step}"
    share = f", {100 * progress.step / progress.total:.0f} %" if progress.total else ""
    left = progress.seconds_left
    time = "" if left is None else f", about {format_duration(left)} left"
    return f"step {progress.step} of {progress.total}{share}{time}"


def format_newest(metrics: Mapping[str, MetricValue], most: int = _MAX_NAMES) -> str | None:
    """The newest values; None if there are none."""
    names = order_names(metrics)[:most]
    return ", ".join(f"{name} {format_number(metrics[name].value)}" for name in names) or None


def format_row(summary: MetricSummary) -> str:
    """What a list shows of a run: its most important number, the time left, and its alarms; empty if there is nothing."""
    name, progress = main_name(summary.metrics), summary.progress
    parts = [] if name is None else [f"{name} {format_number(summary.metrics[name].value)}"]
    if progress is not None and progress.seconds_left is not None:
        parts.append(f"{format_duration(progress.seconds_left)} left")
    parts += [f"alarm {alarm.code}" for alarm in summary.alarms]
    return ", ".join(parts)


def format_alarm(alarm: RunAlarm) -> str:
    """An alarm as one sentence, and when it began: a duration in its message is that of the moment at which it was noticed."""
    is_named = re.search(rf"\brank (\d+, )*{alarm.rank}\b", alarm.message) is not None
    rank = "" if alarm.rank is None or is_named else f"rank {alarm.rank}: "
    return f"{alarm.code}: {rank}{alarm.message} (began {format_moment(alarm.since)})"


def sparkline(values: Sequence[float | None], low: float, high: float, width: int) -> str:
    """Values as bars between two limits, one character each; a missing value is a gap.

    Args:
        values: The values, in time order.
        low: The value of an empty bar.
        high: The value of a full bar.
        width: Maximum number of characters; with more values each character is the maximum of several.
    """
    blocks = _BLOCKS if supports_blocks() else _ASCII
    count = min(width, len(values))
    parts = [values[len(values) * index // count : len(values) * (index + 1) // count] for index in range(count)]
    return "".join(_bar(part, low, high, blocks) for part in parts)


def _bar(part: Sequence[float | None], low: float, high: float, blocks: str) -> str:
    present = [value for value in part if value is not None]
    if not present:
        return " "
    share = (max(present) - low) / (high - low) if high > low else 0.0
    return blocks[max(0, min(len(blocks) - 1, int(share * len(blocks))))]


def supports_blocks() -> bool:
    """Whether the terminal's encoding has block characters."""
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    try:
        _BLOCKS.encode(encoding)
    except (LookupError, UnicodeEncodeError):
        return False
    return True
