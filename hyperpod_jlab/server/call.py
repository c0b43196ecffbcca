"""Arguments of the functions behind the routes, and their special response types."""

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
        process: The state that all requests share.
        root: The server's root folder.
        username: The name of the requesting user.
        status: The HTTP status of the response; the function may set another one that its route declares.
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
    """A file download, streamed.

    Attributes:
        name: The file's name.
        chunks: The bytes.
    """

    name: str
    chunks: AsyncIterator[bytes]
