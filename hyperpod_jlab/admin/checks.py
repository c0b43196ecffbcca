"""What keeps a domain and a file system apart as a whole, before any step: pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from hyperpod_jlab.admin.entries import path_of
from hyperpod_jlab.admin.modes import is_of_all
from hyperpod_jlab.admin.plan import Wanted
from hyperpod_jlab.admin.there import COMMON_UID, Holder, There
from hyperpod_jlab.model.finding import Finding


def findings_of(there: There, wanted: Wanted) -> Iterator[Finding]:
    """What is to be said of the whole.

    Args:
        there: What is there.
        wanted: What is to be there.
    """
    if wanted.mode is not None:
        yield from _file_system(there)
        yield from _network(there)
    yield from _domain(there)
    yield from _names(there, wanted)


def _file_system(there: There) -> Iterator[Finding]:
    found = there.file_system
    if found.kind != "LUSTRE":
        yield Finding(
            level="error",
            code="not_lustre",
            message=f"{found.name} is a file system of kind {found.kind}",
            hint="name one of FSx for Lustre: --file-system fs-...",
        )
    if found.state != "AVAILABLE":
        yield Finding(
            level="error",
            code="file_system_not_available",
            message=f"{found.name} is {found.state}",
            hint="wait until it is AVAILABLE; FSx' console says what it does",
        )


def _network(there: There) -> Iterator[Finding]:
    found = there.file_system
    if found.vpc != there.vpc:
        yield Finding(
            level="error",
            code="other_vpc",
            message=f"the domain is in {there.vpc} and {found.name} in {found.vpc}",
            hint="Studio mounts file systems of its own VPC only: make a domain in the file system's VPC",
        )
        return
    if not set(found.subnets) & set(there.subnets):
        yield Finding(
            level="error",
            code="other_subnet",
            message=f"{found.name} is in {', '.join(found.subnets)}, which is no subnet of the domain",
            hint=f"add it: aws sagemaker update-domain --domain-id {there.domain} "
            f"--subnet-ids {' '.join([*there.subnets, *found.subnets])}",
        )
    if there.group is None:
        yield Finding(
            level="error",
            code="no_security_group",
            message=f"the security group security-group-for-inbound-nfs-{there.domain} is not there",
            hint="SageMaker makes it with the domain; without it Studio does not reach file systems",
        )


def _domain(there: There) -> Iterator[Finding]:
    for holder in there.holders:
        if holder.kind == "domain" and holder.status in {"Deleting", "Delete_Failed", "Failed"}:
            yield Finding(
                level="error",
                code="domain_not_in_service",
                message=f"the domain {there.domain} is {holder.status}",
                hint="its page in SageMaker's console says why",
            )


def _names(there: There, wanted: Wanted) -> Iterator[Finding]:
    if wanted.mode is None:
        return
    profiles = [holder for holder in there.holders if holder.kind == "profile"]
    for one in profiles:
        if is_of_all(one, wanted):
            yield _shared_name(there, one, wanted)
    if wanted.mode == "per-user":
        yield from _alike(profiles)


def _shared_name(there: There, profile: Holder, wanted: Wanted) -> Finding:
    """A profile of the shared folder's name. What is private to one is never given to all; but who makes a profile later is not to stop everybody's wiring."""
    mounted = [
        path_of(one.entries, there.file_system.name)
        for one in there.holders
        if one.kind == "domain" and one.mark == wanted.shared_path
    ]
    harmless = wanted.mode == "per-user" or wanted.shared_path in mounted
    return Finding(
        level="warning" if harmless else "error",
        code="shared_folder_of_a_profile",
        message=f"the folder of the user profile {profile.name} is the one that all share"
        + (", so it can't have it for itself" if harmless else ""),
        hint="choose another shared folder: --shared-path /...",
    )


def _alike(profiles: Sequence[Holder]) -> Iterator[Finding]:
    """Profiles that are easily taken for each other, by people or by the file system."""
    names, numbers = defaultdict(list), defaultdict(list)
    for one in profiles:
        names[one.name.casefold()].append(one.name)
        if one.uid is not None:
            numbers[one.uid].append(one.name)
    for same in names.values():
        if len(same) > 1:
            yield Finding(
                level="warning",
                code="names_alike",
                message=f"the user profiles {', '.join(sorted(same))} differ only in case; each has a folder of its own",
            )
    for number, same in numbers.items():
        if len(same) > 1 and number != COMMON_UID:
            yield Finding(
                level="warning",
                code="numbers_alike",
                message=f"the user profiles {', '.join(sorted(same))} have the same user number {number}: to the file system they are one user",
                hint="make all but one anew with a number of their own (CustomPosixUserConfig)",
            )
