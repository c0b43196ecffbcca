"""What keeps a domain and a file system apart as a whole, before any step: pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from hyperpod_jlab.admin.plan import Wanted
from hyperpod_jlab.admin.there import There
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
    names = [holder.name for holder in there.holders if holder.kind == "profile"]
    for name in names:
        # In either mode: what is private to one, or will be, is never given to all.
        if f"/{name}" == wanted.shared_path:
            yield Finding(
                level="error",
                code="shared_folder_of_a_profile",
                message=f"the folder of the user profile {name} is the one that all share",
                hint="choose another shared folder: --shared-path /...",
            )
    if wanted.mode != "per-user":
        return
    alike = defaultdict(list)
    for name in names:
        alike[name.casefold()].append(name)
    for same in alike.values():
        if len(same) > 1:
            yield Finding(
                level="warning",
                code="names_alike",
                message=f"the user profiles {', '.join(sorted(same))} differ only in case; each has a folder of its own",
            )
