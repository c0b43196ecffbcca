"""Pause Python's garbage collector while many objects are created: a full collection stops all threads of a large process for a tenth of a second."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_depth = 0
_was_enabled = False


@contextmanager
def without_collections() -> Iterator[None]:
    """Pause the cyclic garbage collector. Reference counting still frees objects.

    A table of 10,000 rows creates tens of thousands of objects, which triggers full collections. Use it for less than a second; several threads may
    use it at once.
    """
    global _depth, _was_enabled  # noqa: PLW0603 - the collector is the process's
    with _lock:
        if _depth == 0:
            _was_enabled = gc.isenabled()
            gc.disable()
        _depth += 1
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if _depth == 0 and _was_enabled:
                gc.enable()
