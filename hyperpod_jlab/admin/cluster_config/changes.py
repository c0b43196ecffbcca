"""The UpdateCluster that makes a cluster what a file says, and what it changes.

botocore's model says which members UpdateCluster knows. Groups that it does not mention stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from hyperpod_jlab.admin.cluster_config.document import RuleResult
from hyperpod_jlab.admin.cluster_config.schema import input_shape, problems
from hyperpod_jlab.core.errors import nearest_hint
from hyperpod_jlab.core.wire import HIDDEN, Wire, wire_property

Kind = Literal["new", "changed", "smaller", "gone"]

_LISTS = ("InstanceGroups", "RestrictedInstanceGroups")
_DELETE = "InstanceGroupsToDelete"
_DESCRIBED_NAMES = {"InstanceCount": "TargetCount", "MinInstanceCount": "MinCount"}
"""Members of a group that have another name in DescribeCluster."""

_Object = Mapping[str, Any]


@dataclass(frozen=True)
class ConfigChange:
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
    changes: tuple[ConfigChange, ...]
    left: tuple[str, ...]
    lasting: tuple[str, ...] = field(metadata=HIDDEN)
    checks: tuple[RuleResult, ...]

    @property
    @wire_property
    def cluster(self) -> str | None:
        """The cluster's name."""
        name: str | None = self.request.get("ClusterName")
        return name

    @property
    def losses(self) -> tuple[ConfigChange, ...]:
        """What takes instances away."""
        return tuple(change for change in self.changes if change.kind in {"gone", "smaller"})


def changes_of(desired: _Object, actual: _Object, delete: Sequence[str] = ()) -> ClusterChanges:
    """The update.

    Args:
        desired: The input of CreateCluster or UpdateCluster, from the file.
        actual: The answer of DescribeCluster.
        delete: Groups to delete besides those that the file names for it.

    Raises:
        UnsupportedError: boto3 is not installed.
    """
    known_members = set(input_shape("UpdateCluster").members)
    present, kept_groups = _by_name(actual), _by_name(desired)
    deleted = list(dict.fromkeys([*filter(_is_text, _items(desired, _DELETE)), *delete]))
    request: dict[str, Any] = {"ClusterName": desired.get("ClusterName")}
    changes: list[ConfigChange] = []
    for member in _LISTS:
        sent_groups = [*_changed_groups(_items(desired, member), present, changes)]
        if sent_groups:
            request[member] = sent_groups
    for member, value in desired.items():
        is_cluster_member = member in known_members - {"ClusterName", _DELETE, *_LISTS}
        if is_cluster_member and not _covers(actual.get(member), value):
            request[member] = value
            changes.append(ConfigChange("cluster", "changed", member, actual.get(member), value))
    if deleted:
        request[_DELETE] = deleted
    for name in deleted:
        if name in present:
            current_count = present[name].get("CurrentCount")
            changes.append(ConfigChange(f"group {name}", "gone", None, current_count))
    left_out = tuple(name for name in present if name not in {*deleted, *kept_groups})
    controllers = tuple(name for name in left_out if _is_controller(present[name]))
    rule_results = (
        *problems(request, input_shape("UpdateCluster")),
        *_check_members(desired, actual, known_members),
        *_check_deleted(deleted, present, kept_groups),
    )
    return ClusterChanges(request, tuple(changes), left_out, controllers, rule_results)


def _changed_groups(
    desired: Iterable[Any], present: Mapping[str, _Object], changes: list[ConfigChange]
) -> Iterator[Any]:
    """Groups that are new or differ, as the file has them; adds to `changes`."""
    for group in desired:
        name = group.get("InstanceGroupName") if isinstance(group, dict) else None
        if not isinstance(group, dict) or not isinstance(name, str):
            yield group  # the schema reports it
            continue
        target, count_before = f"group {name}", len(changes)
        if name not in present:
            changes.append(ConfigChange(target, "new", None, None, group.get("InstanceCount")))
        current = present.get(name, {})
        for member, value in group.items() if current else ():
            value_now = current.get(_DESCRIBED_NAMES.get(member) or member)
            if not _covers(value_now, value):
                counts = isinstance(value, int) and isinstance(value_now, int)
                smaller = member == "InstanceCount" and counts and value < value_now
                changes.append(
                    ConfigChange(
                        target, "smaller" if smaller else "changed", member, value_now, value
                    )
                )
        if len(changes) > count_before:
            yield group


def _covers(current: Any, desired: Any) -> bool:
    """Whether a cluster has everything desired; AWS' additional members are ignored."""
    if isinstance(desired, dict):
        return isinstance(current, dict) and all(
            _covers(current.get(name), value) for name, value in desired.items()
        )
    if isinstance(desired, list):
        return (
            isinstance(current, list)
            and len(desired) == len(current)
            and all(map(_covers, current, desired))
        )
    return bool(desired == current)


def _check_members(
    desired: _Object, current: _Object, known_members: set[str]
) -> Iterator[RuleResult]:
    create_members = set(input_shape("CreateCluster").members)
    for member, value in desired.items():
        if member in known_members:
            continue
        if member not in create_members:
            hint = nearest_hint(member, known_members)
            yield RuleResult("schema", "error", f"unknown member '{member[:60]}'", hint, member)
        elif member == "Tags":
            message, hint = "an update does not change tags", "aws sagemaker add-tags"
            yield RuleResult("cluster", "warning", message, hint, member)
        elif not _covers(current.get(member), value):
            message = f"{member} cannot be changed after the cluster is created; it stays unchanged"
            yield RuleResult("cluster", "warning", message, None, member)
    old_orchestrator, new_orchestrator = (
        current.get("Orchestrator") or {},
        desired.get("Orchestrator") or {},
    )
    if (
        old_orchestrator
        and isinstance(new_orchestrator, dict)
        and new_orchestrator
        and set(old_orchestrator) != set(new_orchestrator)
    ):
        message = f"the cluster runs on {', '.join(old_orchestrator)}, but the file says {', '.join(new_orchestrator)}"
        yield RuleResult("cluster", "error", message, "create another cluster", "Orchestrator")


def _check_deleted(
    deleted: Sequence[str], present: Mapping[str, _Object], kept_groups: Mapping[str, _Object]
) -> Iterator[RuleResult]:
    for name in deleted:
        if name not in present:
            message, hint = (
                f"the cluster has no instance group {name[:60]}",
                nearest_hint(name, present),
            )
            yield RuleResult("groups", "error", message, hint, _DELETE)
        elif _is_controller(present[name]):
            message = f"{name} is the Slurm controller and cannot be deleted"
            yield RuleResult("groups", "error", message, None, _DELETE)
        if name in kept_groups:
            message = f"{name} is both in InstanceGroups and in the list of groups to delete"
            yield RuleResult("groups", "error", message, "remove it from one of them", _DELETE)


def _is_controller(group: _Object) -> bool:
    return (group.get("SlurmConfig") or {}).get("NodeType") == "Controller"


def _by_name(cluster: _Object) -> dict[str, _Object]:
    """All groups by name."""
    groups = [
        group for member in _LISTS for group in _items(cluster, member) if isinstance(group, dict)
    ]
    return {
        group["InstanceGroupName"]: group
        for group in groups
        if _is_text(group.get("InstanceGroupName"))
    }


def _items(raw: _Object, member: str) -> list[Any]:
    value = raw.get(member)
    return value if isinstance(value, list) else []


def _is_text(value: object) -> bool:
    return isinstance(value, str)
