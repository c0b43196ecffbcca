"""What an admin can choose from: domains of Studio, and file systems with the HyperPod clusters that mount them."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from hyperpod_jlab.aws.clusters import describe_cluster, list_clusters
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.model.errors import HyperpodError, NotFoundError
from hyperpod_jlab.model.hyperpod import HyperpodCluster

_AT_ONCE = 8
"""Clusters that are described at a time."""

_LUSTRE = "LUSTRE"


@dataclass(frozen=True)
class DomainChoice:
    """A domain of Studio: its id and its name."""

    id: str
    name: str


@dataclass(frozen=True)
class FileSystemChoice:
    """A file system of FSx for Lustre.

    Attributes:
        id: Its id.
        name: What its tag ``Name`` says; None: it has none.
        state: AWS' word for its state.
        clusters: The HyperPod clusters whose instance groups mount it, as far as AWS knows.
    """

    id: str
    name: str | None
    state: str
    clusters: tuple[str, ...]


@dataclass(frozen=True)
class Choices:
    """All of it, and why some of it is not known: a sentence each."""

    domains: tuple[DomainChoice, ...]
    file_systems: tuple[FileSystemChoice, ...]
    notes: tuple[str, ...]


async def list_domains(aws: Aws) -> tuple[DomainChoice, ...]:
    """The domains of the account in the region.

    Raises:
        HyperpodError: See `aws.errors`.
    """
    found = [
        DomainChoice(str(one["DomainId"]), str(one.get("DomainName") or ""))
        async for page in aws.pages("sagemaker", "ListDomains")
        for one in page.get("Domains") or ()
    ]
    return tuple(found)


async def find_choices(aws: Aws, domain: str | None = None) -> Choices:
    """What can be chosen. What AWS does not tell is left out, and noted.

    Args:
        aws: AWS in the domains' region.
        domain: A domain that is known already: it can be chosen even where AWS lists none.

    Raises:
        HyperpodError: There are no credentials, or nobody says which region.
    """
    await aws.region()
    notes: list[str] = []
    domains, file_systems, mounts = await asyncio.gather(
        _domains(aws, notes), _file_systems(aws, notes), _mounts(aws, notes)
    )
    if domain is not None and domain not in {one.id for one in domains}:
        domains = (DomainChoice(domain, ""), *domains)
    known = {one.id for one in file_systems}
    # One that FSx does not tell of, such as without the right to ask, is known from its cluster all the same.
    others = tuple(FileSystemChoice(name, None, "", ()) for name in mounts if name not in known)
    found = [
        FileSystemChoice(one.id, one.name, one.state, mounts.get(one.id, ()))
        for one in (*file_systems, *others)
    ]
    found.sort(key=lambda one: (not one.clusters, one.id))
    return Choices(domains, tuple(found), tuple(notes))


async def _domains(aws: Aws, notes: list[str]) -> tuple[DomainChoice, ...]:
    try:
        return await list_domains(aws)
    except HyperpodError as error:
        notes.append(_note("domains", error))
        return ()


async def _file_systems(aws: Aws, notes: list[str]) -> tuple[FileSystemChoice, ...]:
    found = []
    try:
        async for page in aws.pages("fsx", "DescribeFileSystems"):
            for one in page.get("FileSystems") or ():
                if one.get("FileSystemType") != _LUSTRE:
                    continue
                tags = {tag["Key"]: tag["Value"] for tag in one.get("Tags") or ()}
                state = str(one.get("Lifecycle") or "")
                found.append(FileSystemChoice(one["FileSystemId"], tags.get("Name"), state, ()))
    except HyperpodError as error:
        notes.append(_note("file systems", error))
    return tuple(found)


async def _mounts(aws: Aws, notes: list[str]) -> Mapping[str, tuple[str, ...]]:
    """Names of clusters by the file system that they mount."""
    clusters: list[HyperpodCluster] = []
    try:
        async for page in list_clusters(aws):
            clusters += page
    except HyperpodError as error:
        notes.append(_note("HyperPod clusters", error))
    room = asyncio.Semaphore(_AT_ONCE)
    problems: dict[str, str] = {}
    found: dict[str, set[str]] = defaultdict(set)

    async def look(cluster: HyperpodCluster) -> None:
        try:
            async with room:
                told = await describe_cluster(aws, cluster)
        except NotFoundError:
            return  # deleted since the list was made
        except HyperpodError as error:
            # Where one may not be described, often none may: that is said once.
            problems[error.code] = _note(f"the cluster {cluster.name}", error)
            return
        for group in told.groups or ():
            for storage in group.storage:
                found[storage.dns_name.partition(".")[0]].add(cluster.name)

    await asyncio.gather(*map(look, clusters))
    notes += problems.values()
    return {name: tuple(sorted(names)) for name, names in found.items()}


def _note(what: str, error: HyperpodError) -> str:
    hint = f" ({error.hint})" if error.hint else ""
    return f"{what}: {error.message}{hint}"
