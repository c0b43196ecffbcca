"""What a cluster has room for: its queues, their limits and the kinds of nodes in them, in one listing.

One row of sinfo stands for all nodes that are alike, so that a large cluster has few.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from hyperpod_jlab.orchestrators.slurm.job import to_limit
from hyperpod_jlab.orchestrators.slurm.rows import new_mark, parse_rows, row_format
from hyperpod_jlab.orchestrators.slurm.tables.gres import Gres, parse_gres

FIELDS: tuple[tuple[str, str], ...] = (
    ("starred", "%P"),
    ("name", "%R"),
    ("available", "%a"),
    ("default_time", "%L"),
    ("max_time", "%l"),
    ("job_size", "%s"),
    ("nodes", "%D"),
    ("cpus", "%c"),
    ("memory", "%m"),
    ("gres", "%G"),
    ("features", "%f"),
)
"""Name here and letter of each field (man sinfo); those that hold free text come last."""


@dataclass(frozen=True)
class NodeGroup:
    """Nodes of a queue that are alike; memory is in bytes."""

    nodes: int
    cpus: int
    memory: int
    gres: tuple[Gres, ...]
    features: frozenset[str]

    def count(self, kind: str, model: str | None = None) -> int:
        """How many of a generic resource a node has, of one type or of all."""
        return sum(
            entry.count for entry in self.gres if entry.name == kind and model in {None, entry.type}
        )


@dataclass(frozen=True)
class QueueLimits:
    """A queue: times are in seconds, None without a limit.

    Attributes:
        name: Its name.
        default: Whether jobs that name none wait here.
        available: Slurm's word for it: up, down, drain or inact.
        default_time: Limit of a job that asks for none.
        max_time: Longest limit.
        max_nodes: Most nodes of one job.
        groups: Its nodes.
    """

    name: str
    default: bool
    available: str
    default_time: float | None
    max_time: float | None
    max_nodes: int | None
    groups: tuple[NodeGroup, ...]

    @property
    def nodes(self) -> int:
        """All its nodes."""
        return sum(group.nodes for group in self.groups)


Limits = Mapping[str, QueueLimits]
"""The queues by name, in the order of the cluster."""


def limits_command() -> tuple[list[str], str]:
    """The command that lists the limits, and the mark of its rows. ``--exact``: no row says "16+" for nodes that differ."""
    mark = new_mark()
    letters = [letter for _, letter in FIELDS]
    return [
        "sinfo",
        "--noheader",
        "--all",
        "--exact",
        f"--format={row_format(mark, letters)}",
    ], mark


def parse_limits(text: str, mark: str) -> dict[str, QueueLimits]:
    """What the command of `limits_command` was answered."""
    found: dict[str, QueueLimits] = {}
    for row in parse_rows(text, mark, [name for name, _ in FIELDS]):
        group = NodeGroup(
            nodes=_number(row["nodes"]),
            cpus=_number(row["cpus"]),
            memory=_number(row["memory"]) * 1024**2,
            gres=parse_gres(row["gres"]),
            features=frozenset(_listed(row["features"])),
        )
        before = found.get(row["name"])
        here = (group,) if group.nodes else ()  # a queue may have none yet
        found[row["name"]] = QueueLimits(
            name=row["name"],
            default=row["starred"] == row["name"] + "*",
            available=row["available"],
            default_time=to_limit(row["default_time"]),
            max_time=to_limit(row["max_time"]),
            max_nodes=_most(row["job_size"]),
            groups=(*(before.groups if before else ()), *here),
        )
    return found


def _listed(text: str) -> list[str]:
    return [] if text in {"(null)", ""} else text.split(",")


def _number(text: str) -> int:
    found = re.match(r"[0-9]+", text)
    return int(found[0]) if found else 0


def _most(job_size: str) -> int | None:
    """The most nodes of a job, from ``1-infinite``, ``2-4`` or ``1``."""
    last = job_size.rpartition("-")[2]
    return int(last) if last.isdecimal() else None
