"""Errors."""

from __future__ import annotations

from typing import Any, Dict, Optional

from .contract import EXIT_LAUNCHER


class LauncherError(Exception):
    """What keeps the launcher from its work, in the project's one shape of an error."""

    def __init__(
        self,
        code: str,
        message: str,
        hint: Optional[str] = None,
        detail: Optional[Dict[str, Any]] = None,
        exit_code: int = EXIT_LAUNCHER,
    ) -> None:
        super().__init__("%s (%s)" % (message, hint) if hint else message)
        self.code = code
        self.message = message
        self.hint = hint
        self.detail = detail or {}
        self.exit_code = exit_code

    def to_dict(self) -> Dict[str, Any]:
        """The error as plain data."""
        return {"code": self.code, "message": self.message, "hint": self.hint, "detail": self.detail}


class FencedError(Exception):
    """Another job of the scheduler holds this run's claim."""


class AlreadyDoneError(Exception):
    """The run has succeeded already: a scheduler that starts it once more, as after it lost sight of a node, is to run nothing."""


class StopRequested(Exception):  # noqa: N818 - it is no error: somebody wants the node to end
    """The launcher was told to stop while it waited for something."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
