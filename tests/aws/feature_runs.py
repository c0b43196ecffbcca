"""How to run each feature of `aws.permissions`, as a user does; who adds a feature adds its line here."""

from __future__ import annotations

from collections.abc import Mapping

from testbed.aws.example import example_account
from tests.aws.conftest import REGION

_EKS = example_account(REGION).clusters[REGION][1]
EKS_NODE = _EKS.nodes[0].instance_id

RUNS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "clusters": (("clusters", "--hyperpod"), ("doctor",)),
    "nodes": (("nodes", "--hyperpod", "ml-cluster"),),
    "space": (("doctor",),),
    "events": (
        ("events", "--hyperpod", "research-eks"),
        ("events", "--hyperpod", "research-eks", "--event", "0f1e2d3c-0123-4567-89ab-0123456789ab"),
    ),
    "logs": (
        ("node-logs", "--hyperpod", "ml-cluster"),
        ("node-logs", "ip-10-0-0-5", "--hyperpod", "ml-cluster"),
    ),
    "metrics": (
        ("metrics", "--hyperpod", "research-eks"),
        ("metrics", "--hyperpod", "research-eks", "--by-node"),
        ("metrics", "--hyperpod", "research-eks", "--node", EKS_NODE),
    ),
    "storage": (("storage",),),
    "node-actions": (
        ("node", "reboot", "ip-10-0-0-2", "--hyperpod", "ml-cluster", "--yes"),
        ("node", "replace", "ip-10-0-0-3", "--hyperpod", "ml-cluster", "--yes"),
    ),
}
"""Command lines by feature, for the account of `testbed.aws.example` seen from a space of Studio."""
