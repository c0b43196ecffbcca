"""Which instance is which node: the table of cases."""

from __future__ import annotations

from typing import Any

import pytest

from hyperpod_jlab.core.cluster import Node
from hyperpod_jlab.core.hyperpod import Instance
from hyperpod_jlab.core.nodes import join_nodes
from hyperpod_jlab.core.wire import to_plain
from hyperpod_jlab.engines.registry import find_engine
from hyperpod_jlab.engines.slurm import SCHEDULER

HOST = "ip-10-0-0-{}.us-west-2.compute.internal"
LEFT, STARTING_STATES, UNKNOWN = (
    "it has left the cluster",
    "it has not joined the cluster yet",
    "the scheduler does not know it",
)
NO_NAME = "AWS does not report its name, so it cannot be matched to a node of the scheduler"


def instance(name: str, host: int | None = None, status: str = "Running", group: str = "workers", at: float = 0):
    made = None if host is None else HOST.format(host)
    return Instance(name, group, "ml.g5.xlarge", status, launched_at=at, host=made)


def joined(orchestrator: str, instances, nodes, roles=None):
    """Rows as (instance, node, the beginning of the remark)."""
    engine = find_engine(orchestrator)
    assert engine is not None
    rows = join_nodes(engine.scheduler, instances, [Node(name, "up") for name in nodes], roles)
    return [
        (row.instance.name if row.instance else None, row.node.name if row.node else None, row.remark) for row in rows
    ]


CASES: dict[str, tuple[Any, ...]] = {
    "slurm, by the first part of the host": (
        "slurm",
        [instance("i-1", 1), instance("i-2", 2)],
        ["ip-10-0-0-2", "ip-10-0-0-1"],
        [("i-1", "ip-10-0-0-1", None), ("i-2", "ip-10-0-0-2", None)],
    ),
    "slurm, whose node has its whole name or capitals": (
        "slurm",
        [instance("i-1", 1), instance("i-2", 2)],
        [HOST.format(1), "IP-10-0-0-2"],
        [("i-1", HOST.format(1), None), ("i-2", "IP-10-0-0-2", None)],
    ),
    "kubernetes, by the instance's id": (
        "kubernetes",
        [instance("i-1", 1), instance("i-2", 2)],
        ["hyperpod-i-2", "hyperpod-i-1"],
        [("i-1", "hyperpod-i-1", None), ("i-2", "hyperpod-i-2", None)],
    ),
    "kubernetes never goes by the host": (
        "kubernetes",
        [instance("i-1", 1)],
        ["ip-10-0-0-1"],
        [("i-1", None, UNKNOWN), (None, "ip-10-0-0-1", "AWS does not list its instance")],
    ),
    "one that starts, one that is checked, one that ends, one that failed": (
        "slurm",
        [
            instance("i-1", 1, "Pending"),
            instance("i-2", 2, "DeepHealthCheckInProgress"),
            instance("i-3", 3, "ShuttingDown"),
            instance("i-4", 4, "Failure"),
        ],
        [],
        [("i-1", None, STARTING_STATES), ("i-2", None, STARTING_STATES), ("i-3", None, LEFT), ("i-4", None, LEFT)],
    ),
    "a failed one that the scheduler still has": (
        "slurm",
        [instance("i-1", 1, "Failure")],
        ["ip-10-0-0-1"],
        [("i-1", "ip-10-0-0-1", None)],
    ),
    "slurm, replaced: the name stays, the old instance is still listed first": (
        "slurm",
        [instance("i-old", 1, "ShuttingDown", at=1), instance("i-new", 1, at=2)],
        ["ip-10-0-0-1"],
        [("i-old", None, "replaced by i-new"), ("i-new", "ip-10-0-0-1", None)],
    ),
    "slurm, replaced: the old one fails after the new one came, and stands behind it": (
        "slurm",
        [instance("i-new", 1, "Pending", at=2), instance("i-old", 1, "Failure", at=3)],
        ["ip-10-0-0-1"],
        [("i-new", "ip-10-0-0-1", None), ("i-old", None, "replaced by i-new")],
    ),
    "slurm, two that both run: the newer one": (
        "slurm",
        [instance("i-2", 1, at=2), instance("i-1", 1, at=1)],
        ["ip-10-0-0-1"],
        [("i-2", "ip-10-0-0-1", None), ("i-1", None, "replaced by i-2")],
    ),
    "slurm's map is stale: a node without an instance": (
        "slurm",
        [instance("i-1", 1)],
        ["ip-10-0-0-9", "ip-10-0-0-1", "ip-10-0-0-8"],
        [
            ("i-1", "ip-10-0-0-1", None),
            (None, "ip-10-0-0-9", "AWS lists no instance of this name"),
            (None, "ip-10-0-0-8", "AWS lists no instance of this name"),
        ],
    ),
    "kubernetes, replaced: both names are there, the old one in Kubernetes only": (
        "kubernetes",
        [instance("i-new", 1)],
        ["hyperpod-i-old", "hyperpod-i-new"],
        [("i-new", "hyperpod-i-new", None), (None, "hyperpod-i-old", "AWS does not list its instance")],
    ),
    "two of which AWS does not tell the names are two": (
        "slurm",
        [instance("i-1"), instance("i-2")],
        ["ip-10-0-0-1"],
        [("i-1", None, NO_NAME), ("i-2", None, NO_NAME), (None, "ip-10-0-0-1", "AWS lists no instance of this name")],
    ),
    "a word of AWS' that is newer": ("slurm", [instance("i-1", 1, "Dreaming")], [], [("i-1", None, UNKNOWN)]),
    "two nodes of the same first part: none is lost": (
        "slurm",
        [instance("i-1", 1)],
        ["ip-10-0-0-1", "ip-10-0-0-1.other"],
        [("i-1", "ip-10-0-0-1", None), (None, "ip-10-0-0-1.other", "AWS lists no instance of this name")],
    ),
    "nothing at all": ("slurm", [], [], []),
}


@pytest.mark.parametrize("case", CASES)
def test_the_table_of_cases(case):
    orchestrator, instances, nodes, wanted = CASES[case]
    found = joined(orchestrator, instances, nodes)
    assert [row[:2] for row in found] == [row[:2] for row in wanted]
    for (*_, remark), (*_, words) in zip(found, wanted, strict=True):
        assert (remark or "").startswith(words or "")
        assert (remark is None) == (words is None)


@pytest.mark.parametrize(("role", "remark"), [("Controller", None), ("Login", None), ("Compute", UNKNOWN)])
def test_controllers_and_login_nodes_need_no_slurm_node(role, remark):
    found = joined("slurm", [instance("i-1", 1, group="g")], [], {"g": role})
    assert found == [("i-1", None, remark)]


def test_a_login_node_that_runs_slurmd_is_joined_all_the_same():
    found = joined("slurm", [instance("i-1", 1, group="g")], ["ip-10-0-0-1"], {"g": "Login"})
    assert found == [("i-1", "ip-10-0-0-1", None)]


def test_a_row_as_plain_data():
    (row,) = join_nodes(SCHEDULER, [instance("i-1", 1, at=5)], [])
    told = to_plain(row)
    assert told["instance"]["launched_at"] == "1970-01-01T00:00:05.000Z"
    assert (told["node"], told["remark"]) == (None, UNKNOWN)
