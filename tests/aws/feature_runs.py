"""How to run each feature of `aws.permissions`, as a user does; who adds a feature adds its line here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

WIRING = ("--domain", "d-example", "--file-system", "fs-0123456789abcdef0")
BY_CLUSTER = ("--domain", "d-example", "--cluster", "ml-cluster")
"""The same, by the cluster that mounts the file system."""

PER_USER = ("--partition-mode", "per-user", "--take-over", "--mounted-at", "{disk}")
LIFECYCLE = (*PER_USER, "--lifecycle-file", "{lifecycle}")
_CLUSTERS = Path(__file__).parents[2] / "examples" / "clusters"
SLURM, SECOND = (str(_CLUSTERS / "slurm" / name) for name in ("cluster-config.json", "provisioning_parameters.json"))
ON_EKS = str(_CLUSTERS / "eks" / "cluster-config.json")

SUBMIT = (
    *("submit", "--cluster", "on-eks", "--dry-run", "--command", "true"),
    *("--image", "registry/train:1", "--instance-type", "ml.p5.48xlarge"),
)
"""What EC2 says of the type is remembered, and the table knows it, too."""


def mlflow_run(arn: str) -> tuple[tuple[str, ...], ...]:
    """A run in an experiment that the server does not know; what is shown of it, and a link."""
    submit = ("submit", "--cluster", "local", "--command", "true", "--follow")
    return ((*submit, "--mlflow", arn, "--mlflow-experiment", "toy"), ("show", "last"), ("mlflow", "link", "last"))


RUNS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "clusters": (("clusters",), ("config", "add", "ml-cluster", "--dry-run"), ("doctor",)),
    "nodes": (("nodes", "--cluster", "ml-cluster"),),
    "space": (("doctor",),),
    "doctor": (("doctor",),),
    "events": (("events", "--cluster", "research-eks"), ("events", "--cluster", "research-eks", "--event", "{event}")),
    "logs": (("node-logs", "--cluster", "ml-cluster"), ("node-logs", "ip-10-0-0-5", "--cluster", "ml-cluster")),
    "metrics": (
        ("metrics", "--cluster", "research-eks"),
        ("metrics", "--cluster", "research-eks", "--by-node"),
        ("metrics", "--cluster", "research-eks", "--node", "{eks_node}"),
    ),
    "prometheus": (("metrics", "--cluster", "observed-eks"),),
    "storage": (("storage",),),
    "governance": (("quotas", "--cluster", "research-eks"),),
    "mlflow": (("mlflow", "servers"), *mlflow_run("{tracking_server}")),
    "mlflow-app": mlflow_run("{mlflow_app}"),
    "prices": (SUBMIT,),
    "node-actions": (
        ("node", "reboot", "ip-10-0-0-2", "--cluster", "ml-cluster", "--yes"),
        ("node", "replace", "ip-10-0-0-3", "--cluster", "ml-cluster", "--yes"),
    ),
    "terminal": (("terminal", "ip-10-0-0-2", "--cluster", "ml-cluster", "--open"),),
    "ssh": (("ssh-config", "--cluster", "ml-cluster"),),
    "login-nodes": (("ssh-config", "--cluster", "ml-cluster"),),
    "eks": (("nodes", "--cluster", "on-eks"), SUBMIT),
    "admin-plan": (
        ("admin", "plan", *WIRING, "--partition-mode", "per-user"),
        ("admin", "plan", *BY_CLUSTER, "--partition-mode", "per-user"),
    ),
    "admin-apply": (
        ("admin", "apply", *WIRING, *PER_USER, "--yes"),
        ("admin", "plan", *BY_CLUSTER, "--partition-mode", "per-user"),
        ("admin", "destroy", *WIRING, "--yes"),
    ),
    "admin-lifecycle": (
        ("admin", "apply", *WIRING, *LIFECYCLE, "--yes"),
        ("admin", "plan", *WIRING, *LIFECYCLE),
        ("admin", "plan", *BY_CLUSTER, *LIFECYCLE),
        ("admin", "destroy", *WIRING, "--yes"),
    ),
    "admin-facts": (("doctor", "--aws"),),
    "admin-cluster-validate": (("admin", "validate", SLURM, SECOND), ("admin", "validate", ON_EKS)),
    "admin-cluster-create": (("admin", "create-cluster", "--file", ON_EKS, "--yes", "--wait"),),
}
"""Command lines by feature, for the account of `testbed.aws.example` seen from a space of Studio; what stands in braces is of the account."""

ON_A_TERMINAL = frozenset({"terminal"})
"""Features whose commands need a terminal."""

PAGES: Mapping[str, tuple[str, ...]] = {
    "page": ("clusters/ml-cluster", "clusters/ml-cluster/nodes"),
    "admin-page": ("admin/rights", "admin/choices"),
}
"""Paths below the REST API by feature, for what has no command."""
