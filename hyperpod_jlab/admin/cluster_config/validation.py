"""All checks of a configuration, none of which hides another one's findings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hyperpod_jlab.admin.cluster_config.capacity_checks import capacity_checks
from hyperpod_jlab.admin.cluster_config.config import (
    ClusterConfig,
    Provisioning,
    config_of,
    provisioning_of,
)
from hyperpod_jlab.admin.cluster_config.detail_checks import detail_checks
from hyperpod_jlab.admin.cluster_config.files import placeholders
from hyperpod_jlab.admin.cluster_config.group_checks import PROVISIONING, group_checks
from hyperpod_jlab.admin.cluster_config.network_checks import network_checks
from hyperpod_jlab.admin.cluster_config.reading import Reader
from hyperpod_jlab.admin.cluster_config.schema import problems_of_new
from hyperpod_jlab.admin.cluster_config.seen import Seen
from hyperpod_jlab.admin.cluster_config.storage_checks import mounts, storage_checks
from hyperpod_jlab.admin.cluster_config.verdict import CHECKS, Verdict, in_order, well, wrong
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.wire import Wire, shown

OFFLINE = frozenset({"files", "schema", "groups"})
"""Checks that need no AWS; of all others it does a part."""


@dataclass(frozen=True)
class Documents:
    """Both files as they were read.

    Attributes:
        cluster: The input of CreateCluster.
        provisioning: The second file; None: there is none.
        unread: Why the second file could not be read, though there is one.
    """

    cluster: Mapping[str, Any]
    provisioning: Mapping[str, Any] | None = None
    unread: str | None = None

    @property
    def config(self) -> ClusterConfig:
        """The first one's words."""
        return config_of(self.cluster)

    @property
    def second(self) -> Provisioning | None:
        """The second one's words."""
        return None if self.provisioning is None else provisioning_of(self.provisioning)


@dataclass(frozen=True)
class Report(Wire):
    """What all checks say, in order."""

    checks: tuple[Verdict, ...]

    def of(self, level: str) -> list[Verdict]:
        """The verdicts of a level."""
        return [one for one in self.checks if one.level == level]

    @property
    @shown
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.of("error")


def check(documents: Documents, seen: Seen | None, region: str | None) -> Report:
    """What all checks say: pure.

    Args:
        documents: The files.
        seen: What AWS tells; None: it was not asked.
        region: The region in which the cluster is to be; None: not known.

    Raises:
        UnsupportedError: boto3 is not installed, whose model is needed.
    """
    found = [*_offline(documents, region)]
    if seen is not None:
        config, second = documents.config, documents.second
        found += network_checks(config, seen)
        found += storage_checks(config, second, seen, region or "REGION")
        found += capacity_checks(config, seen)
    verdicts = [*dict.fromkeys(found), *_quiet(documents, found, asked=seen is not None)]
    return Report(tuple(in_order(verdicts)))


async def ask_and_check(aws: Aws, documents: Documents) -> Report:
    """The same, after AWS was asked.

    Raises:
        UnsupportedError: boto3 is not installed.
        InvalidInputError: Nobody says which region.
    """
    region = await aws.region()
    seen = await Reader(aws, documents.config, documents.second).read()
    return check(documents, seen, region)


def _offline(documents: Documents, region: str | None) -> Iterator[Verdict]:
    config, second = documents.config, documents.second
    for name, document in (
        ("", documents.cluster),
        (f"{PROVISIONING}: ", documents.provisioning or {}),
    ):
        for path, text in placeholders(dict(document)):
            yield wrong("files", f"'{text[:60]}' was to be filled in", f"{name}{path}")
    yield from problems_of_new(dict(documents.cluster))
    if documents.unread is not None:
        yield wrong("files", documents.unread)
        yield Verdict("groups", "unknown", "could not be checked without the second file")
    else:
        yield from group_checks(config, second)
    yield from detail_checks(config, second, region)


def _quiet(documents: Documents, found: Sequence[Verdict], *, asked: bool) -> Iterator[Verdict]:
    """What is to be said of checks that found nothing: that they are well, or that they were not done."""
    said = {one.check for one in found}
    config = documents.config
    for name, title in CHECKS.items():
        if name == "eks" and config.orchestrator != "eks":
            continue
        if not asked and name not in OFFLINE:
            yield Verdict(name, "unknown", f"{title}: not asked of AWS (--offline)")
        elif name not in said:
            nothing = _nothing(name, documents)
            yield (
                Verdict(name, "unknown", nothing) if nothing else well(name, _well(name, documents))
            )


def _nothing(name: str, documents: Documents) -> str | None:
    """Why there was nothing to look at that a cluster has to have; None: there was."""
    config = documents.config
    if name == "cluster" and not config.name:
        return "could not be checked: no name is given"
    if name in {"groups", "capacity", "role"} and not config.groups:
        return "could not be checked: there is no instance group"
    if name == "role" and not any(one.role for one in config.groups):
        return "could not be checked: no role is named"
    return None


def _well(name: str, documents: Documents) -> str:
    """What is said of a check that found nothing; where there was nothing to look at, that."""
    config = documents.config
    if name == "storage" and not mounts(config, documents.second):
        return "no file system is named"
    if name == "scripts" and not any(one.script_folder for one in config.groups):
        return "none are named"
    return _WELL[name]


_WELL = {
    "files": "both can be read, and nothing is left to be filled in",
    "schema": "AWS' model takes all of it",
    "groups": "each has its place",
    "scripts": "they lie where they are to be",
    "storage": "they are there and can be reached",
    "network": "subnets are private and large enough, and security groups let through what is needed",
    "capacity": "types are there, and quotas allow them",
    "role": "instances can take them",
    "cluster": "it is free",
    "eks": "it is there, and active",
}
