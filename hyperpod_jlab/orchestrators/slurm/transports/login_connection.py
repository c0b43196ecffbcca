"""A connection to a login node: an ``ssh -M`` that commands reach over a socket in a private folder.

It is a child of this process, with one session of its own in which ``cat`` waits. When this process ends, however it ends, that input closes, ``cat`` ends, and so
does the connection: nothing is left behind, and no other process shares it. Without its socket a command fails at once instead of connecting by itself.
"""

from __future__ import annotations

import asyncio
import secrets
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hyperpod_jlab.model.errors import HyperpodError, UnreachableError
from hyperpod_jlab.orchestrators.slurm.transports.login_address import LoginAddress
from hyperpod_jlab.orchestrators.slurm.transports.login_session import CHUNK, end_ssh, start_ssh
from hyperpod_jlab.orchestrators.slurm.transports.ssh_complaints import ssh_complaint

SESSIONS = 8
"""Commands at a time over one connection: sshd allows 10 sessions (MaxSessions in man sshd_config), one of which is the connection's own."""


@dataclass(frozen=True)
class Patience:
    """How long a login node is waited for, in seconds."""

    connect: float = 20.0
    """Until it has let us in."""
    soon: float = 4.0
    """Until the next one is asked as well."""
    answer: float = 15.0
    """Until its shell is there for a command; start-up files on a slow file system take a while."""
    alive: int = 5
    """Between ssh's own questions whether it is there; three without an answer end the connection."""
    idle: float = 300.0
    """After which a connection that nobody uses is closed."""


@dataclass(frozen=True)
class Way:
    """How to get to a login node: its address, the file for ``ssh -F`` or None, and how long it is waited for."""

    address: LoginAddress
    config: str | None
    patience: Patience

    def words(self, socket: Path, *, master: bool) -> list[str]:
        """The words before the host. What must not be otherwise stands here; all else is the user's configuration."""
        settings = {
            "BatchMode": "yes",
            "StrictHostKeyChecking": "yes",
            "UpdateHostKeys": "no",
            "LogLevel": "ERROR",
            "ConnectTimeout": max(1, int(self.patience.connect / 2)),
            "ServerAliveInterval": self.patience.alive,
            "ServerAliveCountMax": 3,
            "ControlMaster": "yes" if master else "no",
            "ControlPath": str(socket).replace("%", "%%"),
            "ControlPersist": "no",
            "ClearAllForwardings": "yes",
            "ForwardAgent": "no",
            "ForwardX11": "no",
            "PermitLocalCommand": "no",
            "RemoteCommand": "none",
            "RequestTTY": "no",
        }
        config = ["-F", str(Path(self.config).expanduser())] if self.config else []
        words = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
        return ["ssh", *config, *words, *self.address.words()]

    @property
    def typed(self) -> str:
        """What a user types in a terminal to log in there."""
        config = ["-F", self.config] if self.config else []
        return shlex.join(["ssh", *config, *self.address.words(), self.address.host])

    def hangs(self) -> UnreachableError:
        """What to say when it gives no answer in time."""
        return UnreachableError(
            f"{self.address.text} does not answer",
            code="login_hangs",
            hint="try again, or ask the cluster's admin",
            detail={"login_node": self.address.text},
        )


class Connection:
    """A connection that was made by `open_connection`."""

    def __init__(
        self,
        way: Way,
        socket: Path,
        process: asyncio.subprocess.Process,
        drains: Sequence[asyncio.Task[None]],
    ) -> None:
        self.limit = SESSIONS
        """Commands at a time, as far as is known."""
        self.slots = asyncio.Semaphore(SESSIONS)
        self.fault: HyperpodError | None = None
        """Why no more commands shall use it."""
        self._way = way
        self._socket = socket
        self._process = process
        self._drains = drains

    @property
    def alive(self) -> bool:
        """Whether it is there, as far as is known."""
        return self._process.returncode is None

    def command(self, line: str, mark: str) -> list[str]:
        """The words that run a line over it. If it is not there, the mark and ``-`` come on standard error, and nothing runs."""
        # Only there does ssh start a ProxyCommand; its shell must keep standard output, whose end ssh takes for the end of all.
        alone = ["-o", f"ProxyCommand=/bin/sh -c 'echo {mark}- >&2'"]
        words = self._way.words(self._socket, master=False)
        return [*words, *alone, "--", self._way.address.host, line]

    def let_end(self) -> None:
        """It ends as soon as no command uses it."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    async def close(self) -> None:
        """It ends at once."""
        await end_ssh(self._process)
        for task in self._drains:
            task.cancel()
        await asyncio.gather(*self._drains, return_exceptions=True)
        await asyncio.to_thread(self._socket.unlink, missing_ok=True)


async def open_connection(way: Way, socket: Path) -> Connection:
    """Connect and log in; all told, in the time that the patience allows.

    Raises:
        DeniedError: A host key that is not the known one, or no key of ours is accepted.
        UnreachableError: There is no answer, or no ssh.
        InvalidInputError: ssh does not understand its configuration.
    """
    mark = secrets.token_hex(12)
    words = [*way.words(socket, master=True), "--", way.address.host, f"echo {mark}; exec cat"]
    try:
        process = await start_ssh(words)
    except OSError as error:
        raise UnreachableError(
            "this machine has no ssh",
            code="no_ssh",
            hint="install OpenSSH's client",
            detail={"ssh": str(error)},
        ) from error
    drains: list[asyncio.Task[None]] = []
    connection = Connection(way, socket, process, drains)
    try:
        await _wait_let_in(way, process, mark.encode(), drains)
    except BaseException:
        await connection.close()
        raise
    return connection


async def _wait_let_in(
    way: Way, process: asyncio.subprocess.Process, mark: bytes, drains: list[asyncio.Task[None]]
) -> None:
    assert process.stdout is not None
    assert process.stderr is not None
    let_in = asyncio.Event()
    seen, said = bytearray(), bytearray()

    def saw(chunk: bytes) -> None:
        if not let_in.is_set():
            seen.extend(chunk)
            if mark in seen:
                let_in.set()

    def heard(chunk: bytes) -> None:
        said.extend(chunk)
        del said[:-8000]

    drains += [
        asyncio.create_task(_pour(process.stdout, saw)),
        asyncio.create_task(_pour(process.stderr, heard)),
    ]
    waits = [asyncio.create_task(let_in.wait()), asyncio.create_task(process.wait())]
    try:
        done, _ = await asyncio.wait(
            waits, timeout=way.patience.connect, return_when=asyncio.FIRST_COMPLETED
        )
        if let_in.is_set():
            return
        if not done:
            raise way.hangs()
        await asyncio.wait(drains, timeout=1)
    finally:
        for task in waits:
            task.cancel()
    text = said.decode("utf-8", "replace") + seen.decode("utf-8", "replace")
    raise ssh_complaint(way.address.text, text, way.typed)


async def _pour(pipe: asyncio.StreamReader, into: Callable[[bytes], None]) -> None:
    while chunk := await pipe.read(CHUNK):
        into(chunk)
