"""The UpdateCluster that makes a cluster what a file says, and what it changes.

botocore's model says which members UpdateCluster knows. Groups that it does not mention stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from hyperpod_jlab.admin.cluster_config.document import Verdict
from hyperpod_jlab.admin.cluster_config.schema import input_shape, problems
from hyperpod_jlab.core.errors import nearest_hint
from hyperpod_jlab.core.wire import HIDDEN, Wire, wire_property

Kind = Literal["new", "changed", "smaller", "gone"]

_LISTS = ("InstanceGroups", "RestrictedInstanceGroups")
_DELETE = "InstanceGroupsToDelete"
_DESCRIBED_AS = {"InstanceCount": "TargetCount", "MinInstanceCount": "MinCount"}
"""Members of a group that DescribeCluster calls otherwise."""

_Object = Mapping[str, Any]


@dataclass(frozen=True)
class Change:
    """A difference between a cluster and a file.

    Attributes:
        target: ``cluster`` or ``group NAME``.
        kind: What happens to it.
        member: The member that changes; None: the whole target.
        before: Its value now.
        after: Its value in the file.
    """

    target: str
    kind: Kind
    member: str | None = None
    before: Any = None
    after: Any = None


@dataclass(frozen=True)
class ClusterChanges(Wire):
    """An update.

    Attributes:
        request: The input of UpdateCluster.
        changes: What it changes.
        left: Groups of the cluster that the file does not mention.
        lasting: Those of them that cannot be deleted.
        checks: Errors and warnings.
    """

    request: _Object = field(metadata=HIDDEN)
    changes: tuple[Change, ...]
    left: tuple[str, ...]
    lasting: tuple[str, ...] = field(metadata=HIDDEN)
    checks: tuple[Verdict, ...]

    @property
    @wire_property
    def cluster(self) -> str | None:
        """The cluster's name."""
        name: str | None = self.request.get("ClusterName")
        return name

    @property
    def losses(self) -> tuple[Change, ...]:
        """What takes instances away."""
        return tuple(one for one in self.changes if one.kind in {"gone", "smaller"})


def changes_of(wanted: _Object, there: _Object, delete: Sequence[str] = ()) -> ClusterChanges:
    """The update.

    Args:
        wanted: The input of CreateCluster or UpdateCluster, from the file.
        there: The answer of DescribeCluster.
        delete: Groups to delete besides those that the file names for it.

    Raises:
        UnsupportedError: boto3 is not installed.
    """
    known = set(input_shape("UpdateCluster").members)
    present, kept = _by_name(there), _by_name(wanted)
    gone = list(dict.fromkeys([*filter(_is_text, _items(wanted, _DELETE)), *delete]))
    request: dict[str, Any] = {"ClusterName": wanted.get("ClusterName")}
    changes: list[Change] = []
    for member in _LISTS:
        sent = [*_sent(_items(wanted, member), present, changes)]
        if sent:
            request[member] = sent
    for member, value in wanted.items():
        of_cluster = member in known - {"ClusterName", _DELETE, *_LISTS}
        if of_cluster and not _covers(there.get(member), value):
            request[member] = value
            changes.append(Change("cluster", "changed", member, there.get(member), value))
    if gone:
        request[_DELETE] = gone
    for name in gone:
        if name in present:
            before = present[name].get("CurrentCount")
            changes.append(Change(f"group {name}", "gone", None, before))
    left = tuple(name for name in present if name not in {*gone, *kept})
    lasting = tuple(name for name in left if _is_controller(present[name]))
    verdicts = (
        *problems(request, input_shape("UpdateCluster")),
        *_check_members(wanted, there, known),
        *_check_deleted(gone, present, kept),
    )
    return ClusterChanges(request, tuple(changes), left, lasting, verdicts)


def _sent(
    wanted: Iterable[Any], present: Mapping[str, _Object], changes: list[Change]
) -> Iterator[Any]:
    """Groups that are new or differ, as the file has them; adds to `changes`."""
    for one in wanted:
        name = one.get("InstanceGroupName") if isinstance(one, dict) else None
        if not isinstance(one, dict) or not isinstance(name, str):
            yield one  # the schema reports it
            continue
        target, before = f"group {name}", len(changes)
        if name not in present:
            changes.append(Change(target, "new", None, None, one.get("InstanceCount")))
        there = present.get(name, {})
        for member, value in one.items() if there else ():
            now = there.get(_DESCRIBED_AS.get(member) or member)
            if not _covers(now, value):
                counts = isinstance(value, int) and isinstance(now, int)
                smaller = member == "InstanceCount" and counts and value < now
                changes.append(
                    Change(target, "smaller" if smaller else "changed", member, now, value)
                )
        if len(changes) > before:
            yield one


def _covers(there: Any, wanted: Any) -> bool:
    """Whether a cluster has all that is wanted; what AWS tells besides does not count."""
    if isinstance(wanted, dict):
        return isinstance(there, dict) and all(
            _covers(there.get(name), value) for name, value in wanted.items()
        )
    if isinstance(wanted, list):
        return (
            isinstance(there, list)
            and len(wanted) == len(there)
            and all(map(_covers, there, wanted))
        )
    return bool(wanted == there)


def _check_members(wanted: _Object, there: _Object, known: set[str]) -> Iterator[Verdict]:
    of_create = set(input_shape("CreateCluster").members)
    for member, value in wanted.items():
        if member in known:
            continue
        if member not in of_create:
            hint = nearest_hint(member, known)
            yield Verdict("schema", "error", f"unknown member '{member[:60]}'", hint, member)
        elif member == "Tags":
            words, hint = "an update does not change tags", "aws sagemaker add-tags"
            yield Verdict("cluster", "warning", words, hint, member)
        elif not _covers(there.get(member), value):
            words = f"{member} cannot be changed after the cluster is created; it stays unchanged"
            yield Verdict("cluster", "warning", words, None, member)
    before, after = there.get("Orchestrator") or {}, wanted.get("Orchestrator") or {}
    if before and isinstance(after, dict) and after and set(before) != set(after):
        words = f"the cluster runs on {', '.join(before)}, but the file says {', '.join(after)}"
        yield Verdict("cluster", "error", words, "create another cluster", "Orchestrator")


def _check_deleted(
    gone: Sequence[str], present: Mapping[str, _Object], kept: Mapping[str, _Object]
) -> Iterator[Verdict]:
    for name in gone:
        if name not in present:
            words, hint = (
                f"the cluster has no instance group {name[:60]}",
                nearest_hint(name, present),
            )
            yield Verdict("groups", "error", words, hint, _DELETE)
        elif _is_controller(present[name]):
            words = f"{name} is the Slurm controller and cannot be deleted"
            yield Verdict("groups", "error", words, None, _DELETE)
        if name in kept:
            words = f"{name} is both in InstanceGroups and in the list of groups to delete"
            yield Verdict("groups", "error", words, "remove it from one of them", _DELETE)


def _is_controller(group: _Object) -> bool:
    return (group.get("SlurmConfig") or {}).get("NodeType") == "Controller"


def _by_name(cluster: _Object) -> dict[str, _Object]:
    """All groups by name."""
    found = [one for member in _LISTS for one in _items(cluster, member) if isinstance(one, dict)]
    return {
        one["InstanceGroupName"]: one for one in found if _is_text(one.get("InstanceGroupName"))
    }


def _items(raw: _Object, member: str) -> list[Any]:
    found = raw.get(member)
    return found if isinstance(found, list) else []


def _is_text(value: object) -> bool:
    return isinstance(value, str)
