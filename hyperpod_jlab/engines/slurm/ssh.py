"""Slurm's commands on login nodes, by OpenSSH.

OpenSSH is installed wherever Slurm's users log in, and it reads their setup: ``~/.ssh/config`` with jump hosts and ProxyCommand (such
as Session Manager's), known_hosts, agents, certificates, FIDO keys and GSSAPI. An unknown or changed host key is an error.

The first command logs in and leaves a master (ControlMaster, ControlPersist) for the others, with a socket in a private folder.
`Ssh.close` ends it; otherwise it ends some minutes after the last command.

For a command, ``/bin/sh`` on the login node reads a function and its call. No login shell reads a word of it, and if it arrives only in
part, nothing runs. ssh's exit code 255 means that the connection broke, and that the command may have run: only an idempotent one is
sent again, and after a submit the caller looks for the job.

The first login node in the list that answers is used. One that does not is skipped for a while.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import secrets
import shlex
import shutil
import tempfile
import time
from collections import deque
from collections.abc import AsyncIterator, Sequence
from pathlib import Path, PurePosixPath

from hyperpod_jlab.core.child_process import end_child, start_child
from hyperpod_jlab.core.config import SlurmCluster
from hyperpod_jlab.core.errors import HyperpodError, InvalidInputError, UnreachableError
from hyperpod_jlab.engines.slurm.login_nodes import LoginNodeDiscovery, current_user_key, rotate_hosts
from hyperpod_jlab.engines.slurm.ssh_errors import combined_error, parse_ssh_error
from hyperpod_jlab.engines.slurm.transport import (
    ANSWER_LOST,
    COMMAND_TIMEOUT,
    KEPT_VARIABLES,
    PREFIXES,
    TIME_FORMAT,
    CommandOutput,
    LocalTransport,
    no_answer_error,
)

CONNECT_S = 20.0
"""Seconds for connecting and logging in."""

ALIVE_S = 5
"""Seconds between ssh's keep-alive probes; three without a response end the connection."""

IDLE_S = 300
"""Seconds after which an idle connection is closed."""

RETRY_S = 120.0
"""Seconds for which a login node that failed is skipped."""

SESSIONS = 8
"""Concurrent commands over one connection; sshd allows 10 (MaxSessions). ssh opens another connection for a command that is refused."""

_STALE_S = 600.0
"""Age in seconds from which an empty folder belongs to a process that was killed."""

_DEFAULT_PATH = "/opt/slurm/bin:/usr/local/slurm/bin"
"""Folders with Slurm's commands that HyperPod and others add to PATH in profiles, which ssh does not read for a command."""

_READ_ONLY = frozenset({"squeue", "sinfo", "sacct", "sdiag", "sprio", "sshare", "sstat", "sreport"})
_READ_ONLY_SUBCOMMANDS = {
    "scontrol": frozenset({"show", "ping", "version", "listpids"}),
    "sacctmgr": frozenset({"show", "list", "version"}),
}
_ADDRESS = re.compile(
    r"(?:(?P<user>[A-Za-z0-9_][A-Za-z0-9._@+\\-]*)@)?"
    r"(?:(?P<host>[A-Za-z0-9_][A-Za-z0-9._-]*)|\[(?P<ip>[0-9A-Fa-f:.]+(?:%[A-Za-z0-9]+)?)\])"
    r"(?::(?P<port>[0-9]{1,5}))?"
)


def repeatable(argv: Sequence[str]) -> bool:
    """Whether the command is idempotent: it only reads, or ends something."""
    program, args = PurePosixPath(argv[0]).name, argv[1:]
    if program in _READ_ONLY:
        return True
    if program == "sbatch":
        return "--test-only" in args
    if program == "scancel":
        return not any(arg.startswith(("-s", "--signal")) for arg in args)
    first = next((arg for arg in args if not arg.startswith("-")), "")
    return first in _READ_ONLY_SUBCOMMANDS.get(program, ())


def command_script(argv: Sequence[str], stdin: bytes, marker: str, config: SlurmCluster) -> bytes:
    """What ``/bin/sh`` reads for one command. The marker precedes the command's output: start-up files may print some.

    Raises:
        InvalidInputError: An argument or the input contains a NUL.
    """
    text = stdin.decode("utf-8", "surrogateescape")
    if "\0" in "".join([*argv, text]):
        raise InvalidInputError(f"{argv[0]} does not accept a NUL character")
    prefixes = "|".join(name.removesuffix("_") for name in PREFIXES)
    variables = TIME_FORMAT | ({"SLURM_CONF": config.slurm_conf} if config.slurm_conf else {})
    command = shlex.join(_with_folder(argv, config))
    lines = [
        "hpj_run() {",
        rf"printf '\n%s\n' {marker}; printf '\n%s\n' {marker} >&2",
        f"for hpj in $(env | grep -Eo '^({prefixes})_[A-Za-z0-9_]*='); do",
        f'case ${{hpj%=}} in {"|".join(sorted(KEPT_VARIABLES))}) ;; *) unset "${{hpj%=}}" ;; esac; done',
        f"{_path(config)}; export PATH",
        *(f"{name}={shlex.quote(value)}; export {name}" for name, value in variables.items()),
        f"printf %s {shlex.quote(text)} | {command}" if text else f"{command} </dev/null",
        "}",
        "hpj_run",
        "",
    ]
    return "\n".join(lines).encode("utf-8", "surrogateescape")


def _with_folder(argv: Sequence[str], config: SlurmCluster) -> list[str]:
    return [str(PurePosixPath(config.commands or "", argv[0])), *argv[1:]]


def _path(config: SlurmCluster) -> str:
    folder = config.commands
    return f"PATH={shlex.quote(folder)}:$PATH" if folder else f"PATH=$PATH:{_DEFAULT_PATH}"


class UnansweredError(Exception):
    """A login node did not answer a command, because of `error`; the command `may_have_run`."""

    def __init__(self, error: HyperpodError, *, may_have_run: bool) -> None:
        super().__init__(error.message)
        self.error = error
        self.may_have_run = may_have_run


class LoginNode:
    """A login node, and the connection that its commands share.

    Args:
        text: ``[user@]host[:port]``, with an IPv6 address in ``[...]``; the host may be a ``Host`` of ssh's configuration.
        config: The cluster's configuration.

    Raises:
        InvalidInputError: The format is invalid; ssh might read it as an option.
    """

    def __init__(self, text: str, config: SlurmCluster) -> None:
        match = _ADDRESS.fullmatch(text)
        if match is None or not 1 <= int(match["port"] or 22) <= 65535:
            raise InvalidInputError(
                f"{text!r} is not a valid login node",
                code="invalid_login_node",
                hint="use [user@]host or [user@]host:port; the host may be an alias of the ssh configuration",
                detail={"field": "login_nodes", "value": text},
            )
        self.text = text
        self.fault: HyperpodError | None = None
        """Why it is skipped."""
        self.retry_at = 0.0
        file, user, port = config.ssh_config, match["user"] or config.user, match["port"]
        self._address = [
            *(["-F", str(Path(file).expanduser())] if file else ()),
            *(["-l", user] if user else ()),
            *(["-p", port] if port else ()),
        ]
        self._host = match["host"] or match["ip"]
        self._socket: Path | None = None
        self._sessions = asyncio.Semaphore(SESSIONS)
        self._connecting: asyncio.Task[None] | None = None

    @property
    def connected(self) -> bool:
        """Whether there is a connection, as far as is known: the master removes its socket when it ends."""
        return self._socket is not None and self._socket.exists()

    @property
    def command_line(self) -> str:
        """The command with which a user logs in from a terminal."""
        return shlex.join(["ssh", *self._address, self._host])

    def shell_line(self, command: str) -> str:
        """The line with which a user runs a command of a login node's shell in a terminal."""
        return shlex.join(["ssh", "-t", *self._address, self._host, command])

    @contextlib.asynccontextmanager
    async def forwarding(self, forward: str, command: str) -> AsyncIterator[asyncio.subprocess.Process]:
        """An ssh with pipes and a connection of its own, which forwards a port (``-L``) and runs a command."""
        options = {
            "ControlPath": "none",
            "ClearAllForwardings": "no",
            "ExitOnForwardFailure": "yes",
            "LogLevel": "INFO",
        }
        process = await start_child(*self._ssh(command, "-L", forward, **options), env=_env())
        try:
            yield process
        finally:
            await end_child(process)

    async def run(self, program: str, script: bytes, marker: str, timeout: float) -> CommandOutput:
        """Run one command (see `command_script`); `program` is for messages.

        Raises:
            UnansweredError: The login node did not answer; another one may be tried.
            UnreachableError: It does not have the command, or the command timed out.
        """
        earlier_fault = self.fault
        async with self._sessions:
            if self.fault is not None and self.fault is not earlier_fault:
                raise UnansweredError(self.fault, may_have_run=False)
            try:
                await self._connect()
            except HyperpodError as error:
                raise UnansweredError(error, may_have_run=False) from error
            socket = self._socket
            try:
                code, out, err = await _call(self._ssh("/bin/sh"), timeout, script)
            except TimeoutError:
                # If it is the login node that hangs, the next command finds out by logging in.
                await self._leave(socket)
                raise no_answer_error(program, timeout, login_node=self.text) from None
        begin = f"\n{marker}\n"
        if not 0 <= code < 255:
            await self._leave(socket)
            lost = UnreachableError(
                f"the connection to {self.text} broke",
                code="connection_lost",
                hint="try again",
                detail={"login_node": self.text, "ssh": err[-300:]},
            )
            # A session of the master was refused, and no other connection could be made.
            has_not_run = "connect to host" in err and begin not in out + err
            raise UnansweredError(lost, may_have_run=not has_not_run)
        if begin not in out:  # a forced command, or a shell that runs none
            raise UnansweredError(self._parse_error(err + out), may_have_run=False)
        if code == 127:
            raise UnreachableError(
                f"the Slurm command {program} is not on {self.text}",
                code="no_slurm_client",
                hint="set `commands` in the configuration of the cluster to the folder of the Slurm commands on the login node, such as /opt/slurm/bin",
                detail={"command": program, "login_node": self.text},
            )
        return CommandOutput(code, out.partition(begin)[2], err.partition(begin)[2])

    async def close(self) -> None:
        """End the connection, or the attempt to open one."""
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.gather(self._connecting, return_exceptions=True)
        await self._control("exit")
        await self._remove_socket()

    async def _connect(self) -> None:
        """Open the connection if there is none; concurrent callers share one attempt."""
        if self.connected:
            return
        if self._connecting is None:
            self._connecting = asyncio.create_task(self._open())
            self._connecting.add_done_callback(self._end_attempt)
        await asyncio.shield(self._connecting)

    def _end_attempt(self, task: asyncio.Task[None]) -> None:
        self._connecting = None
        if not task.cancelled():
            task.exception()  # retrieves it: without waiters it is not a fault

    async def _open(self) -> None:
        """Log in, and leave the master behind."""
        await self._remove_socket()
        self._socket = await asyncio.to_thread(_make_folder) / "s"
        persist = {"ControlMaster": "auto", "ControlPersist": str(IDLE_S)}
        try:
            code, out, err = await _call(self._ssh("true", **persist), CONNECT_S)
            if code == 255 and "Connection closed by" in err:
                # With ControlPersist, ssh drops what a ProxyCommand prints.
                code, out, err = await _call(self._ssh("true"), CONNECT_S)
        except asyncio.CancelledError:  # only `close` cancels it
            raise UnreachableError("the connection was closed", code="closed") from None
        except TimeoutError:
            raise UnreachableError(
                f"{self.text} does not answer",
                code="login_hangs",
                hint="try again, or ask your cluster administrator",
                detail={"login_node": self.text},
            ) from None
        if code != 0:
            await self._control("exit")
            raise self._parse_error(err + out)

    async def _leave(self, socket: Path | None) -> None:
        """Let a connection end when the commands that use it have ended, and use a new one."""
        if self._socket is socket:
            await self._control("stop")

    async def _control(self, word: str) -> None:
        """Tell the master, if there is one, to end now (``exit``) or after its commands (``stop``)."""
        if self.connected:
            with contextlib.suppress(TimeoutError):
                await _call(self._ssh(None, "-O", word), 5)

    async def _remove_socket(self) -> None:
        if self._socket is not None:
            await asyncio.to_thread(shutil.rmtree, self._socket.parent, ignore_errors=True)
            self._socket = None

    def _parse_error(self, text: str) -> HyperpodError:
        return parse_ssh_error(self.text, text, self.command_line)

    def _ssh(self, command: str | None, *args: str, **options: str) -> list[str]:
        """The command of ssh. These are the options that must not vary; the user's configuration decides the rest."""
        settings = {
            "BatchMode": "yes",
            "StrictHostKeyChecking": "yes",
            "UpdateHostKeys": "no",
            "LogLevel": "ERROR",
            "ConnectTimeout": str(max(1, int(CONNECT_S / 2))),
            "ServerAliveInterval": str(ALIVE_S),
            "ServerAliveCountMax": "3",
            "ControlMaster": "no",
            "ControlPath": str(self._socket or "none").replace("%", "%%"),
            "ControlPersist": "no",
            "ClearAllForwardings": "yes",
            "ForwardAgent": "no",
            "ForwardX11": "no",
            "PermitLocalCommand": "no",
            "RemoteCommand": "none",
            "RequestTTY": "no",
            **options,
        }
        pairs = [arg for name, value in settings.items() for arg in ("-o", f"{name}={value}")]
        words = [command] if command is not None else []
        return ["ssh", *pairs, *args, *self._address, "--", self._host, *words]


def _make_folder() -> Path:
    """A new private folder for a socket. It is in /tmp, because a socket's path has at most 104 bytes and TMPDIR is often too long."""
    parent = Path("/tmp")  # noqa: S108 - mkdtemp makes a folder in it that only this user may enter
    for left in parent.glob("hpj-ssh-*"):
        with contextlib.suppress(OSError):  # not empty, or another user's
            if time.time() - left.stat().st_mtime > _STALE_S:
                left.rmdir()
    return Path(tempfile.mkdtemp(prefix="hpj-ssh-", dir=parent))


def _env() -> dict[str, str]:
    """Nobody could answer the prompt of a jump host."""
    return {**os.environ, "SSH_ASKPASS_REQUIRE": "never"}


async def _call(command: Sequence[str], timeout: float, stdin: bytes = b"") -> tuple[int, str, str]:
    """Run ssh to its end; its exit code and outputs.

    Raises:
        TimeoutError: It takes longer than `timeout` seconds.
        UnreachableError: It is not installed.
    """
    # Files and not pipes: a master, or its ProxyCommand, may keep the outputs open.
    with contextlib.ExitStack() as stack:
        given, out, err = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(3))
        given.write(stdin)
        given.seek(0)
        try:
            process = await start_child(*command, env=_env(), stdin=given, stdout=out, stderr=err)
        except OSError as error:
            raise UnreachableError(
                "ssh is not installed on this machine",
                code="no_ssh",
                hint="install the OpenSSH client",
                detail={"ssh": str(error)},
            ) from error
        try:
            code = await asyncio.wait_for(process.wait(), timeout)
        finally:
            await end_child(process)
        out.seek(0)
        err.seek(0)
        return code, out.read().decode("utf-8", "replace"), err.read().decode("utf-8", "replace")


class Ssh:
    """Runs the commands of a cluster on the first login node that answers.

    Raises:
        InvalidInputError: The configuration has no login node, or an invalid one.
    """

    def __init__(self, config: SlurmCluster) -> None:
        if not config.login_nodes and config.hyperpod is None:
            raise InvalidInputError(
                'transport = "ssh" needs login_nodes',
                code="no_login_nodes",
                hint='set login_nodes = ["login-1", "login-2"] in the configuration, or the HyperPod cluster: hyperpod = "NAME"',
                detail={"field": "login_nodes"},
            )
        self._config = config
        self._discovery: LoginNodeDiscovery | None = None
        if not config.login_nodes and config.hyperpod is not None:
            self._discovery = LoginNodeDiscovery(config.hyperpod)
        self._finding = asyncio.Lock()
        self._note: str | None = None
        self._nodes = self._make_nodes(config.login_nodes)

    @property
    def notes(self) -> tuple[str, ...]:
        """AWS's note, then why login nodes are skipped, and which one is used instead; empty while the first one is used."""
        used = next((node for node in self._nodes if node.fault is None), None)
        instead = f"; {used.text} is used" if used is not None and used.connected else ""
        faults = [node.fault.message for node in self._nodes if node.fault is not None]
        return (*([self._note] if self._note else ()), *(fault + instead for fault in faults))

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout: float = COMMAND_TIMEOUT) -> CommandOutput:
        """Run one command to its end (see `Transport.run`).

        Raises:
            DeniedError: No login node accepts us, or a host key has changed.
            InvalidInputError: An argument contains a NUL, or ssh's configuration is invalid.
        """
        marker = secrets.token_hex(12)
        script = command_script(argv, stdin, marker, self._config)
        while True:
            faults: dict[LoginNode, HyperpodError] = {}
            queue = deque(await self._in_order())
            while queue:
                node = queue.popleft()
                try:
                    output = await node.run(argv[0], script, marker, timeout)
                except UnansweredError as unanswered:
                    error = unanswered.error
                    if node not in self._nodes:  # this transport was closed
                        raise error from unanswered
                    node.fault, node.retry_at = error, time.monotonic() + RETRY_S
                    if unanswered.may_have_run and not repeatable(argv):
                        raise _answer_lost_error(argv[0], node, error) from unanswered
                    if unanswered.may_have_run and node not in faults:
                        queue.append(node)  # a new connection may be all that it needs
                    faults[node] = error
                else:
                    node.fault = None
                    return output
            if not await self._discover_others():
                raise combined_error(faults.values())

    async def shell_line(self, argv: Sequence[str]) -> str:
        """The line with which a user runs a command in a terminal of this machine, on the login node in use."""
        conf = self._config.slurm_conf
        assignment = f"SLURM_CONF={shlex.quote(conf)} " if conf else ""
        command = shlex.join(_with_folder(argv, self._config))
        node = await self.login_node()
        return node.shell_line(f'env "{_path(self._config)}" {assignment}{command}')

    async def login_node(self) -> LoginNode:
        """The login node in use."""
        nodes = await self._in_order()
        return next((node for node in nodes if node.connected), nodes[0])

    async def close(self) -> None:
        """End all connections."""
        nodes, self._nodes = self._nodes, self._make_nodes(self._config.login_nodes)
        await asyncio.gather(*(node.close() for node in nodes))

    async def _in_order(self) -> list[LoginNode]:
        """The login nodes in the order to try: those that failed a short while ago come last."""
        async with self._finding:
            if not self._nodes and self._discovery is not None:
                found = await self._discovery.get()
                self._note, self._nodes = found.note, self._make_nodes(found.hosts)
        now = time.monotonic()
        skipped = [node for node in self._nodes if node.fault is not None and now < node.retry_at]
        usable = [node for node in self._nodes if node not in skipped]
        return usable + sorted(skipped, key=lambda node: node.retry_at)

    async def _discover_others(self) -> bool:
        """Look for login nodes other than those that did not answer, and switch to them; returns whether there are any."""
        if self._discovery is None:
            return False
        async with self._finding:
            found = await self._discovery.get(refresh=True)
            known = {node.text: node for node in self._nodes}
            if set(found.hosts) <= known.keys():
                return False
            nodes = [known.pop(node.text, node) for node in self._make_nodes(found.hosts)]
            self._note, self._nodes = found.note, nodes
            await asyncio.gather(*(node.close() for node in known.values()))
            return True

    def _make_nodes(self, hosts: Sequence[str]) -> list[LoginNode]:
        ordered = rotate_hosts(list(dict.fromkeys(hosts)), current_user_key())
        return [LoginNode(host, self._config) for host in ordered]


def _answer_lost_error(program: str, node: LoginNode, error: HyperpodError) -> UnreachableError:
    return UnreachableError(
        f"the result of {program} on {node.text} is unknown: {error.message}",
        code=ANSWER_LOST,
        hint="check whether it was done before you try again",
        detail={"command": program, "login_node": node.text, "cause": error.code},
    )


def build_transport(config: SlurmCluster) -> Ssh | LocalTransport:
    """Create the transport for the cluster's commands.

    Raises:
        InvalidInputError: The configuration has no login node, or an invalid one.
    """
    if config.transport == "ssh":
        return Ssh(config)
    return LocalTransport(config.commands, config.slurm_conf)
