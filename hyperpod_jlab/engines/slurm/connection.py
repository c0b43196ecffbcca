"""A connection to a login node: an ``ssh -M`` process that commands reach over a socket in a private folder.

The process is our child and has one session of its own, in which ``cat`` waits. When this process
ends, for any reason, that input closes, ``cat`` ends, and so does the connection. Nothing stays
behind, and no other process shares it. Without the socket a command fails at once instead of
opening its own connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import re
import secrets
import shlex
import shutil
import tempfile
import weakref
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from hyperpod_jlab.core.child_process import end_child, start_child
from hyperpod_jlab.core.errors import (
    DeniedError,
    HyperpodError,
    InvalidInputError,
    UnreachableError,
    mask_credentials,
)
from hyperpod_jlab.engines.slurm.transport import (
    KEPT_VARIABLES,
    PREFIXES,
    TIME_FORMAT,
    CommandOutput,
)

# --------------------------------------------------------------------------------------------------
# One ssh process that runs a command on a login node. It is always terminated at the end.

CHUNK = 65536


@contextlib.asynccontextmanager
async def ssh_process(argv: Sequence[str]) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run ssh for the duration of the block.

    Raises:
        FileNotFoundError: ssh is not installed.
    """
    process = await start_ssh(argv)
    try:
        yield process
    finally:
        await end_child(process)


async def start_ssh(argv: Sequence[str]) -> asyncio.subprocess.Process:
    """Start ssh with pipes, detached from the terminal: no user could answer a jump host's prompt."""
    return await start_child(*argv, env={**os.environ, "SSH_ASKPASS_REQUIRE": "never"})


class Exchange:
    """Concurrent input and output of a process.

    Args:
        process: The process, with pipes.
        is_started: Takes the output so far and returns whether the remote shell has started.
        stdin: Its input.
        send_immediately: Whether to write the input at once, or only after the remote shell has
            started.
    """

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        is_started: Callable[[bytes], bool],
        stdin: bytes,
        *,
        send_immediately: bool,
    ) -> None:
        self.out = bytearray()
        self.err = bytearray()
        self.may_send = send_immediately
        """Whether all of the input may be sent."""
        self.started = asyncio.Event()
        self._process = process
        self._is_started = is_started
        self._stdin = stdin
        self._tasks = [asyncio.create_task(self._feed()), asyncio.create_task(self._read())]

    async def wait_started(self, seconds: float) -> bool:
        """Wait until the remote shell starts or the process ends; False on timeout."""
        waiter = asyncio.create_task(self.started.wait())
        try:
            done, _ = await asyncio.wait(
                {waiter, self._tasks[1]}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            waiter.cancel()
        return bool(done)

    async def wait_end(self, seconds: float) -> bool:
        """Wait until the process has ended and all output is read; False on timeout."""
        done, _ = await asyncio.wait({self._tasks[1]}, timeout=seconds)
        return bool(done)

    async def close(self) -> None:
        """Stop reading and writing."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _feed(self) -> None:
        pipe = self._process.stdin
        assert pipe is not None
        if not self.may_send:
            await self.started.wait()
            self.may_send = True
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            pipe.write(self._stdin)
            await pipe.drain()
        pipe.close()

    async def _read(self) -> None:
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        await asyncio.gather(
            self._drain(self._process.stdout, self.out), self._drain(self._process.stderr, self.err)
        )
        await self._process.wait()

    async def _drain(self, pipe: asyncio.StreamReader, buffer: bytearray) -> None:
        while chunk := await pipe.read(CHUNK):
            buffer += chunk
            if buffer is self.out and not self.started.is_set() and self._is_started(bytes(buffer)):
                self.started.set()


# --------------------------------------------------------------------------------------------------
# Encodes a command for a login node as one line that every login shell passes on unchanged, and
# extracts its output from what start-up files print.
#
# The login shell (bash, zsh, csh, fish) sees only harmless characters in single quotes and starts
# ``/bin/sh``, which decodes and runs the command; no argument is ever parsed as shell. A marker
# made for this one call separates the command's output from that of start-up files. The exit code
# follows the output, so that a command's 255 is not mistaken for ssh's, and a truncated response is
# detected.
#
# A command that must not run twice waits on the login node until its whole input has arrived, with
# the marker at its end. If the connection breaks or the node hangs before that, nothing has run.

_SAFE_BYTES = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _./:,@=+-")
_MAX_ARG_BYTES = 120_000
"""Maximum length of one argument in bytes; Linux's limit is 131,072 (MAX_ARG_STRLEN)."""

_DEFAULT_PATH = "/opt/slurm/bin:/usr/local/slurm/bin"
"""Folders with Slurm's commands that HyperPod and others add to PATH in profiles, which ssh does not read for a command."""

_READ_ONLY = frozenset({"squeue", "sinfo", "sacct", "sdiag", "sprio", "sshare", "sstat", "sreport"})
_READ_ONLY_SUBCOMMANDS = {
    "scontrol": frozenset({"show", "ping", "version", "listpids"}),
    "sacctmgr": frozenset({"show", "list", "version"}),
}


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


@dataclass(frozen=True)
class Remote:
    """One call of a command.

    Args:
        argv: The arguments, passed on unchanged.
        commands: Folder of the command, or None for PATH.
        slurm_conf: The value of SLURM_CONF, or None for the login node's own.
        waits_for_input: Whether the command starts only after its whole input has arrived (see the
            module).
    """

    argv: Sequence[str]
    commands: str | None = None
    slurm_conf: str | None = None
    waits_for_input: bool = False
    marker: str = field(default_factory=lambda: secrets.token_hex(12))

    @property
    def line(self) -> str:
        """The command line for ssh.

        Raises:
            InvalidInputError: An argument contains a NUL, or the arguments are too long.
        """
        script = self._script().encode("utf-8", "surrogateescape")
        if b"\0" in script:
            raise InvalidInputError("an argument of a command cannot contain a NUL character")
        coded = "".join(chr(byte) if byte in _SAFE_BYTES else f"\\0{byte:03o}" for byte in script)
        if len(coded) > _MAX_ARG_BYTES:
            raise InvalidInputError(
                f"the arguments of {self.argv[0]} are too long for one command",
                code="command_too_long",
                detail={"bytes": len(coded), "most": _MAX_ARG_BYTES},
            )
        return f"""exec /bin/sh -c 'eval "$(printf %b "$1")"' hyperpod '{coded}'"""

    @property
    def shell(self) -> str:
        """The command for a login node's shell in a terminal."""
        conf = f"SLURM_CONF={shlex.quote(self.slurm_conf)} " if self.slurm_conf else ""
        return f'env "{self._path()}" {conf}{shlex.join([self.program, *self.argv[1:]])}'

    def input(self, stdin: bytes) -> bytes:
        """The bytes for the command's input."""
        return stdin + self.marker.encode() if self.waits_for_input else stdin

    def is_started(self, out: bytes) -> bool:
        """Whether the output so far shows that the login node's shell has started."""
        return self._begin_marker in out

    def output(self, out: bytes, err: bytes) -> CommandOutput | None:
        """The command's own output, or None if it is incomplete."""
        _, started, remainder = out.partition(self._begin_marker)
        match = re.search(rf"\n{self.marker}=([0-9]+)\n".encode(), remainder) if started else None
        if match is None:
            return None
        stderr = err.partition(self._begin_marker)[2].partition(f"\n{self.marker}=".encode())[0]
        return CommandOutput(
            int(match[1]),
            remainder[: match.start()].decode("utf-8", "replace"),
            stderr.decode("utf-8", "replace"),
        )

    def is_missing(self, out: bytes) -> bool:
        """Whether the login node does not have the command."""
        return f"\n{self.marker}!\n".encode() in out

    @property
    def program(self) -> str:
        """The command, with its folder if that is known."""
        return str(PurePosixPath(self.commands or "", self.argv[0]))

    @property
    def _begin_marker(self) -> bytes:
        return f"\n{self.marker}+\n".encode()

    def _script(self) -> str:
        args = shlex.join([self.program, *self.argv[1:]])
        run = f'printf %s "$hpj" | {args}' if self.waits_for_input else args
        return "\n".join([self._start_line(), *self._environment(), self._find_program(), *self._wait_for_go(), run, self._end_line()])  # fmt: skip

    def _start_line(self) -> str:
        return rf"printf '\n%s+\n' {self.marker}; printf '\n%s+\n' {self.marker} >&2"

    def _end_line(self) -> str:
        return rf"""hpj=$?; printf '\n%s=%d\n' {self.marker} "$hpj"; printf '\n%s=\n' {self.marker} >&2"""

    def _environment(self) -> list[str]:
        prefixes = "|".join(name.removesuffix("_") for name in PREFIXES)
        kept_names = "|".join(sorted(KEPT_VARIABLES))
        assignments = TIME_FORMAT | ({"SLURM_CONF": self.slurm_conf} if self.slurm_conf else {})
        return [
            f"for hpj in $(env | grep -Eo '^({prefixes})_[A-Za-z0-9_]*='); do",
            f'case ${{hpj%=}} in {kept_names}) ;; *) unset "${{hpj%=}}" ;; esac; done',
            f"{self._path()}; export PATH",
            *(f"{name}={shlex.quote(value)}; export {name}" for name, value in assignments.items()),
        ]

    def _path(self) -> str:
        path = f"{shlex.quote(self.commands)}:$PATH" if self.commands else f"$PATH:{_DEFAULT_PATH}"
        return f"PATH={path}"

    def _find_program(self) -> str:
        return rf"command -v {shlex.quote(self.program)} >/dev/null || {{ printf '\n%s!\n' {self.marker}; exit 127; }}"

    def _wait_for_go(self) -> list[str]:
        if not self.waits_for_input:
            return []
        return ["hpj=$(cat)", f"case $hpj in *{self.marker}) hpj=${{hpj%{self.marker}}} ;; *) exit 1 ;; esac"]  # fmt: skip


# --------------------------------------------------------------------------------------------------
# A private folder for ssh's sockets. Its path is short, because a socket's path has at most 104
# bytes; folders left by killed processes are removed.

_PREFIX = "hpj-ssh-"
_MAX_SOCKET_FOLDER = 60


class SocketFolder:
    """A new private folder. `close` or the end of the process deletes it; after a kill, the next instance does."""

    def __init__(self, runtime: Path | None = None) -> None:
        parent = runtime if runtime is not None else _runtime()
        _remove_stale(parent)
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        self._lock = os.open(self.path / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self._end_line = weakref.finalize(self, _remove, self.path, self._lock)

    def close(self) -> None:
        self._end_line()


def _runtime() -> Path:
    """The user's runtime folder if it exists, else /tmp; TMPDIR is often too long."""
    runtime_dir = os.environ.get("XDG_RUNTIME_DIR", "")
    if (
        runtime_dir.startswith("/")
        and len(runtime_dir.encode()) <= _MAX_SOCKET_FOLDER
        and os.access(runtime_dir, os.W_OK)
    ):
        return Path(runtime_dir)
    return Path("/tmp")  # noqa: S108 - mkdtemp makes a folder in it that only this user may enter


def _remove(path: Path, lock: int) -> None:
    shutil.rmtree(path, ignore_errors=True)
    os.close(lock)


def _remove_stale(parent: Path) -> None:
    """Delete the folders of dead processes, whose locks are free."""
    for folder in parent.glob(f"{_PREFIX}*"):
        try:
            if folder.stat().st_uid != os.getuid():
                continue
            lock = os.open(folder / "lock", os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except BlockingIOError:
            pass
        finally:
            os.close(lock)


# --------------------------------------------------------------------------------------------------
# A login node's address in the configuration.

_FORM = re.compile(
    r"(?:(?P<user>[A-Za-z0-9_][A-Za-z0-9._@+\\-]*)@)?"
    r"(?:(?P<host>[A-Za-z0-9_][A-Za-z0-9._-]*)|\[(?P<ip>[0-9A-Fa-f:.]+(?:%[A-Za-z0-9]+)?)\])"
    r"(?::(?P<port>[0-9]{1,5}))?"
)


@dataclass(frozen=True)
class LoginAddress:
    """A login node's address: a host that ssh can reach, or a ``Host`` name of ssh's configuration."""

    text: str
    host: str
    user: str | None
    port: int | None

    @classmethod
    def parse(cls, text: str, user: str | None = None) -> LoginAddress:
        """Parse ``[user@]host[:port]``; IPv6 addresses are in ``[...]``.

        Args:
            text: The configured value.
            user: The user when the text names none.

        Raises:
            InvalidInputError: The format is invalid; ssh might read it as an option.
        """
        match = _FORM.fullmatch(text)
        port = int(match["port"]) if match and match["port"] else None
        if match is None or (port is not None and not 1 <= port <= 65535):
            raise InvalidInputError(
                f"{text!r} is not a valid login node",
                code="invalid_login_node",
                hint="use [user@]host or [user@]host:port; the host may be an alias of the ssh configuration",
                detail={"field": "login_nodes", "value": text},
            )
        return cls(text, match["host"] or match["ip"], match["user"] or user, port)

    def ssh_args(self) -> list[str]:
        """Options of ssh for the address, without the host."""
        user = ["-l", self.user] if self.user is not None else []
        return [*user, "-p", str(self.port)] if self.port is not None else user


# --------------------------------------------------------------------------------------------------
# ssh's error messages mapped to our errors. The texts are OpenSSH's (sshconnect.c, sshconnect2.c,
# readconf.c), unchanged from 7.4 to 10; they are never translated.

_OFFENDING_KEY = re.compile(r"Offending (?:\S+ )?key in (\S.*?):([0-9]+)")
_FINGERPRINT = re.compile(r"(SHA256:[A-Za-z0-9+/=]+)")
_NOISE = re.compile(r"^(@+|\s*|Shared connection to .* closed\.)$", re.MULTILINE)


def parse_ssh_error(login: str, stderr: str, command_line: str) -> HyperpodError:
    """The error for a failed connection.

    Args:
        login: The login node as configured.
        stderr: ssh's standard error.
        command_line: The command with which a user logs in from a terminal.
    """
    for text, make in _ERROR_HANDLERS:
        if text in stderr:
            return make(login, stderr, command_line)
    return UnreachableError(
        f"{login} cannot be reached: {_summarize(stderr)}",
        code="login_unreachable",
        hint=f"see: {command_line}",
        detail={"login_node": login},
    )


def _summarize(stderr: str) -> str:
    lines = [" ".join(line.split()) for line in _NOISE.sub("", stderr).splitlines()]
    text = mask_credentials("; ".join(line for line in lines if line))
    return (text or "ssh printed no error")[:300]


def _host_key_changed(login: str, stderr: str, command_line: str) -> HyperpodError:
    location, print_ = _OFFENDING_KEY.search(stderr), _FINGERPRINT.search(stderr)
    known_hosts_line = f"{location[1]}:{location[2]}" if location else None
    location_text = f"line {location[2]} of {location[1]}" if location else "known_hosts"
    return DeniedError(
        f"the host key of {login} has changed: {location_text} has another key, so the connection was refused",
        code="host_key_changed",
        hint=f"ask your cluster administrator whether {login} was reinstalled"
        + (f" and has the key {print_[1]}" if print_ else "")
        + f"; only if so, delete {location_text} and log in once in a terminal: {command_line}",
        detail={
            "login_node": login,
            "known_hosts": known_hosts_line,
            "fingerprint": print_[1] if print_ else None,
        },
    )


def _host_key_unknown(login: str, stderr: str, command_line: str) -> HyperpodError:
    return DeniedError(
        f"the host key of {login} is unknown",
        code="host_key_unknown",
        hint=f"log in once in a terminal ({command_line}), compare the fingerprint with the one from your cluster administrator, and confirm it",
        detail={"login_node": login, "ssh": _summarize(stderr)},
    )


def _host_key_revoked(login: str, stderr: str, command_line: str) -> HyperpodError:
    del command_line
    return DeniedError(
        f"the host key of {login} is marked as revoked",
        code="host_key_revoked",
        hint="ask your cluster administrator",
        detail={"login_node": login, "ssh": _summarize(stderr)},
    )


def _key_refused(login: str, stderr: str, command_line: str) -> HyperpodError:
    return DeniedError(
        f"{login} does not accept your ssh keys: {_summarize(stderr)}",
        code="ssh_key_refused",
        hint=f"add your public key to ~/.ssh/authorized_keys on {login}, and use a key file or agent without a passphrase; see: {command_line} -v",
        detail={"login_node": login},
    )


def _config_error(login: str, stderr: str, command_line: str) -> HyperpodError:
    del command_line
    return InvalidInputError(
        f"the ssh configuration is invalid: {_summarize(stderr)}",
        code="ssh_config",
        hint="correct the file of ssh_config, or ~/.ssh/config",
        detail={"login_node": login},
    )


_ERROR_HANDLERS: tuple[tuple[str, Callable[[str, str, str], HyperpodError]], ...] = (
    ("REVOKED HOST KEY", _host_key_revoked),
    ("is marked as revoked", _host_key_revoked),
    ("REMOTE HOST IDENTIFICATION HAS CHANGED", _host_key_changed),
    ("HOST IDENTIFICATION HAS CHANGED", _host_key_changed),
    ("host key is known for", _host_key_unknown),
    ("Host key verification failed", _host_key_unknown),
    ("Permission denied (", _key_refused),
    ("Too many authentication failures", _key_refused),
    ("No more authentication methods", _key_refused),
    ("Bad configuration option", _config_error),
    ("bad configuration options", _config_error),
    ("Can't open user config file", _config_error),
    ("Bad owner or permissions on", _config_error),
)

SESSIONS = 8
"""Concurrent commands over one connection: sshd allows 10 sessions (MaxSessions in man sshd_config), and the connection itself uses one."""


@dataclass(frozen=True)
class SshTimeouts:
    """Timeouts for a login node, in seconds."""

    connect: float = 20.0
    """For connecting and logging in."""
    next_node: float = 4.0
    """Before the next login node is tried in parallel."""
    shell: float = 15.0
    """For the shell to start; start-up files on a slow file system take a while."""
    alive: int = 5
    """Between ssh's keep-alive probes; three without a response end the connection."""
    idle: float = 300.0
    """After which an idle connection is closed."""


@dataclass(frozen=True)
class SshTarget:
    """How to connect to a login node: its address, the file for ``ssh -F`` or None, and the timeouts."""

    address: LoginAddress
    config: str | None
    timeouts: SshTimeouts

    def ssh_args(self, socket: Path, *, master: bool) -> list[str]:
        """Arguments of ssh before the host. These are the options that must not vary; the user's configuration decides the rest."""
        settings = {
            "BatchMode": "yes",
            "StrictHostKeyChecking": "yes",
            "UpdateHostKeys": "no",
            "LogLevel": "ERROR",
            "ConnectTimeout": max(1, int(self.timeouts.connect / 2)),
            "ServerAliveInterval": self.timeouts.alive,
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
        ssh_args = [arg for name, value in settings.items() for arg in ("-o", f"{name}={value}")]
        return ["ssh", *config, *ssh_args, *self.address.ssh_args()]

    def forward_args(self, forward: str) -> list[str]:
        """Arguments of ssh for a connection of its own that forwards a port (``-L``); a command may follow."""
        # ssh takes the first value of an option.
        options = ("ClearAllForwardings=no", "ExitOnForwardFailure=yes", "LogLevel=INFO")
        ssh, *args = self.ssh_args(Path("none"), master=False)
        own_args = [arg for option in options for arg in ("-o", option)]
        return [ssh, *own_args, "-L", forward, *args, "--", self.address.host]

    def shell_line(self, command: str) -> str:
        """The line with which a user runs a command of a login node's shell in a terminal."""
        config = ["-F", self.config] if self.config else []
        return shlex.join(
            ["ssh", "-t", *config, *self.address.ssh_args(), self.address.host, command]
        )

    @property
    def command_line(self) -> str:
        """The command with which a user logs in from a terminal."""
        config = ["-F", self.config] if self.config else []
        return shlex.join(["ssh", *config, *self.address.ssh_args(), self.address.host])

    def timeout_error(self) -> UnreachableError:
        """The error when the login node does not answer in time."""
        return UnreachableError(
            f"{self.address.text} does not answer",
            code="login_hangs",
            hint="try again, or ask your cluster administrator",
            detail={"login_node": self.address.text},
        )


class SshConnection:
    """A connection made by `open_connection`."""

    def __init__(
        self,
        ssh_target: SshTarget,
        socket: Path,
        process: asyncio.subprocess.Process,
        drains: Sequence[asyncio.Task[None]],
    ) -> None:
        self.limit = SESSIONS
        """Concurrent commands, as far as is known."""
        self.slots = asyncio.Semaphore(SESSIONS)
        self.fault: HyperpodError | None = None
        """Why the connection must not take new commands."""
        self._ssh_target = ssh_target
        self._socket = socket
        self._process = process
        self._drains = drains

    @property
    def alive(self) -> bool:
        """Whether the connection is up, as far as is known."""
        return self._process.returncode is None

    def command(self, line: str, marker: str) -> list[str]:
        """The command that runs a line over the connection. Without the connection, the marker and ``-`` go to standard error, and nothing runs."""
        # ssh starts a ProxyCommand only when the socket is missing. Its shell must keep standard
        # output open, because ssh reads its end as the end of the connection.
        proxy_option = ["-o", f"ProxyCommand=/bin/sh -c 'echo {marker}- >&2'"]
        args = self._ssh_target.ssh_args(self._socket, master=False)
        return [*args, *proxy_option, "--", self._ssh_target.address.host, line]

    def close_when_idle(self) -> None:
        """Close as soon as no command uses it."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    async def close(self) -> None:
        """Close at once."""
        await end_child(self._process)
        for task in self._drains:
            task.cancel()
        await asyncio.gather(*self._drains, return_exceptions=True)
        await asyncio.to_thread(self._socket.unlink, missing_ok=True)


async def open_connection(ssh_target: SshTarget, socket: Path) -> SshConnection:
    """Connect and log in within the connect timeout.

    Raises:
        DeniedError: The host key differs from the known one, or the login node accepts none of our
            keys.
        UnreachableError: The login node does not answer, or ssh is not installed.
        InvalidInputError: ssh's configuration is invalid.
    """
    marker = secrets.token_hex(12)
    args = [
        *ssh_target.ssh_args(socket, master=True),
        "--",
        ssh_target.address.host,
        f"echo {marker}; exec cat",
    ]
    try:
        process = await start_ssh(args)
    except OSError as error:
        raise UnreachableError(
            "ssh is not installed on this machine",
            code="no_ssh",
            hint="install the OpenSSH client",
            detail={"ssh": str(error)},
        ) from error
    drains: list[asyncio.Task[None]] = []
    connection = SshConnection(ssh_target, socket, process, drains)
    try:
        await _wait_connected(ssh_target, process, marker.encode(), drains)
    except BaseException:
        await connection.close()
        raise
    return connection


async def _wait_connected(
    ssh_target: SshTarget,
    process: asyncio.subprocess.Process,
    marker: bytes,
    drains: list[asyncio.Task[None]],
) -> None:
    assert process.stdout is not None
    assert process.stderr is not None
    connected = asyncio.Event()
    stdout, stderr = bytearray(), bytearray()

    def on_stdout(chunk: bytes) -> None:
        if not connected.is_set():
            stdout.extend(chunk)
            if marker in stdout:
                connected.set()

    def on_stderr(chunk: bytes) -> None:
        stderr.extend(chunk)
        del stderr[:-8000]

    drains += [
        asyncio.create_task(_drain(process.stdout, on_stdout)),
        asyncio.create_task(_drain(process.stderr, on_stderr)),
    ]
    waiters = [asyncio.create_task(connected.wait()), asyncio.create_task(process.wait())]
    try:
        done, _ = await asyncio.wait(
            waiters, timeout=ssh_target.timeouts.connect, return_when=asyncio.FIRST_COMPLETED
        )
        if connected.is_set():
            return
        if not done:
            raise ssh_target.timeout_error()
        await asyncio.wait(drains, timeout=1)
    finally:
        for task in waiters:
            task.cancel()
    text = stderr.decode("utf-8", "replace") + stdout.decode("utf-8", "replace")
    raise parse_ssh_error(ssh_target.address.text, text, ssh_target.command_line)


async def _drain(pipe: asyncio.StreamReader, buffer: Callable[[bytes], None]) -> None:
    while chunk := await pipe.read(CHUNK):
        buffer(chunk)
