"""What UpdateCluster is to be told so that a cluster becomes what a file says, and what that means: pure.

Which members UpdateCluster knows is botocore's model of it. Groups of which it is told nothing stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from hyperpod_jlab.admin.cluster_config.schema import input_shape, problems
from hyperpod_jlab.admin.cluster_config.verdict import Verdict, doubtful, wrong
from hyperpod_jlab.core.errors import nearest_hint
from hyperpod_jlab.core.wire import HIDDEN, Wire, shown

Kind = Literal["new", "changed", "smaller", "gone"]

_LISTS = ("InstanceGroups", "RestrictedInstanceGroups")
_DESCRIBED_AS = {"InstanceCount": "TargetCount", "MinInstanceCount": "MinCount"}
"""What a group's members are called in the description, where that is something else."""

_ENTITY = {"ClusterName", "InstanceGroupsToDelete", *_LISTS}


@dataclass(frozen=True)
class Change:
    """A difference between what is there and what is wanted.

    Attributes:
        target: What it is of: ``cluster`` or ``group NAME``.
        kind: What becomes of it.
        member: Which of its members; None: it as a whole.
        before: What is there.
        after: What is wanted.
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
        left: Groups of the cluster of which the file says nothing.
        lasting: Those of them that cannot be deleted.
        checks: What is wrong with it, or to be known.
    """

    request: Mapping[str, Any] = field(metadata=HIDDEN)
    changes: tuple[Change, ...]
    left: tuple[str, ...]
    lasting: tuple[str, ...] = field(metadata=HIDDEN)
    checks: tuple[Verdict, ...]

    @property
    @shown
    def cluster(self) -> str | None:
        """The cluster's name."""
        name: str | None = self.request.get("ClusterName")
        return name

    @property
    def losses(self) -> tuple[Change, ...]:
        """What takes instances away."""
        return tuple(one for one in self.changes if one.kind in {"gone", "smaller"})


def changes_of(
    wanted: Mapping[str, Any], there: Mapping[str, Any], delete: Sequence[str] = ()
) -> ClusterChanges:
    """The update.

    Args:
        wanted: The input of CreateCluster or UpdateCluster, from the file.
        there: The answer of DescribeCluster.
        delete: Names of groups that are to go away besides those that the file names for it.

    Raises:
        UnsupportedError: boto3 is not installed.
    """
    known = set(input_shape("UpdateCluster").members)
    named = wanted.get("InstanceGroupsToDelete")
    listed = [one for one in named if isinstance(one, str)] if isinstance(named, list) else []
    gone = list(dict.fromkeys([*listed, *delete]))
    request: dict[str, Any] = {"ClusterName": wanted.get("ClusterName")}
    changes: list[Change] = []
    for member in _LISTS:
        sent = [*_groups(wanted.get(member), _by_name(there.get(member)), changes)]
        if sent:
            request[member] = sent
    for member, value in wanted.items():
        if member in known - _ENTITY and not _same(value, there.get(member)):
            request[member] = value
            changes.append(Change("cluster", "changed", member, there.get(member), value))
    if gone:
        request["InstanceGroupsToDelete"] = gone
    present = _present(there)
    changes += [
        Change(f"group {name}", "gone", None, present[name].get("CurrentCount"))
        for name in gone
        if name in present
    ]
    mentioned = {*gone, *(name for member in _LISTS for name in _by_name(wanted.get(member)))}
    left = tuple(name for name in present if name not in mentioned)
    lasting = tuple(name for name in left if _controls(present[name]))
    verdicts = (
        *problems(request, input_shape("UpdateCluster")),
        *_of_members(wanted, there, known),
        *_of_gone(gone, present, wanted),
    )
    return ClusterChanges(request, tuple(changes), left, lasting, verdicts)


def _groups(
    wanted: Any, there: Mapping[str, Mapping[str, Any]], changes: list[Change]
) -> Iterator[Any]:
    """The groups that are new or change, as the file has them; what changes of them is put to the changes."""
    for one in wanted if isinstance(wanted, list) else ():
        name = one.get("InstanceGroupName") if isinstance(one, dict) else None
        if not isinstance(one, dict) or not isinstance(name, str):
            yield one  # the schema's to complain about
        elif name not in there:
            changes.append(Change(f"group {name}", "new", None, None, one.get("InstanceCount")))
            yield one
        else:
            found = [*_group_changes(name, one, there[name])]
            changes += found
            if found:
                yield one


def _group_changes(
    name: str, wanted: Mapping[str, Any], there: Mapping[str, Any]
) -> Iterator[Change]:
    for member, value in wanted.items():
        before = there.get(_DESCRIBED_AS.get(member, member))
        if not _same(value, before):
            kind: Kind = "changed"
            if member == "InstanceCount" and _less(value, before):
                kind = "smaller"
            yield Change(f"group {name}", kind, member, before, value)


def _less(value: Any, before: Any) -> bool:
    return isinstance(value, int) and isinstance(before, int) and value < before


def _same(wanted: Any, there: Any) -> bool:
    """Whether all that is wanted is there; what AWS tells besides is its own."""
    if isinstance(wanted, Mapping):
        if not isinstance(there, Mapping):
            return False
        return all(_same(value, there.get(name)) for name, value in wanted.items())
    if isinstance(wanted, list):
        if not isinstance(there, list) or len(wanted) != len(there):
            return False
        return all(_same(one, other) for one, other in zip(wanted, there, strict=True))
    return bool(wanted == there)


def _of_members(
    wanted: Mapping[str, Any], there: Mapping[str, Any], known: set[str]
) -> Iterator[Verdict]:
    of_create = set(input_shape("CreateCluster").members)
    for member, value in wanted.items():
        if member in known:
            continue
        if member not in of_create:
            hint = nearest_hint(member, known)
            yield wrong("schema", f"there is no member {member[:60]}", member, hint)
        elif member == "Tags":
            words = "tags are not changed by an update"
            yield doubtful("cluster", words, member, "aws sagemaker add-tags")
        elif not _same(value, there.get(member)):
            words = f"{member} cannot be changed once a cluster is made; it stays as it is"
            yield doubtful("cluster", words, member)
    before, after = there.get("Orchestrator") or {}, wanted.get("Orchestrator") or {}
    if before and isinstance(after, Mapping) and after and set(before) != set(after):
        words = f"the cluster is on {', '.join(before)}, and the file says {', '.join(after)}"
        yield wrong("cluster", words, "Orchestrator", "make another cluster")


def _of_gone(
    gone: Sequence[str], present: Mapping[str, Mapping[str, Any]], wanted: Mapping[str, Any]
) -> Iterator[Verdict]:
    place = "InstanceGroupsToDelete"
    kept = {name for member in _LISTS for name in _by_name(wanted.get(member))}
    for name in gone:
        if name not in present:
            words = f"the cluster has no group {name[:60]}"
            yield wrong("groups", words, place, nearest_hint(name, present))
        elif _controls(present[name]):
            yield wrong(
                "groups", f"{name} is the controller, without which there is no Slurm", place
            )
        if name in kept:
            words = f"{name} is to go away, and stands among the groups too"
            yield wrong("groups", words, place, "take it out of one of both")


def _controls(group: Mapping[str, Any]) -> bool:
    """Whether a group is Slurm's controller."""
    return (group.get("SlurmConfig") or {}).get("NodeType") == "Controller"


def _present(there: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {name: one for member in _LISTS for name, one in _by_name(there.get(member)).items()}


def _by_name(groups: Any) -> dict[str, Mapping[str, Any]]:
    found = groups if isinstance(groups, list) else []
    return {
        one["InstanceGroupName"]: one
        for one in found
        if isinstance(one, Mapping) and isinstance(one.get("InstanceGroupName"), str)
    }
