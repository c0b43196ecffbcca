"""Making many objects at once without Python's full garbage collections, each of which holds all threads of a big process for a tenth of a second."""

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
    """Within, what is not needed any more goes when the last one who holds it lets go, as always, but circles are not looked for.

    A table of 10,000 rows makes objects by the ten thousand, which Python takes for a reason to look through all that the process has. Meant for parts
    of a second; may be used by several threads at once.
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
