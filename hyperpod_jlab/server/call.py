"""What the functions behind the routes are given, and what they may answer beside plain data."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hyperpod_jlab.run.services import Hyperpod
    from hyperpod_jlab.server.process import ServerProcess


@dataclass
class Call:
    """One request.

    Attributes:
        process: What all requests share.
        root: The folder that the server shows as its root.
        username: The name of the server's user who asks.
        status: The HTTP status of the answer; the function may set another one that its route names.
    """

    process: ServerProcess
    root: Path
    username: str
    status: int = 200

    async def hyperpod(self) -> Hyperpod:
        """The services."""
        return await self.process.hyperpod()


@dataclass
class Download:
    """Bytes for a file on the user's machine, sent as they come.

    Attributes:
        name: The file's name.
        chunks: The bytes.
    """

    name: str
    chunks: AsyncIterator[bytes]
