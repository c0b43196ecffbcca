"""Slurm's commands on login nodes, over OpenSSH, with fail-over.

Why OpenSSH's own client with a shared connection (ControlMaster), and not asyncssh: it is there wherever Slurm's users log in, and reads what they have set up,
``~/.ssh/config`` with its jump hosts and ProxyCommand (such as that of Session Manager), known_hosts, agents, certificates, FIDO keys, GSSAPI, of
which a library does only a part; it needs no further package, and it is the distribution that mends it. A command over a connection that
is there costs a small process here and a session there.

Each process has connections of its own (see `Connection`): nothing of ours stays behind on either side, and no two processes have to agree on one. What it costs is a
log-in for each ``hpj`` in a terminal; the server logs in once.

Host keys are never accepted by us: one that is not known, or is another than before, is an error.

The first login node of the list that answers is used; when one takes long, the next one is asked beside it. One that does not answer is left alone for a while, longer each time, then tried again beside the work, and used again
when it answers. A command that did surely not run is sent to the next node; one that may have run is sent again only when twice is as good as once.
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
    Patience,
    Remote,
    SocketFolder,
    repeatable,
)
from hyperpod_jlab.engines.slurm.login_node import LoginNode, UnansweredError
from hyperpod_jlab.engines.slurm.transport import (
    ANSWER_LOST,
    COMMAND_TIMEOUT,
    CommandOutput,
    Here,
    Transport,
)

# --------------------------------------------------------------------------------------------------
# Who takes which login node: each person another one, and always the same.


def shared_out(hosts: Sequence[str], person: str) -> list[str]:
    """The hosts in the order for a person: they begin at one that follows from the name, and go round, so that the people of one that is down are not all on the same next one."""
    if not hosts:
        return []
    first = int.from_bytes(hashlib.sha256(person.encode()).digest()[:8], "big") % len(hosts)
    return [*hosts[first:], *hosts[:first]]


def person_here() -> str:
    """A name for who this is. In Studio all have the same user name on their machines, so there it is the space's."""
    studio = find_studio()
    if studio is not None and studio.space is not None:
        return f"{studio.domain_id}/{studio.space}"
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user number without a name
        return str(os.getuid())


# --------------------------------------------------------------------------------------------------
# Login nodes that AWS names, for a cluster whose configuration names its HyperPod cluster and no login nodes.
#
# All processes of a user share what was found, for some minutes: a command line asks AWS once, not each time.

_FRESH = 900.0
"""Seconds for which what was found is not asked for again, unless none of them answers."""

_PAUSE = 60.0
"""Seconds between two questions while none of them answers."""


@dataclass(frozen=True)
class LoginNodes:
    """What AWS named: hosts, and what a user should know of them."""

    hosts: tuple[str, ...]
    note: str | None


class FoundNodes:
    """The login nodes of a HyperPod cluster.

    Args:
        cluster: Its name or ARN.
    """

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster

    async def get(self, *, anew: bool = False) -> LoginNodes:
        """The hosts.

        Args:
            anew: Whether none of those that were given last answers, so that they may have been replaced.

        Raises:
            HyperpodError: AWS does not say, and nothing is known from before.
        """
        path = await asyncio.to_thread(self._path)
        age, kept = await asyncio.to_thread(_read, path)
        if kept is not None and age < (_PAUSE if anew else _FRESH):
            return kept
        try:
            nodes = await find_login_nodes(Aws(region_of(self._cluster)), self._cluster)
        except HyperpodError as error:
            if kept is not None and error.code != NO_LOGIN_NODES:
                return kept
            raise _unknown(self._cluster, error) from error
        found = LoginNodes(tuple(one.host for one in nodes.instances if one.host), nodes.note)
        await asyncio.to_thread(_write, path, found)
        return found

    def _path(self) -> Path:
        """The file in which all who mean the same cluster of the same account keep what was found."""
        place = [self._cluster, home_region() or "", *map(os.environ.get, _ACCOUNT)]
        digest = hashlib.sha256("\0".join(part or "" for part in place).encode()).hexdigest()
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
        return base / "hyperpod-jlab" / "slurm" / f"login-{digest[:16]}.json"


_ACCOUNT = ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_ROLE_ARN", "AWS_ENDPOINT_URL")
"""Variables that say which account is asked."""


def _read(path: Path) -> tuple[float, LoginNodes | None]:
    """What was found, and how many seconds ago. What cannot be read was not found."""
    try:
        age = time.time() - path.stat().st_mtime
        data = json.loads(path.read_text(encoding="utf-8"))
        found = LoginNodes(tuple(map(str, data["hosts"])), data["note"] and str(data["note"]))
    except (OSError, ValueError, TypeError, KeyError):
        return 0.0, None
    return (age, found) if age >= 0 and found.hosts else (0.0, None)


def _write(path: Path, found: LoginNodes) -> None:
    """Keep it; where that fails AWS is asked more often."""
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(6)}")
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(json.dumps({"hosts": found.hosts, "note": found.note}))
        temporary.replace(path)


def _unknown(cluster: str, error: HyperpodError) -> HyperpodError:
    if error.code == NO_LOGIN_NODES:
        return error
    hint = 'set them in the configuration: login_nodes = ["HOST"]'
    return UnreachableError(
        f"AWS does not list the login nodes of {cluster}: {error.message}",
        code=error.code,
        hint=f"{error.hint}; or {hint}" if error.hint else hint,
        detail={**error.detail, "field": "login_nodes"},
    )


_FIRST_PAUSE = 15.0
_LONGEST_PAUSE = 600.0

_TELLING = ("host_key_changed", "host_key_revoked", "ssh_key_refused", "host_key_unknown")
"""Codes of what a user must know first, when login nodes have different faults."""


@dataclass(eq=False)
class _Standing:
    """A login node, and whether it is left alone."""

    node: LoginNode
    fault: HyperpodError | None = None
    pause: float = 0.0
    until: float = 0.0
    probe: asyncio.Task[None] | None = None

    def failed(self, error: HyperpodError) -> None:
        """Leave it alone; longer if it was tried again in vain, not if many commands say the same."""
        now = time.monotonic()
        if self.fault is None or now >= self.until:
            self.pause = min(self.pause * 2 or _FIRST_PAUSE, _LONGEST_PAUSE)
            self.until = now + self.pause
        self.fault = error

    def answered(self) -> None:
        """It is as good as new."""
        self.fault, self.pause, self.until = None, 0.0, 0.0


class Ssh:
    """Runs the commands on the first login node that answers.

    Args:
        login_nodes: ``[user@]host[:port]``.
        found: Where login nodes are found when none is named.
        person: Whom the login nodes are shared out to: the first one follows from the name. None: they are used in their order.
        user: Who logs in where an entry does not say.
        config: File for ``ssh -F``; None for ssh's own.
        commands: Folder of Slurm's commands there, or None for those on PATH.
        slurm_conf: Slurm's configuration file there, or None for its own.
        patience: How long a login node is waited for.

    Raises:
        InvalidInputError: There is no login node, or one of another form.
    """

    def __init__(
        self,
        login_nodes: Sequence[str],
        *,
        found: FoundNodes | None = None,
        person: str | None = None,
        user: str | None = None,
        config: str | None = None,
        commands: str | None = None,
        slurm_conf: str | None = None,
        patience: Patience | None = None,
    ) -> None:
        if not login_nodes and found is None:
            raise InvalidInputError(
                'transport = "ssh" needs login_nodes',
                code="no_login_nodes",
                hint='set login_nodes = ["login-1", "login-2"] in the configuration, or the HyperPod cluster: hyperpod = "NAME"',
                detail={"field": "login_nodes"},
            )
        self._user = user
        self._person = person
        self._addresses = self._in_order(login_nodes)
        self._found = None if login_nodes else found
        self._note: str | None = None
        self._finding = asyncio.Lock()
        self._config = config
        self._commands = commands
        self._slurm_conf = slurm_conf
        self._patience = patience or Patience()
        self._folder: SocketFolder | None = None
        self._standings: list[_Standing] = []

    @property
    def notes(self) -> tuple[str, ...]:
        """Which login nodes are not used, why, and which one is instead; nothing when the first one is. Before that, what is to be said of those that were found."""
        faults = [standing for standing in self._standings if standing.fault is not None]
        used = next((each.node for each in self._standings if each.fault is None), None)
        instead = f"; {used.address.text} is used" if used is not None and used.connected else ""
        told = (f"{each.fault.message}{instead}" for each in faults if each.fault is not None)
        return (*((self._note,) if self._note else ()), *told)

    async def run(
        self, argv: Sequence[str], *, stdin: bytes = b"", timeout: float = COMMAND_TIMEOUT
    ) -> CommandOutput:
        """Run one command to its end (see `Transport.run`).

        Raises:
            DeniedError: No login node lets us in, or a host key is not the known one.
            UnreachableError: No login node answers, the command is not there or takes too long; with code ``answer_lost``: it may have run.
            InvalidInputError: The words cannot be sent, or ssh does not understand its configuration.
        """
        again = repeatable(argv)
        remote = Remote(argv, self._commands, self._slurm_conf, waits=not again)
        if remote.waits and b"\0" in stdin:
            raise InvalidInputError(f"{argv[0]} does not accept a script with a NUL character")
        while True:
            faults: list[HyperpodError] = []
            output = await self._on_any(remote, stdin, timeout, faults)
            if output is not None:
                return output
            if not faults or not await self._found_others():
                raise _together(faults)

    async def _on_any(
        self, remote: Remote, stdin: bytes, timeout: float, faults: list[HyperpodError]
    ) -> CommandOutput | None:
        """Run it on the first login node that takes it; None when none does, with the reasons in `faults`."""
        order = await self._order()
        while (standing := await self._first(order, faults)) is not None:
            order.remove(standing)
            try:
                output = await standing.node.run(remote, stdin, timeout)
            except UnansweredError as fault:
                if not standing.node.connected:  # else it is back since
                    standing.failed(fault.error)
                if fault.may_have_run and remote.waits:
                    raise _lost(remote.argv[0], standing.node, fault.error) from fault
                faults.append(fault.error)
            else:
                standing.answered()
                return output
        return None

    async def close(self) -> None:
        """End all connections."""
        standings, self._standings = self._standings, []
        probes = [standing.probe for standing in standings if standing.probe is not None]
        for probe in probes:
            probe.cancel()
        await asyncio.gather(*probes, return_exceptions=True)
        await asyncio.gather(*(standing.node.close() for standing in standings))
        if self._folder is not None:
            await asyncio.to_thread(self._folder.close)
            self._folder = None

    async def _order(self) -> list[_Standing]:
        """The login nodes in the order to try: those without a fault first; those whose pause is over are tried beside that."""
        if not self._standings:
            await self._begin()
        good = [each for each in self._standings if each.fault is None]
        bad = [each for each in self._standings if each.fault is not None]
        if good:
            for each in bad:
                if time.monotonic() >= each.until:
                    self._start_probe(each)
        return [*good, *sorted(bad, key=lambda each: each.until)]

    async def _begin(self) -> None:
        """Find the login nodes, where none is named; nothing is connected yet."""
        async with self._finding:
            if self._standings:
                return
            addresses = self._addresses
            if self._found is not None:
                found = await self._found.get()
                self._note, addresses = found.note, self._in_order(found.hosts)
            self._standings = [_Standing(self._node(address)) for address in addresses]

    async def _found_others(self) -> bool:
        """Whether there are other login nodes now than those that did not answer; then those are used."""
        if self._found is None:
            return False
        async with self._finding:
            found = await self._found.get(anew=True)
            known = {each.node.address: each for each in self._standings}
            addresses = self._in_order(found.hosts)
            if set(addresses) <= known.keys():
                return False
            self._note = found.note
            self._standings = [
                known[address] if address in known else _Standing(self._node(address))
                for address in addresses
            ]
            gone = [each for address, each in known.items() if address not in addresses]
            await asyncio.gather(*(each.node.close() for each in gone))
            return True

    def _in_order(self, hosts: Sequence[str]) -> list[LoginAddress]:
        """The addresses in the order in which they are tried."""
        once = list(dict.fromkeys(hosts))
        mine = once if self._person is None else shared_out(once, self._person)
        return [LoginAddress.of(text, self._user) for text in mine]

    def _node(self, address: LoginAddress) -> LoginNode:
        folder = self._folder = self._folder or SocketFolder()
        return LoginNode(address, folder.path, self._config, self._patience)

    async def _first(self, order: list[_Standing], faults: list[HyperpodError]) -> _Standing | None:
        """The first of these that is connected, or lets us in; None when none does.

        They are asked one after the other, the next one when one says no or takes long. Those that say no are taken out, and why is added to `faults`.
        """
        asked: list[_Standing] = []
        while order and all(each in self._standings for each in order):  # else all was closed
            for each in order:
                if each.node.connected:
                    return each
            for each in asked:
                if each.probe is None and each in order:
                    order.remove(each)
                    faults.append(each.fault or each.node.hangs())
            further = [each for each in order if each not in asked]
            if further:
                self._start_probe(further[0])
                asked.append(further[0])
            patience = self._patience.soon if len(further) > 1 else None
            await self._wait_for(order, asked, patience)
        return None

    async def _wait_for(
        self, order: list[_Standing], asked: list[_Standing], patience: float | None
    ) -> None:
        """Wait until one of them has answered; those that take longer than this are set aside."""
        probes = [each.probe for each in order if each.probe is not None]
        if not probes:
            return
        done, _ = await asyncio.wait(probes, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
        for probe in done:
            if not probe.cancelled():
                probe.result()  # a fault of ours is not one of the login node
        for each in asked:
            if not done and each.probe is not None:
                each.failed(each.node.hangs())

    def _start_probe(self, standing: _Standing) -> asyncio.Task[None]:
        if standing.probe is None:
            standing.probe = asyncio.create_task(self._probe(standing))
        return standing.probe

    async def _probe(self, standing: _Standing) -> None:
        """See whether a login node answers."""
        try:
            await standing.node.connect()
            standing.answered()
        except UnansweredError as fault:
            standing.failed(fault.error)
        finally:
            standing.probe = None


def _lost(program: str, node: LoginNode, error: HyperpodError) -> UnreachableError:
    return UnreachableError(
        f"the result of {program} on {node.address.text} is unknown: {error.message}",
        code=ANSWER_LOST,
        hint="check whether it was done before you try again",
        detail={"command": program, "login_node": node.address.text, "cause": error.code},
    )


def _together(faults: list[HyperpodError]) -> HyperpodError:
    """One error for the faults of all login nodes."""
    if not faults:
        return UnreachableError("the connection was closed", code="closed", hint="try again")
    if len(faults) == 1:
        return faults[0]
    ranks = {code: rank for rank, code in enumerate(_TELLING)}
    first = min(faults, key=lambda fault: ranks.get(fault.code, len(ranks)))
    same = len({fault.code for fault in faults}) == 1
    kind = DeniedError if first.code in ranks else UnreachableError
    return kind(
        "no login node can be used: " + "; ".join(fault.message for fault in faults),
        code=first.code if same or first.code in ranks else "no_login_node",
        hint=first.hint,
        detail={"faults": [fault.to_dict() for fault in faults]},
    )


# --------------------------------------------------------------------------------------------------
# The transport that a cluster's configuration asks for.


def transport_of(config: SlurmCluster) -> Transport:
    """The way to the cluster's commands.

    Raises:
        InvalidInputError: There is no login node, or one of another form.
    """
    if config.transport == "ssh":
        return Ssh(
            config.login_nodes,
            found=FoundNodes(config.hyperpod) if config.hyperpod is not None else None,
            person=person_here(),
            user=config.user,
            config=config.ssh_config,
            commands=config.commands,
            slurm_conf=config.slurm_conf,
        )
    return Here(config.commands, config.slurm_conf)
