"""One login node: a connection that is made when needed, used by many commands, and closed when nobody needs it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hyperpod_jlab.core.errors import HyperpodError, UnreachableError
from hyperpod_jlab.engines.slurm.connection import (
    Exchange,
    LoginAddress,
    Patience,
    Remote,
    SshConnection,
    Way,
    open_connection,
    ssh_process,
)
from hyperpod_jlab.engines.slurm.transport import CommandOutput

_TRIES = 3
"""Connections that may break under one command before it ran, as when all of them idle out at that moment."""


class UnansweredError(Exception):
    """A login node gave no answer to a command.

    Args:
        error: Why.
        may_have_run: Whether the command may have run all the same.
    """

    def __init__(self, error: HyperpodError, *, may_have_run: bool) -> None:
        super().__init__(error.message)
        self.error = error
        self.may_have_run = may_have_run


class _NoSessionError(Exception):
    """The connection gave no session; nothing has run."""

    def __init__(self, said: str) -> None:
        super().__init__(said or "the connection is closed")
        self.refused = "refused by peer" in said
        """Whether the login node refused it; else the connection is gone."""


class LoginNode:
    """A login node.

    Args:
        address: Where it is.
        folder: Private folder, with a short path, for the sockets of its connections.
        config: File for ``ssh -F``, or None.
        patience: How long it is waited for.
    """

    def __init__(
        self, address: LoginAddress, folder: Path, config: str | None, patience: Patience
    ) -> None:
        self.address = address
        self._folder = folder
        self._way = Way(address, config, patience)
        self._connection: SshConnection | None = None
        self._made = 0
        self._connecting: asyncio.Task[SshConnection] | None = None
        self._running = 0
        self._idle: asyncio.TimerHandle | None = None

    @property
    def connected(self) -> bool:
        """Whether there is a connection, as far as is known."""
        return self._connection is not None and self._connection.alive

    def hangs(self) -> HyperpodError:
        """What to say when it gives no answer in time."""
        return self._way.hangs()

    async def connect(self) -> SshConnection:
        """The connection, made if there is none; all who ask meanwhile wait for the same one.

        Raises:
            UnansweredError: It cannot be made.
        """
        if self._connection is not None and self._connection.alive:
            return self._connection
        if self._connecting is None:
            self._connecting = asyncio.create_task(self._connect())
            self._connecting.add_done_callback(self._has_connected)
        try:
            return await asyncio.shield(self._connecting)
        except HyperpodError as error:
            raise UnansweredError(error, may_have_run=False) from error

    async def run(self, remote: Remote, stdin: bytes, timeout: float) -> CommandOutput:
        """Run one command over the connection.

        Raises:
            UnansweredError: The login node did not answer; another one may be asked.
            UnreachableError: It answers but has no such command, or the command takes longer than ``timeout`` seconds.
        """
        tries = 0
        self._running += 1
        try:
            while True:
                connection = await self.connect()
                try:
                    return await self._in_turn(connection, remote, stdin, timeout)
                except _NoSessionError as said:
                    tries += 1
                    if said.refused:
                        continue
                    await self._forget(connection)
                    if tries >= _TRIES:
                        raise UnansweredError(self._broke(str(said)), may_have_run=False) from said
                except UnansweredError as fault:
                    connection.fault = fault.error  # those who wait for a turn on it hear why
                    await self._forget(connection)
                    raise
        finally:
            self._running -= 1
            self._rest()

    async def close(self) -> None:
        """End the connection, or what is about to become one."""
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.gather(self._connecting, return_exceptions=True)
        if self._connection is not None:
            self._connection.fault = UnreachableError("the connection was closed", code="closed")
            await self._forget(self._connection)
        self._rest()

    async def _in_turn(
        self, connection: SshConnection, remote: Remote, stdin: bytes, timeout: float
    ) -> CommandOutput:
        """Wait for a session and use it; one that was refused is not tried again, which leaves one less to use."""
        await connection.slots.acquire()
        give_back = True
        try:
            if connection.fault is not None:
                raise UnansweredError(connection.fault, may_have_run=False)
            return await self._session(connection, remote, stdin, timeout)
        except _NoSessionError as said:
            if said.refused:
                if connection.limit <= 1:
                    raise UnansweredError(self._no_sessions(said), may_have_run=False) from said
                connection.limit -= 1
                give_back = False
            raise
        finally:
            if give_back:
                connection.slots.release()

    async def _session(
        self, connection: SshConnection, remote: Remote, stdin: bytes, timeout: float
    ) -> CommandOutput:
        async with ssh_process(connection.command(remote.line, remote.mark)) as process:
            exchange = Exchange(
                process, remote.has_begun, remote.input(stdin), at_once=not remote.waits
            )
            try:
                if not await exchange.wait_begin(min(timeout, self._way.patience.answer)):
                    raise UnansweredError(self._way.hangs(), may_have_run=exchange.told)
                if not await exchange.wait_end(timeout):
                    raise self._slow(remote, timeout)
            finally:
                await exchange.close()
            return self._answer(remote, exchange, process.returncode)

    def _answer(self, remote: Remote, exchange: Exchange, code: int | None) -> CommandOutput:
        out, err = bytes(exchange.out), bytes(exchange.err)
        answer = remote.output(out, err)
        if answer is not None:
            return answer
        if remote.is_missing(out):
            raise self._missing(remote)
        said = err.decode("utf-8", "replace")
        if f"{remote.mark}-" in said:
            raise _NoSessionError(said.partition(f"{remote.mark}-")[0].strip()[:200])
        if code == 255 or exchange.begun.is_set():
            raise UnansweredError(self._broke(said[-300:]), may_have_run=exchange.told)
        shown = " ".join((said + out.decode("utf-8", "replace")).split())[-300:]
        raise UnansweredError(self._no_shell(shown, code), may_have_run=False)

    async def _connect(self) -> SshConnection:
        old, self._connection = self._connection, None
        if old is not None:
            await old.close()
        self._made += 1
        made = await open_connection(self._way, self._folder / f"{id(self):x}.{self._made}")
        self._connection = made
        return made

    def _has_connected(self, task: asyncio.Task[SshConnection]) -> None:
        self._connecting = None
        if not task.cancelled():
            task.exception()  # those who waited were told; if nobody waits any more, it is no fault

    async def _forget(self, connection: SshConnection) -> None:
        if self._connection is connection:
            self._connection = None
        await connection.close()

    def _rest(self) -> None:
        """When nobody uses the connection, it goes after a while."""
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        if self._running == 0 and self.connected:
            loop = asyncio.get_running_loop()
            self._idle = loop.call_later(self._way.patience.idle, self._go_idle)

    def _go_idle(self) -> None:
        if self._running == 0 and self._connection is not None:
            self._connection.let_end()

    def _broke(self, said: str) -> HyperpodError:
        return UnreachableError(
            f"the connection to {self.address.text} broke",
            code="connection_lost",
            hint="try again",
            detail={"login_node": self.address.text, "ssh": said},
        )

    def _no_shell(self, shown: str, code: int | None) -> HyperpodError:
        return UnreachableError(
            f"{self.address.text} does not run commands: {shown or f'its shell ended with {code}'}",
            code="no_shell",
            hint=f"see: {self._way.typed} true",
            detail={"login_node": self.address.text, "exit_code": code},
        )

    def _no_sessions(self, said: _NoSessionError) -> HyperpodError:
        return UnreachableError(
            f"{self.address.text} does not open a session: {said}",
            code="ssh_sessions",
            hint="MaxSessions in sshd_config of the login node must be at least 2",
            detail={"login_node": self.address.text},
        )

    def _missing(self, remote: Remote) -> HyperpodError:
        return UnreachableError(
            f"the Slurm command {remote.argv[0]} is not on {self.address.text}",
            code="no_slurm_client",
            hint="set commands to the folder of the Slurm commands on the login node, such as /opt/slurm/bin",
            detail={"command": remote.program, "login_node": self.address.text},
        )

    def _slow(self, remote: Remote, timeout: float) -> HyperpodError:
        return UnreachableError(
            f"the Slurm command {remote.argv[0]} timed out after {timeout:g} s",
            code="no_answer",
            hint="try again; check the controller with: scontrol ping",
            detail={"command": remote.argv[0], "login_node": self.address.text},
        )
