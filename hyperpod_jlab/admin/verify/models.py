"""Facts about AWS, and results of their checks."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from hyperpod_jlab.admin.fsx.service import list_domains
from hyperpod_jlab.aws.clusters import describe_cluster, list_clusters, list_instances
from hyperpod_jlab.aws.session import Aws, Keys
from hyperpod_jlab.core.errors import DeniedError, HyperpodError, StorageError
from hyperpod_jlab.core.hyperpod import HyperpodCluster, Instance

How = Literal["read", "write", "by hand"]
"""How a fact is checked: with read-only calls, in a temporary domain, or manually."""

FactVerdict = Literal["holds", "does not hold", "not checked"]


@dataclass(frozen=True)
class Fact:
    """An assumption of this project about AWS that could not be tested.

    Attributes:
        name: A stable identifier.
        statement: The assumption.
        code: The files that depend on it, from the repository's root.
        if_wrong: What happens if it is wrong.
        how: How it is checked.
        check: What the check does; if manual: what to do, and what to look at.
    """

    name: str
    statement: str
    code: tuple[str, ...]
    if_wrong: str
    how: How
    check: str


@dataclass(frozen=True)
class FactFinding:
    """The result of a check: a verdict, and why."""

    verdict: FactVerdict
    words: str


@dataclass(frozen=True)
class FactOutcome:
    """A fact with its result."""

    fact: Fact
    finding: FactFinding


def holds(message: str) -> FactFinding:
    """The assumption holds."""
    return FactFinding("holds", message)


def wrong(message: str) -> FactFinding:
    """The assumption is wrong."""
    return FactFinding("does not hold", message)


def unknown(message: str) -> FactFinding:
    """The check was inconclusive."""
    return FactFinding("not checked", message)


# --------------------------------------------------------------------------------------------------
# Context of the checks: AWS, the clusters of the account, and a session with fewer permissions.

_MAX_CLUSTERS = 10
"""Maximum number of clusters to check if none is named."""

_MAX_NODES = 3
"""Maximum number of nodes per cluster to check one by one."""


@dataclass
class CheckContext:
    """The context of checks.

    Attributes:
        aws: AWS, as the caller.
        domain: The given Studio domain, or this space's; None: the first of the region, if any.
        cluster: The given cluster; None: some of the region.
        as_role: ARN of a role that the caller may assume, for sessions with fewer permissions.
    """

    aws: Aws
    domain: str | None = None
    cluster: str | None = None
    as_role: str | None = None
    _clusters: list[HyperpodCluster] | HyperpodError | None = field(default=None, repr=False)
    _lookup: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)

    async def clusters(self) -> list[HyperpodCluster]:
        """The clusters, described; cached.

        Raises:
            HyperpodError: See `aws.errors`.
        """
        async with self._lookup:
            if self._clusters is None:
                try:
                    self._clusters = await self._find_clusters()
                except HyperpodError as error:
                    self._clusters = error
        if isinstance(self._clusters, HyperpodError):
            raise self._clusters
        return self._clusters

    async def _find_clusters(self) -> list[HyperpodCluster]:
        region = await self.aws.region()
        if self.cluster is not None:
            named_cluster = HyperpodCluster(self.cluster, self.cluster, region, "")
            return [await describe_cluster(self.aws, named_cluster)]
        clusters = [cluster async for page in list_clusters(self.aws) for cluster in page]
        return [await describe_cluster(self.aws, cluster) for cluster in clusters[:_MAX_CLUSTERS]]

    async def check_named(self) -> None:
        """Check that the named domain and cluster exist, and that AWS answers; missing permissions are reported by each fact.

        Raises:
            HyperpodError: One does not exist, or AWS does not answer.
        """
        with contextlib.suppress(DeniedError):
            if self.cluster is not None:
                await self.clusters()
        with contextlib.suppress(DeniedError):
            if self.domain is not None:
                await self.aws.call("sagemaker", "DescribeDomain", DomainId=self.domain)

    async def running_nodes(self, cluster: HyperpodCluster) -> list[Instance]:
        """Some running nodes of a cluster.

        Raises:
            HyperpodError: See `aws.errors`.
        """
        pages = list_instances(self.aws, cluster.name)
        nodes = [node async for page in pages for node in page if node.status == "Running"]
        return nodes[:_MAX_NODES]

    async def some_domain(self) -> str | None:
        """The domain, or the first of the region; None: there is none.

        Raises:
            HyperpodError: See `aws.errors`.
        """
        if self.domain is None:
            domains = await list_domains(self.aws)
            self.domain = domains[0].id if domains else None
        return self.domain

    async def limited_session(self, actions: Sequence[str], resource: str = "*") -> Aws | None:
        """AWS as a session of `as_role` with permission for only these actions on this resource; None: no role was given.

        A session has the permissions that both the role and its own policy grant (IAM's documentation of session policies).

        Raises:
            HyperpodError: See `aws.errors`.
        """
        if self.as_role is None:
            return None
        statement = {"Effect": "Allow", "Action": list(actions), "Resource": resource}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        parameters = {"RoleArn": self.as_role, "RoleSessionName": "hyperpod-jlab-verify"}
        response = await self.aws.call("sts", "AssumeRole", **parameters, Policy=policy)
        credentials = response["Credentials"]
        keys = Keys(
            credentials["AccessKeyId"], credentials["SecretAccessKey"], credentials["SessionToken"]
        )
        return Aws(await self.aws.region(), keys=keys)


# --------------------------------------------------------------------------------------------------
# The report on an account: Markdown for an issue, without identifying data.

_VERDICTS: tuple[FactVerdict, ...] = ("does not hold", "holds", "not checked")
"""The order of verdicts in the report."""

_MASKS = (
    (
        re.compile(r"(arn:aws[\w-]*:(?:iam|sts):[\w-]*:)\d{12}:([\w-]+)/[^\s'\"`,;()|]+"),
        r"\1<account>:\2/<name>",
    ),
    (re.compile(r"\b\d{12}\b"), "<account>"),
    (re.compile(r"\b(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{8,}\b"), "<key>"),
    (re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]+"), "<address>"),
)


def mask_identifiers(text: str) -> str:
    """Remove account ids, names of roles and users, keys and e-mail addresses from a text."""
    for pattern, mask in _MASKS:
        text = pattern.sub(mask, text)
    return text


def report(results: Sequence[FactOutcome], about: Sequence[str], notes: Sequence[str] = ()) -> str:
    """The report.

    Args:
        results: The facts with their results.
        about: The environment, such as versions and the region.
        notes: Further notes, such as leftovers.
    """
    counts = ", ".join(
        f"{sum(result.finding.verdict == verdict for result in results)} {verdict}"
        for verdict in _VERDICTS
    )
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    lines = [
        "### hpj admin verify-aws",
        "",
        f"{'; '.join((*about, now))}. {counts}.",
        "",
        "| fact | verdict | why |",
        "| --- | --- | --- |",
    ]
    for verdict in _VERDICTS:
        lines += [_row(result) for result in results if result.finding.verdict == verdict]
    for result in results:
        if result.finding.verdict == "does not hold":
            lines += ["", f"**{result.fact.name}**: {result.fact.statement} It does not hold here."]
            lines += [f"Consequence: {result.fact.if_wrong}"]
            lines += [f"Code: {', '.join(f'`{path}`' for path in result.fact.code)}"]
    if notes:
        lines += ["", *(f"- {note}" for note in notes)]
    return mask_identifiers("\n".join(lines)) + "\n"


def _row(outcome: FactOutcome) -> str:
    message = outcome.finding.words.replace("|", "\\|").replace("\n", " ")
    verdict = outcome.finding.verdict
    return f"| `{outcome.fact.name}` | {f'**{verdict}**' if verdict == 'does not hold' else verdict} | {message} |"


# --------------------------------------------------------------------------------------------------
# Journal of resources that this machine created to verify facts: one note per run, locked while the
# run is alive, so that leftovers of killed runs are known.
#
# The resources' tags tell other machines the same (`throw_away`). A note also tells whether the run
# is alive, and which domain it created: AWS
# keeps security groups of a deleted domain, which have its id in their names but no tag.


@dataclass(frozen=True)
class LeftoverNote:
    """Leftovers of a finished run: its name, and the domains that it created."""

    name: str
    domains: tuple[str, ...]


class Journal:
    """The notes of one account and region.

    Args:
        account: The account's id.
        region: The region.
    """

    def __init__(self, account: str, region: str) -> None:
        base = os.environ.get("XDG_STATE_HOME") or Path("~/.local/state").expanduser()
        self._folder = Path(base) / "hyperpod-jlab" / "verify" / f"{account}-{region}"
        self._locks: dict[str, int] = {}

    def begin(self, name: str) -> None:
        """Start the note of a run; it is locked while this process is alive.

        Raises:
            StorageError: It cannot be written: then nothing may be created.
        """
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._folder / name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError as error:
            raise StorageError(
                f"{self._folder} cannot be written: {error.strerror}",
                hint="set XDG_STATE_HOME to a folder on this machine's own disk",
            ) from error
        self._locks[name] = descriptor

    def add(self, name: str, domain: str) -> None:
        """Record a domain that the run created."""
        os.write(self._locks[name], f"{domain}\n".encode())
        os.fsync(self._locks[name])

    def end(self, name: str) -> None:
        """Record that all resources of the run are deleted."""
        (self._folder / name).unlink(missing_ok=True)
        self.release(name)

    def release(self, name: str) -> None:
        """Unlock the note of a finished run, whatever its leftovers."""
        descriptor = self._locks.pop(name, None)
        if descriptor is not None:
            os.close(descriptor)

    def list_leftovers(self) -> Iterator[LeftoverNote]:
        """The notes of finished runs."""
        for path in sorted(self._folder.glob("*")):
            if path.name not in self._locks and not _is_locked(path):
                domains = path.read_text(encoding="utf-8").split()
                yield LeftoverNote(path.name, tuple(domains))

    def is_running(self, name: str) -> bool:
        """Whether a run of this machine is in progress."""
        path = self._folder / name
        return name in self._locks or (path.exists() and _is_locked(path))


def _is_locked(path: Path) -> bool:
    """Whether the process that started a note still holds its lock."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False
