"""HyperPod clusters and their instances as rows of a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hyperpod_jlab.cli.output import moment
from hyperpod_jlab.model.hyperpod import HyperpodCluster, Instance, InstanceGroup
from hyperpod_jlab.model.node_join import JoinedNode
from hyperpod_jlab.model.reach import READY

CLUSTER_TITLES = (
    *("CLUSTER", "KIND", "STATE", "NODES", "GROUPS", "SOFTWARE", "CREATED"),
    *("CONFIGURED AS", "MOUNTED HERE", "SUBMIT", "REASON"),
)
JOINED_TITLES = (
    *("INSTANCE", "GROUP", "TYPE", "STATE", "HOST", "VERSION", "SOFTWARE", "LAUNCHED"),
    *("NODE", "SCHEDULER", "JOBS", "REASON"),
)

_SOFTWARE = {
    "UpToDate": "up to date",
    "UpdateAvailable": "update available",
    "SecurityUpdateRequired": "security update required",
    "EndOfLife": "end of life",
}


def cluster_row(cluster: HyperpodCluster) -> Sequence[str]:
    """The cells of a HyperPod cluster; what is not known is a hyphen."""
    known = cluster.groups is not None
    return (
        cluster.name,
        cluster.orchestrator or "unknown",
        cluster.state,
        f"{cluster.nodes}/{cluster.target}" if known else "-",
        ", ".join(map(_group, cluster.groups or ())) or "-",
        software(cluster.image_status),
        moment(cluster.created_at),
        ", ".join(cluster.configured_as) or "-",
        _mounted(cluster.mounted_here),
        cluster.reach.word if cluster.reach else "-",
        cluster.reason or "",
    )


def reach_notes(clusters: Sequence[HyperpodCluster]) -> list[str]:
    """A hint for those to which one could submit, and how to see what is missing for the others."""
    words = [one.reach.word for one in clusters if one.reach]
    ready = words.count(READY)
    others = [word for word in words if word not in {READY, "configured"}]
    refused = Counter(
        one.reach.sentence for one in clusters if one.reach and one.reach.word == "no-right"
    )
    notes = [
        f"whether one can submit to {count} of {len(clusters)} clusters from here is not known: {words}"
        for words, count in refused.items()
    ]
    if ready:
        notes.append(f"{ready} can be added to the configuration: hpj config add NAME")
    if others:
        notes.append(
            "what is missing to submit to a cluster from here: hpj clusters --hyperpod NAME"
        )
    return notes


def joined_row(row: JoinedNode) -> Sequence[str]:
    """The cells of a node as AWS and the scheduler know it; what is not known is a hyphen."""
    node = row.node
    reasons = (
        row.instance.reason if row.instance else None,
        node.reason if node else None,
        row.remark,
    )
    return (
        *(_instance_cells(row.instance) if row.instance else ("-",) * 8),
        node.name if node else "-",
        node.state if node else "-",
        str(len(node.jobs)) if node else "-",
        "; ".join(reason.rstrip(".") for reason in reasons if reason),
    )


def _instance_cells(instance: Instance) -> Sequence[str]:
    return (
        instance.name,
        instance.instance_group,
        instance.instance_type,
        instance.state,
        instance.host or "-",
        instance.image_version or "-",
        software(instance.image_status),
        moment(instance.launched_at),
    )


def _group(group: InstanceGroup) -> str:
    """Such as ``workers 3/4``, with the state where it is not the usual one."""
    state = "" if group.state in {None, "in-service"} else f" {group.state}"
    return f"{group.name} {group.current}/{group.target}{state}"


def _mounted(paths: tuple[str, ...] | None) -> str:
    """Where the cluster's file systems are here; a hyphen where it is not known which those are."""
    return "-" if paths is None else ", ".join(paths) or "no"


def software(status: str | None) -> str:
    """Whether updates of the software are due."""
    return "-" if status is None else _SOFTWARE.get(status, status)
