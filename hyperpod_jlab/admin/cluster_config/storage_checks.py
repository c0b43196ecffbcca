"""File systems and life cycle scripts, as far as AWS is asked: pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from hyperpod_jlab.admin.cluster_config.config import ClusterConfig, Group, Lustre, Provisioning
from hyperpod_jlab.admin.cluster_config.group_checks import PROVISIONING
from hyperpod_jlab.admin.cluster_config.seen import FileSystemSeen, Seen
from hyperpod_jlab.admin.cluster_config.verdict import Verdict, doubtful, of_error, wrong
from hyperpod_jlab.core.errors import HyperpodError, nearest
from hyperpod_jlab.core.network import SecurityGroup, lustre_passage

_ID = re.compile(r"(fs-[0-9a-f]{8,})\.fsx\..+")


def file_system_of(dns_name: str | None) -> str | None:
    """The id of the file system that a DNS name is of; None where it names a cache, or nothing."""
    found = _ID.fullmatch(dns_name or "")
    return found[1] if found else None


def mounts(
    config: ClusterConfig, second: Provisioning | None
) -> list[tuple[Lustre, tuple[Group, ...]]]:
    """What is mounted, and by which groups: what the second file names, by all."""
    found: list[tuple[Lustre, tuple[Group, ...]]] = [
        (one, (group,)) for group in config.groups for one in group.lustre
    ]
    if second is not None and second.dns_name is not None:
        at = f"{PROVISIONING}: fsx_dns_name"
        found.append((Lustre(at, second.dns_name, second.mount_name), config.groups))
    return found


def storage_checks(
    config: ClusterConfig, second: Provisioning | None, seen: Seen, region: str
) -> Iterator[Verdict]:
    """All of them.

    Args:
        config: The first file.
        second: The second one; None: there is none.
        seen: What AWS tells.
        region: The region, for commands.
    """
    for mount, groups in mounts(config, second):
        name = file_system_of(mount.dns_name)
        if name is None:
            continue
        found = seen.file_systems.get(name)
        if isinstance(found, HyperpodError):
            yield of_error("storage", found, mount.path)
        elif found is not None:
            yield from _names(mount, found)
            yield from _place(config, mount, groups, found, seen)
            yield from _ports(config, mount, groups, found, seen, region)
    yield from _scripts(config, second, seen)


def _names(mount: Lustre, found: FileSystemSeen) -> Iterator[Verdict]:
    if found.kind != "LUSTRE":
        yield wrong(
            "storage",
            f"{found.name} is a file system of kind {found.kind}, not of Lustre",
            mount.path,
        )
    if found.state != "AVAILABLE":
        yield wrong(
            "storage", f"{found.name} is {found.state}", mount.path, "wait until it is AVAILABLE"
        )
    if found.dns_name and mount.dns_name != found.dns_name:
        yield wrong(
            "storage",
            f"the DNS name of {found.name} is {found.dns_name}, not {mount.dns_name}",
            mount.path,
        )
    if mount.mount_name and found.mount_name and mount.mount_name != found.mount_name:
        yield wrong(
            "storage",
            f"the mount name of {found.name} is {found.mount_name}, not {mount.mount_name}",
            mount.path,
        )


def _place(
    config: ClusterConfig,
    mount: Lustre,
    groups: Sequence[Group],
    found: FileSystemSeen,
    seen: Seen,
) -> Iterator[Verdict]:
    if isinstance(seen.subnets, HyperpodError):
        yield of_error("storage", seen.subnets, mount.path)
        return
    for names in dict.fromkeys(config.subnets_of(group) for group in groups):
        subnets = [seen.subnets[one] for one in names if one in seen.subnets]
        vpcs = {one.vpc for one in subnets}
        if vpcs and found.vpc not in vpcs:
            words = (
                f"{found.name} is in {found.vpc}, and instances come into {', '.join(sorted(vpcs))}"
            )
            yield wrong("storage", words, mount.path)
        elif subnets and not {one.name for one in subnets} & set(found.subnets):
            theirs = ", ".join(one.name for one in subnets)
            yield doubtful(
                "storage",
                f"{found.name} is in {', '.join(found.subnets)}, and instances come into {theirs}",
                mount.path,
                "between zones traffic costs more and is slower",
            )


def _ports(
    config: ClusterConfig,
    mount: Lustre,
    groups: Sequence[Group],
    found: FileSystemSeen,
    seen: Seen,
    region: str,
) -> Iterator[Verdict]:
    """Whether Lustre's ports (988, 1018-1023) get through between the instances and the servers."""
    interfaces = seen.interfaces.get(found.name)
    if isinstance(interfaces, HyperpodError):
        yield of_error("storage", interfaces, mount.path)
        return
    if isinstance(seen.groups, HyperpodError):
        yield of_error("storage", seen.groups, mount.path)
        return
    if interfaces is None or not interfaces.groups:
        words = f"could not be checked: AWS tells no security groups of {found.name}"
        yield Verdict("storage", "unknown", words, None, mount.path)
        return
    for names in dict.fromkeys(config.security_groups_of(group) for group in groups):
        clients = [seen.groups[one] for one in names if one in seen.groups]
        # One that is not there is said by the network's checks.
        if clients and len(clients) == len(names):
            yield from _gaps(mount, clients, interfaces.groups, interfaces.addresses, region)


def _gaps(
    mount: Lustre,
    clients: Sequence[SecurityGroup],
    servers: Sequence[SecurityGroup],
    addresses: Sequence[str],
    region: str,
) -> Iterator[Verdict]:
    passage = lustre_passage(clients, servers, addresses)
    for gap in passage.gaps:
        say = doubtful if gap.answers else wrong
        yield say("storage", gap.words(), mount.path, gap.command(region))
    if passage.lists:
        yield Verdict(
            "storage",
            "unknown",
            f"whether Lustre gets through is up to prefix lists: {', '.join(passage.lists)}",
            None,
            mount.path,
        )


def _scripts(config: ClusterConfig, second: Provisioning | None, seen: Seen) -> Iterator[Verdict]:
    said = set[tuple[str | None, str | None]]()
    for group in config.groups:
        if group.script_folder is None or (group.script_folder, group.script) in said:
            continue
        said.add((group.script_folder, group.script))
        found = seen.scripts.get(group.script_folder)
        at = f"{group.path}.LifeCycleConfig"
        if isinstance(found, HyperpodError):
            yield of_error("scripts", found, at)
        elif found is not None:
            yield from _in_folder(group, found, at)
            yield from _second_in_folder(config, second, group, found, at)


def _in_folder(group: Group, found: frozenset[str], at: str) -> Iterator[Verdict]:
    if not found:
        yield wrong(
            "scripts",
            f"nothing lies at {group.script_folder}",
            f"{at}.SourceS3Uri",
            f"aws s3 cp --recursive SCRIPTS {group.script_folder}",
        )
    elif group.script is not None and group.script not in found:
        near = nearest(group.script, found)
        yield wrong(
            "scripts",
            f"there is no {group.script} at {group.script_folder}",
            f"{at}.OnCreate",
            f"did you mean {near}?" if near else None,
        )


def _second_in_folder(
    config: ClusterConfig, second: Provisioning | None, group: Group, found: frozenset[str], at: str
) -> Iterator[Verdict]:
    """AWS' scripts read the second file from the same folder."""
    there = PROVISIONING in found
    if second is not None and found and not there:
        yield doubtful(
            "scripts",
            f"{PROVISIONING} does not lie at {group.script_folder}",
            at,
            f"aws s3 cp {PROVISIONING} {group.script_folder}",
        )
    if config.orchestrator == "slurm" and group.slurm_role and there:
        yield wrong(
            "scripts",
            f"{PROVISIONING} lies at {group.script_folder}, and the groups have a SlurmConfig",
            at,
            "take it out of S3: both say what the groups are",
        )
