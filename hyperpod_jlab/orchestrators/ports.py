"""Ways into a run's nodes while it runs: a port of one, and a shell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class PortStream(Protocol):
    """One connection to a port of a run's node: bytes both ways."""

    @property
    def alive(self) -> bool:
        """Whether it is still open and nothing waits to be read, as far as is known here."""
        ...

    async def read(self, limit: int = 65_536) -> bytes:
        """The next bytes, at most `limit`; ``b""`` at the end.

        Raises:
            RefusedError: Nothing listens there.
            UnreachableError: The connection was cut.
        """
        ...

    async def write(self, data: bytes) -> None:
        """Send bytes.

        Raises:
            UnreachableError: The other side has closed the connection.
        """
        ...

    async def close(self) -> None:
        """End the connection."""
        ...


@dataclass(frozen=True)
class Shell:
    """How a user opens a shell on one of a run's nodes.

    Attributes:
        node_rank: The node's rank.
        node: The node's name, or None while it has none.
        command: The command to copy, quoted for a shell.
    """

    node_rank: int
    node: str | None
    command: str
