"""``hpj storage``: the storage partition, here and as the clusters see it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import click

from hyperpod_jlab.cli.group import HpjCommand
from hyperpod_jlab.cli.invocation import invocation, with_services
from hyperpod_jlab.cli.output import Table, print_fields, print_json, print_table
from hyperpod_jlab.model.errors import HyperpodError
from hyperpod_jlab.model.quantities import format_size
from hyperpod_jlab.services.hyperpod import Hyperpod
from hyperpod_jlab.storage.index import default_path
from hyperpod_jlab.storage.mounts import mount_of, room_at

_HELP = """\
Show the storage partition: where it lies on this machine, on which file system, how much room it has, and where each cluster sees it.

A file on the partition has the same path behind these folders on both sides.
"""


@dataclass(frozen=True)
class _View:
    """The partition as one cluster sees it; paths are None when that is not known here."""

    cluster: str
    orchestrator: str
    here: str | None
    there: str | None
    reason: str | None = None


@click.command(cls=HpjCommand, help=_HELP, examples=("hpj storage", "hpj storage --json"))
def storage() -> None:
    """Show the storage partition."""
    partition, views = with_services(_look)
    if invocation().as_json:
        print_json({"partition": partition, "clusters": [asdict(view) for view in views]})
        return
    print_fields(
        [
            ("path", partition["path"]),
            ("chosen by", partition["chosen_by"]),
            ("runs and code", partition["folder"]),
            ("shared", "yes" if partition["shared"] else "no"),
            ("file system", f"{partition['kind'] or 'unknown'} at {partition['mount']}"),
            ("mounted from", partition["source"]),
            ("free", f"{format_size(partition['free'])} of {format_size(partition['total'])}"),
            ("index", partition["index"] or "in memory only"),
        ]
    )
    print()
    rows = [
        (view.cluster, view.orchestrator, view.here or "-", view.there or "-", view.reason or "")
        for view in views
    ]
    print_table(Table(("CLUSTER", "KIND", "HERE", "THERE", "REASON"), rows))


async def _look(hyperpod: Hyperpod) -> tuple[dict[str, Any], list[_View]]:
    partition = hyperpod.partition
    mount, room, index = mount_of(partition.root), room_at(partition.root), default_path(partition)
    configured = hyperpod.settings.storage.path is not None
    return {
        "path": str(partition.root),
        "chosen_by": "the configuration" if configured else "default",
        "folder": str(partition.folder),
        "shared": partition.shared,
        "mount": mount.point,
        "kind": mount.kind,
        "source": mount.source,
        "free": room.free,
        "total": room.total,
        "index": None if index is None else str(index),
    }, [_view(hyperpod, name) for name in hyperpod.settings.clusters]


def _view(hyperpod: Hyperpod, name: str) -> _View:
    kind = hyperpod.settings.clusters[name].orchestrator
    try:
        paths = hyperpod.engines.get(name).paths
    except HyperpodError as error:
        return _View(name, kind, None, None, error.message)
    return _View(name, kind, str(paths.here), str(paths.there))
