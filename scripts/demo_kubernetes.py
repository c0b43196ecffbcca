"""The Kubernetes of `make demo ARGS=--hyperpod`: a HyperPod cluster on EKS with a real Kubernetes behind, and who may do what in it.

The user is who the examples for administrators make one (`examples/kubernetes/`), by an access entry for Studio's role.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from testbed.aws.attached import BedError, order  # noqa: E402 - the testbed is no package that is installed
from testbed.aws.control_plane import AccessEntry  # noqa: E402
from testbed.aws.kubernetes_bed import SCRIPT, kubernetes_bed, pinned_image  # noqa: E402

CLUSTER, EKS = "ml-eks", "ml"
NODES = 2
NAMESPACE = "hyperpod-ns-team-a"
"""Where the user's runs are; the examples' group is called so too."""

ENTRY = AccessEntry((NAMESPACE,))
CLAIM = "fsx"
BUILD = "testbed/kubernetes-testbed.sh build"
"""What makes it, once."""

_EXAMPLES = ROOT / "examples" / "kubernetes"
_BEYOND = ("checks", "ports")
"""Roles of role-options.yaml that the user has, besides that of the whole cluster."""


def is_built() -> bool:
    """Whether it can be started at once."""
    try:
        order(SCRIPT, Path(), "built")
    except BedError:
        return False
    return True


@contextmanager
def kubernetes(folder: Path, partition: Path) -> Iterator[Path]:
    """Start it, with the user's namespace, claim and rights.

    Args:
        folder: Where it lies.
        partition: What the claim is of.

    Raises:
        BedError: It does not start.
    """
    options = ("--gpus", "8", "--training-operator", "--partition", str(partition))
    with kubernetes_bed(folder, *options, nodes=NODES) as bed:
        here = ("--namespace", NAMESPACE)
        order(SCRIPT, bed, "kubectl", "create", "namespace", NAMESPACE)
        for file in ("role.yaml", "role-options.yaml"):
            order(SCRIPT, bed, "kubectl", *here, "apply", "-f", str(_EXAMPLES / file))
        group = f"--group={NAMESPACE}"
        for name in _BEYOND:
            role = f"hyperpod-jlab-{name}"
            order(SCRIPT, bed, "kubectl", *here, "create", "rolebinding", role, f"--role={role}", group)
        everywhere = "hyperpod-jlab-cluster"
        words = ("create", "clusterrolebinding", everywhere, f"--clusterrole={everywhere}", group)
        order(SCRIPT, bed, "kubectl", *words)
        order(SCRIPT, bed, "claim", NAMESPACE, CLAIM)
        yield bed


def configuration(bed: Path, mount: str, sub_path: str) -> list[str]:
    """Its lines in the configuration; pods have the partition at `mount`, which is this folder of the claim (nothing: all of it)."""
    return [
        f"[clusters.{CLUSTER}]",
        'orchestrator = "kubernetes"',
        f'hyperpod = "{CLUSTER}"',
        f'eks = "{EKS}"',
        f'namespace = "{NAMESPACE}"',
        f'image = "{pinned_image(bed)}"',
        f'storage = {{ claim = "{CLAIM}", mount = "{mount}", sub_path = "{sub_path}" }}',
    ]
