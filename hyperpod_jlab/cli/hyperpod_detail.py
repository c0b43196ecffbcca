"""All about one HyperPod cluster, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from hyperpod_jlab.cli.hyperpod_tables import software
from hyperpod_jlab.cli.invocation import invocation, with_services
from hyperpod_jlab.cli.output import Table, moment, print_fields, print_json, print_table
from hyperpod_jlab.cli.terminal import printable
from hyperpod_jlab.model.hyperpod import HyperpodCluster, InstanceGroup
from hyperpod_jlab.services.hyperpod import Hyperpod

_GROUP_TITLES = ("GROUP", "STATE", "TYPE", "NODES", "ROLE", "CAPACITY", "LIFE CYCLE SCRIPT")


def show_cluster(name: str, region: str | None) -> None:
    """Print all about a HyperPod cluster: what it is, whether one can submit to it from here, its settings and groups.

    Args:
        name: Its name or ARN.
        region: Its region; default: see `aws.session.Aws`.
    """

    async def read(services: Hyperpod) -> HyperpodCluster:
        found = await services.hyperpod_clusters(region).cluster(name)
        reaches = services.reaches(region)
        try:
            return (await reaches.looked([found]))[0]
        finally:
            await reaches.close()

    cluster = with_services(read, asking=True)
    if invocation().as_json:
        print_json(cluster.to_dict())
        return
    print_fields(_facts(cluster))
    _print_reach(cluster)
    print("\nsettings:")
    for setting in cluster.settings:
        meaning = f"  ({setting.meaning})" if setting.meaning else ""
        print(printable(f"  {setting.name}  {setting.value}{meaning}"))
    print()
    print_table(Table(_GROUP_TITLES, [_group_row(group) for group in cluster.groups or ()]))


def _facts(cluster: HyperpodCluster) -> list[tuple[str, str | None]]:
    mounted = cluster.mounted_here
    return [
        ("cluster", cluster.name),
        ("kind", cluster.orchestrator or "unknown"),
        ("state", cluster.state),
        ("reason", cluster.reason),
        ("nodes", f"{cluster.nodes}/{cluster.target}"),
        ("software", software(cluster.image_status) if cluster.image_status else None),
        ("created", moment(cluster.created_at)),
        ("arn", cluster.arn),
        ("configured as", ", ".join(cluster.configured_as)),
        ("mounted here", None if mounted is None else ", ".join(mounted) or "no"),
    ]


def _print_reach(cluster: HyperpodCluster) -> None:
    reach = cluster.reach
    if reach is None:
        return
    print()
    print(printable(f"submit from here: {reach.word}: {reach.sentence}"))
    if reach.next_step:
        print(printable(f"  next: {reach.next_step}"))
    if reach.config:
        print("  for the configuration file:")
        for line in reach.config.splitlines():
            print(printable(f"    {line}"))


def _group_row(group: InstanceGroup) -> Sequence[str]:
    return (
        group.name,
        group.state or "-",
        group.instance_type or "-",
        f"{group.current}/{group.target}",
        group.slurm_role or "-",
        group.capacity or "-",
        group.script or "-",
    )
