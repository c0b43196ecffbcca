"""The process answers the launcher's question where it is, which a hang makes it ask."""

from __future__ import annotations

import contextlib
import faulthandler

from . import records


def answer() -> None:
    """Write the stacks of all threads to stderr at the launcher's signal; C code that never returns does not prevent it."""
    number = records.number("HYPERPOD_STACK_SIGNAL")
    if number:
        # Not `sys.stderr`, which a notebook's code may replace.
        with contextlib.suppress(ValueError, OSError, RuntimeError):
            faulthandler.register(number, file=2, all_threads=True)
