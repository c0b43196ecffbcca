"""Slurm's commands on login nodes, over OpenSSH, with fail-over.

Why OpenSSH's own client with a shared connection (ControlMaster), and not asyncssh: it is installed
wherever Slurm's users log in, and it reads their setup, ``~/.ssh/config`` with jump hosts and
ProxyCommand (such as Session Manager's), known_hosts, agents, certificates, FIDO keys and GSSAPI,
of which a library supports only a part. It needs no extra package, and the distribution maintains
it. A command over an open connection costs a small process here and a session there.

Each process has its own connections (see `SshConnection`): we leave nothing behind on either side,
and
processes need not coordinate. The price is one log-in for each ``hpj`` in a terminal; the server
logs in once.

We never accept host keys: an unknown or changed host key is an error.

The first login node in the list that answers is used. If one is slow, the next one is tried in
parallel. A node that does not answer is skipped for a growing pause, then retried in the
background, and used again when it answers. A command that certainly did not run goes to the next
node; one that may have run is sent again only if it is idempotent.
"""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import hashlib
import json
import os
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hyperpod_jlab.aws.clusters import NO_LOGIN_NODES, find_login_nodes
from hyperpod_jlab.aws.session import Aws, home_region
from hyperpod_jlab.aws.studio import find_studio
from hyperpod_jlab.core.config import SlurmCluster
from hyperpod_jlab.core.errors import (
    DeniedError,
    HyperpodError,
    InvalidInputError,
    UnreachableError,
)
from hyperpod_jlab.core.hyperpod import region_of
from hyperpod_jlab.engines.slurm.connection import (
    LoginAddress,
    Remote,
    SocketFolder,
    SshTarget,
    SshTimeouts,
    repeatable,
)
from hyperpod_jlab.engines.slurm.login_node import LoginNode, UnansweredError
from hyperpod_jlab.engines.slurm.transport import (
    ANSWER_LOST,
    COMMAND_TIMEOUT,
    CommandOutput,
    LocalTransport,
)

# --------------------------------------------------------------------------------------------------
# Assigns login nodes to users: spread over the nodes, and always the same node for each user.


def rotate_hosts(hosts: Sequence[str], user_key: str) -> list[str]:
    """The hosts in a user's order: it starts at a host derived from the name and wraps around.

    So the users of a failed host do not all move to the same next one.
    """
    if not hosts:
        return []
    first = int.from_bytes(hashlib.sha256(user_key.encode()).digest()[:8], "big") % len(hosts)
    return [*hosts[first:], *hosts[:first]]


def current_user_key() -> str:
    """A key for the current user. In Studio all users have the same user name on their machines, so there the key is the space's."""
    studio = find_studio()
    if studio is not None and studio.space is not None:
        return f"{studio.domain_id}/{studio.space}"
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a uid without a name
        return str(os.getuid())


# --------------------------------------------------------------------------------------------------
# Login nodes discovered through AWS, for a cluster whose configuration names its HyperPod cluster
# and no login nodes.
#
# All processes of a user share the result for some minutes, so that a command line does not query
# AWS each time.

_TTL_S = 900.0
"""Seconds for which the result is cached, unless none of the login nodes answers."""

_REFRESH_PAUSE_S = 60.0
"""Seconds between two queries while none of them answers."""


@dataclass(frozen=True)
class LoginNodes:
    """AWS's response: hosts, and notes for the user."""

    hosts: tuple[str, ...]
    note: str | None


class LoginNodeDiscovery:
    """The login nodes of a HyperPod cluster.

    Args:
        cluster: Its name or ARN.
    """

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster

    async def get(self, *, refresh: bool = False) -> LoginNodes:
        """The hosts.

        Args:
            refresh: Whether none of the last returned hosts answers, so that they may have been
                replaced.

        Raises:
            HyperpodError: AWS does not answer, and nothing is cached.
        """
        path = await asyncio.to_thread(self._path)
        age, cached = await asyncio.to_thread(_read, path)
        if cached is not None and age < (_REFRESH_PAUSE_S if refresh else _TTL_S):
            return cached
        try:
            nodes = await find_login_nodes(Aws(region_of(self._cluster)), self._cluster)
        except HyperpodError as error:
            if cached is not None and error.code != NO_LOGIN_NODES:
                return cached
            raise _discovery_error(self._cluster, error) from error
        login_nodes = LoginNodes(
            tuple(instance.host for instance in nodes.instances if instance.host), nodes.note
        )
        await asyncio.to_thread(_write, path, login_nodes)
        return login_nodes

    def _path(self) -> Path:
        """The cache file for the same cluster of the same account."""
        key_parts = [self._cluster, home_region() or "", *map(os.environ.get, _ACCOUNT)]
        digest = hashlib.sha256("\0".join(part or "" for part in key_parts).encode()).hexdigest()
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
        return base / "hyperpod-jlab" / "slurm" / f"login-{digest[:16]}.json"


_ACCOUNT = ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_ROLE_ARN", "AWS_ENDPOINT_URL")
"""Variables that select the AWS account."""


def _read(path: Path) -> tuple[float, LoginNodes | None]:
    """The cached hosts and their age in seconds. An unreadable file counts as missing."""
    try:
        age = time.time() - path.stat().st_mtime
        data = json.loads(path.read_text(encoding="utf-8"))
        login_nodes = LoginNodes(tuple(map(str, data["hosts"])), data["note"] and str(data["note"]))
    except (OSError, ValueError, TypeError, KeyError):
        return 0.0, None
    return (age, login_nodes) if age >= 0 and login_nodes.hosts else (0.0, None)


def _write(path: Path, login_nodes: LoginNodes) -> None:
    """Save the hosts; if that fails, AWS is queried more often."""
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(6)}")
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(json.dumps({"hosts": login_nodes.hosts, "note": login_nodes.note}))
        temporary.replace(path)


def _discovery_error(cluster: str, error: HyperpodError) -> HyperpodError:
    if error.code == NO_LOGIN_NODES:
        return error
    hint = 'set them in the configuration: login_nodes = ["HOST"]'
    return UnreachableError(
        f"AWS does not list the login nodes of {cluster}: {error.message}",
        code=error.code,
        hint=f"{error.hint}; or {hint}" if error.hint else hint,
        detail={**error.detail, "field": "login_nodes"},
    )


_MIN_RETRY_S = 15.0
_MAX_RETRY_S = 600.0

_IMPORTANT_CODES = ("host_key_changed", "host_key_revoked", "ssh_key_refused", "host_key_unknown")
"""Codes that a user must see first when login nodes have different faults."""


@dataclass(eq=False)
class _Candidate:
    """A login node, and whether it is skipped."""

    node: LoginNode
    fault: HyperpodError | None = None
    retry_pause: float = 0.0
    retry_at: float = 0.0
    probe: asyncio.Task[None] | None = None

    def mark_failed(self, error: HyperpodError) -> None:
        """Skip the login node for a while: longer if a retry failed, but not if several commands report the same failure."""
        now = time.monotonic()
        if self.fault is None or now >= self.retry_at:
            self.retry_pause = min(self.retry_pause * 2 or _MIN_RETRY_S, _MAX_RETRY_S)
            self.retry_at = now + self.retry_pause
        self.fault = error

    def mark_reachable(self) -> None:
        """Clear the failures."""
        self.fault, self.retry_pause, self.retry_at = None, 0.0, 0.0


class Ssh:
    """Runs the commands on the first login node that answers.

    Args:
        login_nodes: ``[user@]host[:port]``.
        discovery: Finds login nodes when none is configured.
        user_key: The user's key, from which the first login node is derived. None: use them in list
            order.
        user: The user for entries that name none.
        config: File for ``ssh -F``; None for ssh's own.
        commands: Folder of Slurm's commands there, or None for those on PATH.
        slurm_conf: Slurm's configuration file there, or None for its own.
        timeouts: The timeouts for a login node.

    Raises:
        InvalidInputError: No login node is given, or one is invalid.
    """

    def __init__(
        self,
        login_nodes: Sequence[str],
        *,
        discovery: LoginNodeDiscovery | None = None,
        user_key: str | None = None,
        user: str | None = None,
        config: str | None = None,
        commands: str | None = None,
        slurm_conf: str | None = None,
        timeouts: SshTimeouts | None = None,
    ) -> None:
        if not login_nodes and discovery is None:
            raise InvalidInputError(
                'transport = "ssh" needs login_nodes',
                code="no_login_nodes",
                hint='set login_nodes = ["login-1", "login-2"] in the configuration, or the HyperPod cluster: hyperpod = "NAME"',
                detail={"field": "login_nodes"},
            )
        self._user = user
        self._user_key = user_key
        self._addresses = self._ordered_addresses(login_nodes)
        self._discovery = None if login_nodes else discovery
        self._note: str | None = None
        self._finding = asyncio.Lock()
        self._config = config
        self._commands = commands
        self._slurm_conf = slurm_conf
        self._timeouts = timeouts or SshTimeouts()
        self._folder: SocketFolder | None = None
        self._candidates: list[_Candidate] = []

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes from the discovery, then skipped login nodes, why they are skipped, and which one is used instead; empty while the first one is used."""
        faults = [candidate for candidate in self._candidates if candidate.fault is not None]
        used_node = next(
            (candidate.node for candidate in self._candidates if candidate.fault is None), None
        )
        instead = (
            f"; {used_node.address.text} is used"
            if used_node is not None and used_node.connected
            else ""
        )
        fault_messages = (
            f"{candidate.fault.message}{instead}"
            for candidate in faults
            if candidate.fault is not None
        )
        return (*((self._note,) if self._note else ()), *fault_messages)

    async def run(
        self, argv: Sequence[str], *, stdin: bytes = b"", timeout: float = COMMAND_TIMEOUT
    ) -> CommandOutput:
        """Run one command to its end (see `Transport.run`).

        Raises:
            DeniedError: No login node accepts us, or a host key has changed.
            UnreachableError: No login node answers, the command is missing or times out; with code
                ``answer_lost``, it may have run.
            InvalidInputError: The arguments cannot be sent, or ssh's configuration is invalid.
        """
        is_repeatable = repeatable(argv)
        remote = Remote(argv, self._commands, self._slurm_conf, waits_for_input=not is_repeatable)
        if remote.waits_for_input and b"\0" in stdin:
            raise InvalidInputError(f"{argv[0]} does not accept a script with a NUL character")
        while True:
            faults: list[HyperpodError] = []
            output = await self._run_on_first(remote, stdin, timeout, faults)
            if output is not None:
                return output
            if not faults or not await self._discover_others():
                raise _combined_error(faults)

    async def shell_line(self, argv: Sequence[str]) -> str:
        """The line with which a user runs a command in a terminal of this machine, on the login node in use."""
        remote = Remote(argv, self._commands, self._slurm_conf)
        return (await self.target()).shell_line(remote.shell)

    async def target(self) -> SshTarget:
        """How to connect to the login node in use."""
        candidates = await self._sorted_candidates()
        used = next((one for one in candidates if one.node.connected), candidates[0])
        return used.node.target

    async def _run_on_first(
        self, remote: Remote, stdin: bytes, timeout: float, faults: list[HyperpodError]
    ) -> CommandOutput | None:
        """Run the command on the first login node that accepts it; None when none does, with the causes in `faults`."""
        queue = await self._sorted_candidates()
        while (candidate := await self._first_reachable(queue, faults)) is not None:
            queue.remove(candidate)
            try:
                output = await candidate.node.run(remote, stdin, timeout)
            except UnansweredError as fault:
                if not candidate.node.connected:  # otherwise it is back
                    candidate.mark_failed(fault.error)
                if fault.may_have_run and remote.waits_for_input:
                    raise _answer_lost_error(remote.argv[0], candidate.node, fault.error) from fault
                faults.append(fault.error)
            else:
                candidate.mark_reachable()
                return output
        return None

    async def close(self) -> None:
        """End all connections."""
        candidates, self._candidates = self._candidates, []
        probes = [candidate.probe for candidate in candidates if candidate.probe is not None]
        for probe in probes:
            probe.cancel()
        await asyncio.gather(*probes, return_exceptions=True)
        await asyncio.gather(*(candidate.node.close() for candidate in candidates))
        if self._folder is not None:
            await asyncio.to_thread(self._folder.close)
            self._folder = None

    async def _sorted_candidates(self) -> list[_Candidate]:
        """The login nodes in the order to try: those without a fault first. Those whose pause is over are retried in parallel."""
        if not self._candidates:
            await self._discover()
        healthy = [candidate for candidate in self._candidates if candidate.fault is None]
        faulty = [candidate for candidate in self._candidates if candidate.fault is not None]
        if healthy:
            for candidate in faulty:
                if time.monotonic() >= candidate.retry_at:
                    self._start_probe(candidate)
        return [*healthy, *sorted(faulty, key=lambda candidate: candidate.retry_at)]

    async def _discover(self) -> None:
        """Discover the login nodes if none is configured; connects to none yet."""
        async with self._finding:
            if self._candidates:
                return
            addresses = self._addresses
            if self._discovery is not None:
                login_nodes = await self._discovery.get()
                self._note, addresses = login_nodes.note, self._ordered_addresses(login_nodes.hosts)
            self._candidates = [_Candidate(self._node(address)) for address in addresses]

    async def _discover_others(self) -> bool:
        """Look for login nodes other than those that did not answer, and switch to them; returns whether there are any."""
        if self._discovery is None:
            return False
        async with self._finding:
            login_nodes = await self._discovery.get(refresh=True)
            known_candidates = {candidate.node.address: candidate for candidate in self._candidates}
            addresses = self._ordered_addresses(login_nodes.hosts)
            if set(addresses) <= known_candidates.keys():
                return False
            self._note = login_nodes.note
            self._candidates = [
                known_candidates[address]
                if address in known_candidates
                else _Candidate(self._node(address))
                for address in addresses
            ]
            removed = [
                candidate
                for address, candidate in known_candidates.items()
                if address not in addresses
            ]
            await asyncio.gather(*(candidate.node.close() for candidate in removed))
            return True

    def _ordered_addresses(self, hosts: Sequence[str]) -> list[LoginAddress]:
        """The addresses in the order to try."""
        unique_hosts = list(dict.fromkeys(hosts))
        ordered_hosts = (
            unique_hosts if self._user_key is None else rotate_hosts(unique_hosts, self._user_key)
        )
        return [LoginAddress.parse(text, self._user) for text in ordered_hosts]

    def _node(self, address: LoginAddress) -> LoginNode:
        folder = self._folder = self._folder or SocketFolder()
        return LoginNode(address, folder.path, self._config, self._timeouts)

    async def _first_reachable(
        self, queue: list[_Candidate], faults: list[HyperpodError]
    ) -> _Candidate | None:
        """The first candidate that is connected or accepts a connection; None when none does.

        The next candidate is tried when one fails or is slow. Failed ones are removed, and their
        errors are added to `faults`.
        """
        probed: list[_Candidate] = []
        while queue and all(
            candidate in self._candidates for candidate in queue
        ):  # otherwise the transport was closed
            for candidate in queue:
                if candidate.node.connected:
                    return candidate
            for candidate in probed:
                if candidate.probe is None and candidate in queue:
                    queue.remove(candidate)
                    faults.append(candidate.fault or candidate.node.timeout_error())
            unprobed = [candidate for candidate in queue if candidate not in probed]
            if unprobed:
                self._start_probe(unprobed[0])
                probed.append(unprobed[0])
            next_after = self._timeouts.next_node if len(unprobed) > 1 else None
            await self._wait_for_probe(queue, probed, next_after)
        return None

    async def _wait_for_probe(
        self, queue: list[_Candidate], probed: list[_Candidate], wait_s: float | None
    ) -> None:
        """Wait until one of them has answered; those that exceed this time are set aside."""
        probes = [candidate.probe for candidate in queue if candidate.probe is not None]
        if not probes:
            return
        finished, _ = await asyncio.wait(
            probes, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED
        )
        for probe in finished:
            if not probe.cancelled():
                probe.result()  # a bug of ours is not the login node's fault
        for candidate in probed:
            if not finished and candidate.probe is not None:
                candidate.mark_failed(candidate.node.timeout_error())

    def _start_probe(self, candidate: _Candidate) -> asyncio.Task[None]:
        if candidate.probe is None:
            candidate.probe = asyncio.create_task(self._probe(candidate))
        return candidate.probe

    async def _probe(self, candidate: _Candidate) -> None:
        """Check whether a login node answers."""
        try:
            await candidate.node.connect()
            candidate.mark_reachable()
        except UnansweredError as fault:
            candidate.mark_failed(fault.error)
        finally:
            candidate.probe = None


def _answer_lost_error(program: str, node: LoginNode, error: HyperpodError) -> UnreachableError:
    return UnreachableError(
        f"the result of {program} on {node.address.text} is unknown: {error.message}",
        code=ANSWER_LOST,
        hint="check whether it was done before you try again",
        detail={"command": program, "login_node": node.address.text, "cause": error.code},
    )


def _combined_error(faults: list[HyperpodError]) -> HyperpodError:
    """One error that combines the faults of all login nodes."""
    if not faults:
        return UnreachableError("the connection was closed", code="closed", hint="try again")
    if len(faults) == 1:
        return faults[0]
    ranks = {code: rank for rank, code in enumerate(_IMPORTANT_CODES)}
    first = min(faults, key=lambda fault: ranks.get(fault.code, len(ranks)))
    have_same_code = len({fault.code for fault in faults}) == 1
    kind = DeniedError if first.code in ranks else UnreachableError
    return kind(
        "no login node can be used: " + "; ".join(fault.message for fault in faults),
        code=first.code if have_same_code or first.code in ranks else "no_login_node",
        hint=first.hint,
        detail={"faults": [fault.to_dict() for fault in faults]},
    )


# --------------------------------------------------------------------------------------------------
# The transport that a cluster's configuration selects.


def build_transport(config: SlurmCluster) -> Ssh | LocalTransport:
    """Create the transport for the cluster's commands.

    Raises:
        InvalidInputError: No login node is given, or one is invalid.
    """
    if config.transport == "ssh":
        return Ssh(
            config.login_nodes,
            discovery=LoginNodeDiscovery(config.hyperpod) if config.hyperpod is not None else None,
            user_key=current_user_key(),
            user=config.user,
            config=config.ssh_config,
            commands=config.commands,
            slurm_conf=config.slurm_conf,
        )
    return LocalTransport(config.commands, config.slurm_conf)
