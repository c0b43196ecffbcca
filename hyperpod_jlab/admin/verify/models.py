"""What a fact about AWS is, and what its check says."""

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
"""How a fact is checked: with calls that change nothing, in a temporary domain, or by a person."""

FactVerdict = Literal["holds", "does not hold", "not checked"]


@dataclass(frozen=True)
class Fact:
    """Something that this project believes of AWS and could not try.

    Attributes:
        name: A stable word for it.
        statement: What is believed.
        code: The files that depend on it, from the repository's root.
        if_wrong: What happens if it is wrong.
        how: How it is checked.
        check: What the check does; by hand: what to do, and what to look at.
    """

    name: str
    statement: str
    code: tuple[str, ...]
    if_wrong: str
    how: How
    check: str


@dataclass(frozen=True)
class FactFinding:
    """What a check found: a verdict, and why."""

    verdict: FactVerdict
    words: str


@dataclass(frozen=True)
class FactOutcome:
    """What became of a fact."""

    fact: Fact
    finding: FactFinding


def holds(message: str) -> FactFinding:
    """It is as believed."""
    return FactFinding("holds", message)


def wrong(message: str) -> FactFinding:
    """It is not as believed."""
    return FactFinding("does not hold", message)


def unknown(message: str) -> FactFinding:
    """Nothing was learned."""
    return FactFinding("not checked", message)


# --------------------------------------------------------------------------------------------------
# What checks of facts look at: AWS, the clusters of the account, and a session with fewer rights.

_MAX_CLUSTERS = 10
"""Clusters that are looked at where none is named."""

_MAX_NODES = 3
"""Nodes of each cluster that are looked at one by one."""


@dataclass
class CheckContext:
    """What is looked at.

    Attributes:
        aws: AWS, as the caller.
        domain: The domain of Studio that was named, or this space's; None: the first of the region, if there is one.
        cluster: The cluster that was named; None: some of the region.
        as_role: ARN of a role that the caller may assume, for what needs a session with fewer rights.
    """

    aws: Aws
    domain: str | None = None
    cluster: str | None = None
    as_role: str | None = None
    _clusters: list[HyperpodCluster] | HyperpodError | None = field(default=None, repr=False)
    _lookup: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)

    async def clusters(self) -> list[HyperpodCluster]:
        """The clusters, described; they are looked up once.

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
        """See that the domain and the cluster that were named are there, and that AWS can be asked at all; a right that is missing is each fact's own matter.

        Raises:
            HyperpodError: One of them is not there, or AWS does not answer.
        """
        with contextlib.suppress(DeniedError):
            if self.cluster is not None:
                await self.clusters()
        with contextlib.suppress(DeniedError):
            if self.domain is not None:
                await self.aws.call("sagemaker", "DescribeDomain", DomainId=self.domain)

    async def running_nodes(self, cluster: HyperpodCluster) -> list[Instance]:
        """Some nodes of a cluster that run.

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
        """AWS as a session of `as_role` that has the right to these actions on this resource and to nothing else; None: no role was named.

        A session has what both the role and its own policy allow (IAM's documentation of session policies).

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
# The report on an account: Markdown for an issue, without what says whose account it is.

_VERDICTS: tuple[FactVerdict, ...] = ("does not hold", "holds", "not checked")
"""In the order in which they are told."""

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
    """A text without account ids, names of roles and users, keys and addresses of people."""
    for pattern, mask in _MASKS:
        text = pattern.sub(mask, text)
    return text


def report(results: Sequence[FactOutcome], about: Sequence[str], notes: Sequence[str] = ()) -> str:
    """The report.

    Args:
        results: What became of each fact.
        about: What was run and where, such as versions and the region.
        notes: What else is to be said, such as what was left behind.
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
# What this machine has made to verify facts: a note for each run, locked while the run lives, so that what is left of one that was killed is known.
#
# The tags on what was made say the same to other machines (`throw_away`). A note says besides whether the run still lives, and which domain it made: AWS
# leaves security groups when a domain is deleted, which bear its id and no tag.


@dataclass(frozen=True)
class LeftoverNote:
    """What a run that is over has left: its name, and the domains that it made."""

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
        """Begin the note of a run of ours; it is locked as long as this process lives.

        Raises:
            StorageError: It cannot be written: nothing may be made then.
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
        """Note a domain that the run has made."""
        os.write(self._locks[name], f"{domain}\n".encode())
        os.fsync(self._locks[name])

    def end(self, name: str) -> None:
        """All that the run has made is gone."""
        (self._folder / name).unlink(missing_ok=True)
        self.release(name)

    def release(self, name: str) -> None:
        """The run is over, whatever it has left."""
        descriptor = self._locks.pop(name, None)
        if descriptor is not None:
            os.close(descriptor)

    def list_leftovers(self) -> Iterator[LeftoverNote]:
        """The notes of runs that are over."""
        for path in sorted(self._folder.glob("*")):
            if path.name not in self._locks and not _is_locked(path):
                domains = path.read_text(encoding="utf-8").split()
                yield LeftoverNote(path.name, tuple(domains))

    def is_running(self, name: str) -> bool:
        """Whether a run of this machine is under way."""
        path = self._folder / name
        return name in self._locks or (path.exists() and _is_locked(path))


def _is_locked(path: Path) -> bool:
    """Whether the process that began a note still has it locked."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False
