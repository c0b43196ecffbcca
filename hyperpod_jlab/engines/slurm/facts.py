"""Cached facts about a cluster and this user on it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from hyperpod_jlab.core.cache import Cache
from hyperpod_jlab.core.errors import HyperpodError, UnreachableError
from hyperpod_jlab.core.finding import Finding
from hyperpod_jlab.engines.slurm.client import SlurmClient
from hyperpod_jlab.engines.slurm.jobs import parse_limit
from hyperpod_jlab.engines.slurm.queue import controller_query
from hyperpod_jlab.engines.slurm.rows import Gres, new_delimiter, parse_gres, parse_rows, row_format

# --------------------------------------------------------------------------------------------------
# Accounts and qualities of service that a user may use, from the accounting (sacctmgr).

NO_ACCOUNTING = "accounting_storage/none"


@dataclass(frozen=True)
class SlurmSettings:
    """The relevant values of `scontrol show config`.

    Attributes:
        cluster: The cluster's own name.
        accounting: Whether there is a database of accounts.
        enforced: Which accounting rules are enforced: associations, limits, qos, ...
        private: What users cannot see of each other (PrivateData): jobs, users, ...
        counted: What it counts besides CPUs, memory and nodes (AccountingStorageTRES): gres/gpu, ...
        controller: The first controller's host, with its address if that is set, and port.
    """

    cluster: str
    accounting: bool
    enforced: frozenset[str]
    private: frozenset[str] = frozenset()
    counted: frozenset[str] = frozenset()
    controller: str = ""


def parse_settings(text: str) -> SlurmSettings:
    """Parse `scontrol show config`."""
    values: dict[str, str] = {}
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if equals:
            values.setdefault(name.strip(), value.strip())
    enforced = values.get("AccountingStorageEnforce", "")
    return SlurmSettings(
        cluster=values.get("ClusterName", ""),
        accounting=values.get("AccountingStorageType", NO_ACCOUNTING) not in {NO_ACCOUNTING, "(null)", ""},
        enforced=frozenset(flag for flag in enforced.split(",") if flag not in {"none", ""}),
        private=frozenset(values.get("PrivateData", "").split(",")),
        counted=frozenset(values.get("AccountingStorageTRES", "").split(",")),
        controller=":".join(values.get(name, "") for name in ("SlurmctldHost[0]", "SlurmctldPort")).strip(":"),
    )


@dataclass(frozen=True)
class Accounts:
    """The accounts that a user may charge, and their qualities of service.

    Attributes:
        user: The user's name on the cluster.
        qos: Names of the qualities of service by account.
    """

    user: str
    qos: Mapping[str, frozenset[str]]

    @property
    def names(self) -> list[str]:
        return sorted(self.qos)

    def qos_of(self, account: str | None) -> list[str]:
        """The qualities of service of an account, or of all accounts."""
        qos_sets = self.qos.values() if account is None else [self.qos.get(account, frozenset())]
        return sorted(frozenset[str]().union(*qos_sets))


def accounts_command(user: str, cluster: str) -> list[str]:
    """The command that lists the associations of a user."""
    return [
        "sacctmgr", "--noheader", "--parsable2", "--readonly", "show", "associations",
        "where", f"users={user}", f"clusters={cluster}", "format=Account,QOS",
    ]  # fmt: skip


def parse_accounts(user: str, text: str) -> Accounts:
    """Parse the output of `accounts_command`."""
    qos: dict[str, frozenset[str]] = {}
    for row in text.splitlines():
        account, bar, names = row.partition("|")
        if bar and account:
            qos_names = frozenset(name for name in names.split(",") if name)
            qos[account] = qos.get(account, frozenset()) | qos_names
    return Accounts(user, qos)


# --------------------------------------------------------------------------------------------------
# A cluster's capacity: its queues, their limits and node types, in one listing.
#
# One row of sinfo covers all identical nodes, so even a large cluster has few rows.

FIELDS: tuple[tuple[str, str], ...] = (
    ("starred", "%P"),
    ("name", "%R"),
    ("available", "%a"),
    ("default_time", "%L"),
    ("max_time", "%l"),
    ("job_size", "%s"),
    ("nodes", "%D"),
    ("cpus", "%c"),
    ("memory", "%m"),
    ("gres", "%G"),
    ("features", "%f"),
)
"""Our name and sinfo's letter for each field (man sinfo); free text fields come last."""


@dataclass(frozen=True)
class NodeGroup:
    """Identical nodes of a queue; memory is in bytes."""

    nodes: int
    cpus: int
    memory: int
    gres: tuple[Gres, ...]
    features: frozenset[str]

    def count(self, kind: str, model: str | None = None) -> int:
        """How many of a generic resource a node has, of one type or of all types."""
        return sum(entry.count for entry in self.gres if entry.name == kind and model in {None, entry.type})


@dataclass(frozen=True)
class QueueLimits:
    """A queue. Times are in seconds, None without a limit.

    Attributes:
        name: The queue's name.
        default: Whether jobs without a queue go here.
        available: Slurm's state: up, down, drain or inact.
        default_time: Time limit of a job that sets none.
        max_time: Maximum time limit.
        max_nodes: Maximum number of nodes of one job.
        groups: Its nodes.
    """

    name: str
    default: bool
    available: str
    default_time: float | None
    max_time: float | None
    max_nodes: int | None
    groups: tuple[NodeGroup, ...]

    @property
    def nodes(self) -> int:
        return sum(group.nodes for group in self.groups)


Limits = Mapping[str, QueueLimits]
"""The queues by name, in the cluster's order."""


def limits_command() -> tuple[list[str], str]:
    """The command that lists the limits, and its row delimiter. With ``--exact``, no row says "16+" for nodes that differ."""
    delimiter = new_delimiter()
    letters = [letter for _, letter in FIELDS]
    return ["sinfo", "--noheader", "--all", "--exact", f"--format={row_format(delimiter, letters)}"], delimiter


def parse_limits(text: str, delimiter: str) -> dict[str, QueueLimits]:
    """Parse the output of `limits_command`."""
    limits: dict[str, QueueLimits] = {}
    for row in parse_rows(text, delimiter, [name for name, _ in FIELDS]):
        group = NodeGroup(
            nodes=_parse_int(row["nodes"]),
            cpus=_parse_int(row["cpus"]),
            memory=_parse_int(row["memory"]) * 1024**2,
            gres=parse_gres(row["gres"]),
            features=frozenset(_split_list(row["features"])),
        )
        previous = limits.get(row["name"])
        groups = (group,) if group.nodes else ()  # a queue may have no nodes yet
        limits[row["name"]] = QueueLimits(
            name=row["name"],
            default=row["starred"] == row["name"] + "*",
            available=row["available"],
            default_time=parse_limit(row["default_time"]),
            max_time=parse_limit(row["max_time"]),
            max_nodes=_max_nodes(row["job_size"]),
            groups=(*(previous.groups if previous else ()), *groups),
        )
    return limits


def _split_list(text: str) -> list[str]:
    return [] if text in {"(null)", ""} else text.split(",")


def _parse_int(text: str) -> int:
    match = re.match(r"[0-9]+", text)
    return int(match[0]) if match else 0


def _max_nodes(job_size: str) -> int | None:
    """The maximum number of nodes of a job, from ``1-infinite``, ``2-4`` or ``1``."""
    last = job_size.rpartition("-")[2]
    return int(last) if last.isdecimal() else None


_FACTS_SCRIPT = """\
id -un 2>/dev/null || echo
id -u
for path; do
  word=
  if [ -e "$path" ]; then word=e; fi
  if [ -r "$path" ]; then word=${word}r; fi
  if [ -w "$path" ]; then word=${word}w; fi
  if [ -x "$path" ]; then word=${word}x; fi
  echo "=$word"
done
"""

_UNAVAILABLE_STATES = ("down", "drain", "fail", "future", "maint", "power", "reboot", "unk")
"""Prefixes of the states of nodes that accept no jobs now (man sinfo, NODE STATE CODES)."""

_MINUTE = 60.0

_DRY_RUN_TTL_S = 15.0
"""Seconds for which a dry run's verdict is cached."""


@dataclass(frozen=True)
class HostFacts:
    """Facts about the machine that runs Slurm's commands, seen as the user who submits the jobs.

    Attributes:
        user: The user name, or empty.
        uid: The uid, or None.
        paths: For each queried path, a set of letters: e exists, r readable, w writable, x
            executable or searchable.
    """

    user: str
    uid: int | None
    paths: tuple[str, ...]


class ClusterFacts:
    """The cluster's limits and settings, and the names that its user may use. All methods may raise `UnreachableError`."""

    def __init__(self, client: SlurmClient) -> None:
        self._client = client
        self._limits = controller_query(self._load_limits)
        self._settings = controller_query(self._load_settings)
        self._accounts = controller_query(self._load_accounts)
        self._containers = controller_query(self._load_containers)
        self._user = controller_query(self.probe)
        self._uid: int | None = None
        self._findings: Cache[str, list[Finding]] = Cache(lambda findings: 0.0 if findings else _MINUTE)
        self._dry_runs: Cache[tuple[bytes, tuple[str, ...]], HyperpodError | None] = Cache(_DRY_RUN_TTL_S, limit=1)

    async def limits(self) -> Limits:
        """The queues with their limits."""
        return await self._limits.get(_MINUTE)

    async def settings(self) -> SlurmSettings:
        """The controller's configuration."""
        return await self._settings.get(60 * _MINUTE)

    async def accounts(self) -> Accounts | None:
        """The accounts that this user may charge; None without accounting, or if the user has no name on the cluster."""
        return await self._accounts.get(5 * _MINUTE)

    async def containers(self) -> bool:
        """Whether srun supports containers: the Pyxis plug-in adds its options to the help."""
        return await self._containers.get(10 * _MINUTE)

    async def choices(self) -> dict[str, list[str]]:
        """The queues, accounts and qos that this user may use; unknown fields are left out."""
        choices = {"queue": list(await self.limits())}
        accounts = await self.accounts()
        if accounts is not None and accounts.names:
            choices |= {"account": accounts.names, "qos": accounts.qos_of(None)}
        return choices

    async def cached_findings(self, topic: str, check: Callable[[], Awaitable[list[Finding]]]) -> list[Finding]:
        """Cache an empty list of findings for a minute. A non-empty one is never cached, so that a fix shows at once."""
        return await self._findings.get(topic, check)

    async def has_missing_nodes(self) -> bool:
        """Whether nodes are missing that may come back: down, drained, or not seen since the controller's start."""
        output = await self._client.query(["sinfo", "--noheader", "--format=%T"])
        return any(state.endswith("*") or state.startswith(_UNAVAILABLE_STATES) for state in output.lower().split())

    async def uid(self) -> int | None:
        """The user's uid on the machine that runs the commands; None when unknown. Makes no scheduler call."""
        return self._uid if self._uid is not None else (await self.probe()).uid

    async def probe(self, *paths: str) -> HostFacts:
        """Check these paths on the machine that runs the commands. Makes no scheduler call."""
        output = await self._client.transport.run(["/bin/sh", "-c", _FACTS_SCRIPT, "sh", *paths])
        user, _, remainder = output.out.partition("\n")
        uid, _, remainder = remainder.partition("\n")
        mounts = tuple(line[1:] for line in remainder.split("\n") if line.startswith("="))
        self._uid = int(uid) if uid.isdecimal() else None
        return HostFacts(user.strip(), self._uid, mounts)

    async def dry_run(self, script: bytes, options: tuple[str, ...] = ()) -> HyperpodError | None:
        """The controller's verdict on a script with sbatch options, without submitting it; None when it would be accepted (man sbatch, --test-only).

        Cached briefly, because a submit usually follows the same check.

        Raises:
            UnreachableError: The controller did not answer.
        """
        return await self._dry_runs.get((script, options), lambda: self._run_dry_run(script, options))

    async def _run_dry_run(self, script: bytes, options: tuple[str, ...]) -> HyperpodError | None:
        try:
            await self._client.query(["sbatch", "--test-only", *options], stdin=script)
        except UnreachableError:
            raise
        except HyperpodError as error:
            return error
        return None

    async def _load_limits(self) -> Limits:
        argv, delimiter = limits_command()
        text = await self._client.query(argv)
        return await asyncio.to_thread(parse_limits, text, delimiter)

    async def _load_settings(self) -> SlurmSettings:
        return parse_settings(await self._client.query(["scontrol", "show", "config"]))

    async def _load_accounts(self) -> Accounts | None:
        settings = await self.settings()
        if not settings.accounting:
            return None
        user = (await self._user.get(60 * _MINUTE)).user
        if not user:
            return None
        text = await self._client.query(accounts_command(user, settings.cluster))
        return parse_accounts(user, text)

    async def _load_containers(self) -> bool:
        output = await self._client.transport.run(["srun", "--help"])
        return "--container-image" in output.out
