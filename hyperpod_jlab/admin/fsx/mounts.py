"""Who mounts what in a Studio domain, and so which mode is in force: pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from hyperpod_jlab.admin.fsx.models import (
    ActualState,
    DesiredState,
    MountTarget,
    mounted_path,
    mounts_by_holder,
    private_path,
)

ModeInForce = Literal["shared", "per-user", "mixed", "off"]
"""All user profiles mount one folder; each its own; some this and some that; none mounts anything."""

MountKind = Literal["shared", "per-user", "none"]

MAX_MOUNT_NAMES = 20
"""Maximum names in a group; it has the count of all."""


@dataclass(frozen=True)
class MountGroup:
    """User profiles that mount alike.

    Attributes:
        kind: ``shared``: the same folder; ``per-user``: each the folder of its name; ``none``: nothing.
        path: The folder of kind ``shared``; None for the others.
        count: Number of these profiles.
        names: The first `MAX_MOUNT_NAMES` of them.
    """

    kind: MountKind
    path: str | None
    count: int
    names: tuple[str, ...]


@dataclass(frozen=True)
class StorageMounts:
    """Who mounts what of a file system.

    Attributes:
        mode: The mode in force.
        groups: The user profiles, grouped by what they mount; the largest group of a kind first.
        new_profiles: The folder that future profiles mount; None: none until a plan is applied for them.
    """

    mode: ModeInForce
    groups: tuple[MountGroup, ...]
    new_profiles: str | None


def find_mounts(holders: Iterable[MountTarget], file_system: str) -> StorageMounts:
    """Who mounts what.

    Args:
        holders: The lists of a domain.
        file_system: The file system's id.
    """
    known_holders = list(holders)
    path_by_holder = mounts_by_holder(known_holders, file_system)
    default = next(
        (mounted_path(holder.entries, file_system) for holder in known_holders if holder.kind == "domain"), None
    )
    names: dict[tuple[MountKind, str | None], list[str]] = defaultdict(list)
    for holder in known_holders:
        if holder.kind != "profile":
            continue
        path = path_by_holder.get(holder.words)
        if path is None:
            names["none", None].append(holder.name)
        elif path == private_path(holder.name) and path != default:
            names["per-user", None].append(holder.name)
        else:
            names["shared", path].append(holder.name)
    kinds = set(names) or {("none", None) if default is None else ("shared", default)}
    order: tuple[MountKind, ...] = ("shared", "per-user", "none")
    return StorageMounts(
        mode="mixed" if len(kinds) > 1 else _mode(next(iter(kinds))[0]),
        groups=tuple(
            MountGroup(kind, path, len(found), tuple(found[:MAX_MOUNT_NAMES]))
            for (kind, path), found in sorted(names.items(), key=lambda item: (order.index(item[0][0]), -len(item[1])))
        ),
        new_profiles=default,
    )


def _mode(kind: MountKind) -> ModeInForce:
    return "off" if kind == "none" else kind


def desired_in_force(actual: ActualState, desired: DesiredState) -> DesiredState:
    """The desired state with the mode in force: of a mixture, the one for future profiles."""
    mounts = find_mounts(actual.holders, actual.file_system.name)
    if mounts.mode == "off":
        return replace(desired, mode=None)
    path = mounts.new_profiles or next((group.path for group in mounts.groups if group.path is not None), None)
    is_shared = mounts.mode == "shared" or (mounts.mode == "mixed" and mounts.new_profiles is not None)
    if is_shared and path is not None:
        return replace(desired, mode="shared", shared_path=path)
    return replace(desired, mode="per-user")
