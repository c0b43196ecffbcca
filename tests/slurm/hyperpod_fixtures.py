"""The services over a real Slurm cluster, by either transport, with the partition at another place on the nodes than here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hyperpod_jlab.core.config import Settings
from hyperpod_jlab.core.run import Run
from hyperpod_jlab.core.validation import parse
from hyperpod_jlab.engines.slurm.login_nodes import current_user_key, rotate_hosts
from hyperpod_jlab.run.services import Hyperpod
from tests.session import Session
from tests.slurm.cluster import SlurmTestbed

CLUSTER = "slurm"


def first_first(hosts: Sequence[str]) -> list[str]:
    """The hosts in the order of a configuration by which this user's login node is the first of them."""
    turned = ([*hosts[at:], *hosts[:at]] for at in range(len(hosts)))
    return next(one for one in turned if rotate_hosts(one, current_user_key())[0] == hosts[0])


def settings_for(cluster: SlurmTestbed, transport: str = "here", **more: Any) -> Settings:
    """The configuration of a user of the cluster."""
    way: dict[str, Any] = {"commands": str(cluster.folder / "bin")}
    if transport == "here":
        way["slurm_conf"] = cluster.environment["SLURM_CONF"]
    else:
        way = {"login_nodes": first_first(cluster.login_hosts), "ssh_config": str(cluster.ssh_config)}
    slurm = {
        "orchestrator": "slurm",
        "transport": transport,
        "storage": str(cluster.partition_on_nodes),
        "python": cluster.python_on_nodes,
        **way,
        **more,
    }
    data = {"default_cluster": CLUSTER, "storage": {"path": str(cluster.partition)}, "clusters": {CLUSTER: slurm}}
    return parse(Settings, data)


def make_hyperpod(cluster: SlurmTestbed, transport: str = "here", **more: Any) -> Hyperpod:
    """The services of a user of the cluster."""
    return Hyperpod(settings_for(cluster, transport, **more))


class SlurmSession(Session):
    """The services of one user of a cluster.

    Args:
        cluster: The cluster.
        hyperpod: The services.
        folder: Where sources are looked for.
    """

    def __init__(self, cluster: SlurmTestbed, hyperpod: Hyperpod, folder: Path) -> None:
        super().__init__(hyperpod, folder)
        self.cluster = cluster

    def job_of(self, run: Run) -> str:
        """A run's job id."""
        assert run.scheduler_id is not None
        return run.scheduler_id
