"""A login node with one connection that is opened on demand, shared by commands, and closed when idle."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hyperpod_jlab.core.errors import HyperpodError, UnreachableError
from hyperpod_jlab.engines.slurm.connection import (
    Exchange,
    LoginAddress,
    Remote,
    SshConnection,
    SshTarget,
    SshTimeouts,
    open_connection,
    ssh_process,
)
from hyperpod_jlab.engines.slurm.transport import CommandOutput

_MAX_TRIES = 3
"""Connections that may break under one command before it ran, for example when all of them reach their idle timeout together."""


class UnansweredError(Exception):
    """A login node did not answer a command.

    Args:
        error: The cause.
        may_have_run: Whether the command may have run anyway.
    """

    def __init__(self, error: HyperpodError, *, may_have_run: bool) -> None:
        super().__init__(error.message)
        self.error = error
        self.may_have_run = may_have_run


class _NoSessionError(Exception):
    """The connection gave no session; nothing has run."""

    def __init__(self, stderr: str) -> None:
        super().__init__(stderr or "the connection is closed")
        self.is_refused = "refused by peer" in stderr
        """Whether the login node refused the session; otherwise the connection is gone."""


class LoginNode:
    """A login node.

    Args:
        address: Its address.
        folder: Private folder, with a short path, for the sockets of its connections.
        config: File for ``ssh -F``, or None.
        timeouts: The timeouts.
    """

    def __init__(
        self, address: LoginAddress, folder: Path, config: str | None, timeouts: SshTimeouts
    ) -> None:
        self.address = address
        self._folder = folder
        self.target = SshTarget(address, config, timeouts)
        self._connection: SshConnection | None = None
        self._connection_count = 0
        self._connecting: asyncio.Task[SshConnection] | None = None
        self._running = 0
        self._close_timer: asyncio.TimerHandle | None = None

    @property
    def connected(self) -> bool:
        """Whether there is a connection, as far as is known."""
        return self._connection is not None and self._connection.alive

    def timeout_error(self) -> HyperpodError:
        """The error when it does not answer in time."""
        return self.target.timeout_error()

    async def connect(self) -> SshConnection:
        """The connection, opened if needed; concurrent callers share one attempt.

        Raises:
            UnansweredError: It cannot be opened.
        """
        if self._connection is not None and self._connection.alive:
            return self._connection
        if self._connecting is None:
            self._connecting = asyncio.create_task(self._connect())
            self._connecting.add_done_callback(self._on_connected)
        try:
            return await asyncio.shield(self._connecting)
        except HyperpodError as error:
            raise UnansweredError(error, may_have_run=False) from error

    async def run(self, remote: Remote, stdin: bytes, timeout: float) -> CommandOutput:
        """Run one command over the connection.

        Raises:
            UnansweredError: The login node did not answer; another one may be tried.
            UnreachableError: The login node answers but does not have the command, or the command
                exceeds ``timeout`` seconds.
        """
        try_count = 0
        self._running += 1
        try:
            while True:
                connection = await self.connect()
                try:
                    return await self._run_in_turn(connection, remote, stdin, timeout)
                except _NoSessionError as error:
                    try_count += 1
                    if error.is_refused:
                        continue
                    await self._forget(connection)
                    if try_count >= _MAX_TRIES:
                        raise UnansweredError(
                            self._connection_lost_error(str(error)), may_have_run=False
                        ) from error
                except UnansweredError as fault:
                    connection.fault = fault.error  # those waiting for a session get the cause
                    await self._forget(connection)
                    raise
        finally:
            self._running -= 1
            self._schedule_close()

    async def close(self) -> None:
        """Close the connection, including one that is being opened."""
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.gather(self._connecting, return_exceptions=True)
        if self._connection is not None:
            self._connection.fault = UnreachableError("the connection was closed", code="closed")
            await self._forget(self._connection)
        self._schedule_close()

    async def _run_in_turn(
        self, connection: SshConnection, remote: Remote, stdin: bytes, timeout: float
    ) -> CommandOutput:
        """Wait for a session and use it. A refused session lowers the connection's limit by one."""
        await connection.slots.acquire()
        release_slot = True
        try:
            if connection.fault is not None:
                raise UnansweredError(connection.fault, may_have_run=False)
            return await self._session(connection, remote, stdin, timeout)
        except _NoSessionError as error:
            if error.is_refused:
                if connection.limit <= 1:
                    raise UnansweredError(
                        self._no_sessions_error(error), may_have_run=False
                    ) from error
                connection.limit -= 1
                release_slot = False
            raise
        finally:
            if release_slot:
                connection.slots.release()

    async def _session(
        self, connection: SshConnection, remote: Remote, stdin: bytes, timeout: float
    ) -> CommandOutput:
        async with ssh_process(connection.command(remote.line, remote.marker)) as process:
            exchange = Exchange(
                process,
                remote.is_started,
                remote.input(stdin),
                send_immediately=not remote.waits_for_input,
            )
            try:
                if not await exchange.wait_started(min(timeout, self.target.timeouts.shell)):
                    raise UnansweredError(
                        self.target.timeout_error(), may_have_run=exchange.may_send
                    )
                if not await exchange.wait_end(timeout):
                    raise self._command_timeout_error(remote, timeout)
            finally:
                await exchange.close()
            return self._parse_output(remote, exchange, process.returncode)

    def _parse_output(self, remote: Remote, exchange: Exchange, code: int | None) -> CommandOutput:
        out, err = bytes(exchange.out), bytes(exchange.err)
        output = remote.output(out, err)
        if output is not None:
            return output
        if remote.is_missing(out):
            raise self._missing_command_error(remote)
        stderr = err.decode("utf-8", "replace")
        if f"{remote.marker}-" in stderr:
            raise _NoSessionError(stderr.partition(f"{remote.marker}-")[0].strip()[:200])
        if code == 255 or exchange.started.is_set():
            raise UnansweredError(
                self._connection_lost_error(stderr[-300:]), may_have_run=exchange.may_send
            )
        summary = " ".join((stderr + out.decode("utf-8", "replace")).split())[-300:]
        raise UnansweredError(self._no_shell_error(summary, code), may_have_run=False)

    async def _connect(self) -> SshConnection:
        old, self._connection = self._connection, None
        if old is not None:
            await old.close()
        self._connection_count += 1
        connection = await open_connection(
            self.target, self._folder / f"{id(self):x}.{self._connection_count}"
        )
        self._connection = connection
        return connection

    def _on_connected(self, task: asyncio.Task[SshConnection]) -> None:
        self._connecting = None
        if not task.cancelled():
            task.exception()  # retrieves the exception: without waiters it is not a fault

    async def _forget(self, connection: SshConnection) -> None:
        if self._connection is connection:
            self._connection = None
        await connection.close()

    def _schedule_close(self) -> None:
        """Close the connection after its idle timeout."""
        if self._close_timer is not None:
            self._close_timer.cancel()
            self._close_timer = None
        if self._running == 0 and self.connected:
            loop = asyncio.get_running_loop()
            self._close_timer = loop.call_later(self.target.timeouts.idle, self._close_if_idle)

    def _close_if_idle(self) -> None:
        if self._running == 0 and self._connection is not None:
            self._connection.close_when_idle()

    def _connection_lost_error(self, stderr: str) -> HyperpodError:
        return UnreachableError(
            f"the connection to {self.address.text} broke",
            code="connection_lost",
            hint="try again",
            detail={"login_node": self.address.text, "ssh": stderr},
        )

    def _no_shell_error(self, summary: str, code: int | None) -> HyperpodError:
        return UnreachableError(
            f"{self.address.text} does not run commands: {summary or f'its shell ended with {code}'}",
            code="no_shell",
            hint=f"to see why, run: {self.target.command_line} true",
            detail={"login_node": self.address.text, "exit_code": code},
        )

    def _no_sessions_error(self, error: _NoSessionError) -> HyperpodError:
        return UnreachableError(
            f"{self.address.text} does not open a session: {error}",
            code="ssh_sessions",
            hint="MaxSessions in sshd_config of the login node must be at least 2",
            detail={"login_node": self.address.text},
        )

    def _missing_command_error(self, remote: Remote) -> HyperpodError:
        return UnreachableError(
            f"the Slurm command {remote.argv[0]} is not on {self.address.text}",
            code="no_slurm_client",
            hint="set `commands` in the configuration of the cluster to the folder of the Slurm commands on the login node, such as /opt/slurm/bin",
            detail={"command": remote.program, "login_node": self.address.text},
        )

    def _command_timeout_error(self, remote: Remote, timeout: float) -> HyperpodError:
        return UnreachableError(
            f"the Slurm command {remote.argv[0]} timed out after {timeout:g} s",
            code="no_answer",
            hint="try again; check the controller with: scontrol ping",
            detail={"command": remote.argv[0], "login_node": self.address.text},
        )
