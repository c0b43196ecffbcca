"""The launcher: one file that knows nothing of this package and is copied into each bundle."""

from __future__ import annotations

from pathlib import Path


def launcher_path() -> Path:
    """Where the launcher's file lies in this installation."""
    return Path(__file__).with_name("launcher.py")


def launcher_source() -> bytes:
    """The launcher's exact bytes, to be put into a bundle as ``launcher.py``."""
    return launcher_path().read_bytes()


__all__ = ["launcher_path", "launcher_source"]
