"""A run's usage as text."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from hyperpod_jlab.core.quantities import format_duration, format_size

if TYPE_CHECKING:
    from hyperpod_jlab.core.usage import Usage


_SOURCES = {"accounting": "from the scheduler's accounting", "journal": "from the records of the run"}
_KINDS = {"gpu": "GPU-hours", "neuron": "accelerator-hours"}


def format_usage(usage: Usage) -> str:
    """A run's usage in one line, with its source."""
    parts = []
    if usage.accelerator_seconds:
        parts.append(f"{hours(usage.accelerator_seconds)} {_KINDS[usage.accelerator_kind]}")
    if usage.cpu_seconds and usage.cpu_seconds >= 1:
        parts.append(f"{format_duration(usage.cpu_seconds)} of CPU time")
    if usage.max_memory:
        parts.append(f"{format_size(usage.max_memory)} of memory at its peak")
    if usage.signal is not None:
        parts.append(f"ended by {_signal_name(usage.signal)}")
    usage_text = ", ".join(parts) if parts else "no usage recorded"
    return f"{usage_text} ({_SOURCES[usage.source]})"


def hours(seconds: float) -> str:
    """Seconds as hours with three significant digits, such as ``0.0117`` or ``12.5``."""
    return f"{seconds / 3600:.3g}" if seconds < 3_600_000 else f"{seconds / 3600:.0f}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
