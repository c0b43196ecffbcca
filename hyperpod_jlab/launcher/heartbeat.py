"""Signs of life for a program that watches the launcher from outside, such as HyperPod's agent in the pods of a HyperPodPyTorchJob."""

from __future__ import annotations

import contextlib
import os
from typing import Optional

from .contract import HEARTBEAT_VARIABLE


class Heartbeat:
    """Appends a line to the file that the environment names; without one it does nothing.

    Only the loops of the launcher call it, so that the lines stop when a loop is stuck.
    """

    EVERY_S = 30.0
    LINE = b"hyperpod: alive\n"

    def __init__(self) -> None:
        self._path = os.environ.get(HEARTBEAT_VARIABLE)
        self._next_at: Optional[float] = None

    def beat(self, now: float) -> None:
        """Write the line if it is due.

        Args:
            now: Monotonic time.
        """
        if not self._path or (self._next_at is not None and now < self._next_at):
            return
        self._next_at = now + self.EVERY_S
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        with contextlib.suppress(OSError):
            descriptor = os.open(self._path, flags, 0o600)
            try:
                os.write(descriptor, self.LINE)
            finally:
                os.close(descriptor)
