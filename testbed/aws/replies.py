"""What the endpoint answers: an HTTP reply, or the error that becomes one."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Reply:
    """An HTTP answer."""

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)


class ApiError(Exception):
    """An error as an AWS service reports it.

    Args:
        code: Its name, such as ``ThrottlingException``.
        message: AWS' sentence.
        status: The HTTP status; below 500 it is the caller's fault.
    """

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.status = status


class DriftError(Exception):
    """Our own answer is not what the service model says: a fault of this endpoint, which no test may miss."""
