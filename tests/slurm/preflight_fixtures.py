"""Clusters that are asked about specs: from this machine, and by a user of a login node."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hyperpod_jlab.storage.partition import Partition
from tests.slurm.asked import Asked, folder_of
from tests.slurm.cluster import SlurmTestbed


@pytest.fixture
def here(slurm_cluster: SlurmTestbed) -> Asked:
    """Asked from this machine."""
    return Asked(slurm_cluster, Partition(folder_of(slurm_cluster, "preflight")))


@pytest.fixture
def login(slurm_cluster: SlurmTestbed) -> Callable[..., Asked]:
    """Asked by a user of a login node: ``login("alice")``."""

    def make(user: str, folder: str = "preflight-ssh", *, shared: bool = False, mode: int = 0o755) -> Asked:
        partition = Partition(folder_of(slurm_cluster, f"{folder}-{shared}", mode), shared=shared)
        return Asked(
            slurm_cluster,
            partition,
            transport="ssh",
            login_nodes=[f"{user}@login1"],
            ssh_config=str(slurm_cluster.ssh_config),
        )

    return make
