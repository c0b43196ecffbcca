"""The entry point of ``hpj``. It loads at once; everything else is imported once Ctrl-C can no longer end in a stack trace."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

_EXIT_INTERRUPTED = 130
_OBJECTS_BETWEEN_COLLECTIONS = 50_000
"""Nearly all objects of a command live until it ends. Collecting garbage after each 700 new ones, and at the end, took 15 % of its time."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    signal.signal(signal.SIGINT, _exit_now)
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    atexit.register(gc.freeze)
    from hyperpod_jlab.cli.root import run

    return run(sys.argv[1:] if arguments is None else arguments)


def _exit_now(_: int, __: FrameType | None) -> None:
    os._exit(_EXIT_INTERRUPTED)  # nothing has started yet


if __name__ == "__main__":
    code = main()
    # A KeyboardInterrupt that passes through an exec() of text (dataclasses use it while modules load) leaves a
    # mark in CPython, with which `python -m` ends by SIGINT instead of this code. The next exec() clears it.
    exec("")  # noqa: S102
    sys.exit(code)
