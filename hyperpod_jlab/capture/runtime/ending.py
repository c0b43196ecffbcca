"""What is waited for when all work is done."""

from __future__ import annotations

import sys
import time

from . import records

PAUSE_S = 0.3
"""Seconds that gloo's threads need to let go of their last collective; without them the process may abort after all its work."""


def settle() -> None:
    """Wait a moment when the process took part in a process group of torch."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not getattr(distributed, "is_available", bool)():
        return
    if records.number("WORLD_SIZE", 1) > 1 or distributed.is_initialized():
        time.sleep(PAUSE_S)
