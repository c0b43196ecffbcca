"""The transport that a cluster's configuration asks for."""

from __future__ import annotations

from hyperpod_jlab.model.config import SlurmCluster
from hyperpod_jlab.orchestrators.slurm.transports.found_nodes import FoundNodes
from hyperpod_jlab.orchestrators.slurm.transports.here import Here
from hyperpod_jlab.orchestrators.slurm.transports.protocol import Transport
from hyperpod_jlab.orchestrators.slurm.transports.sharing import person_here
from hyperpod_jlab.orchestrators.slurm.transports.ssh import Ssh


def transport_of(config: SlurmCluster) -> Transport:
    """The way to the cluster's commands.

    Raises:
        InvalidInputError: There is no login node, or one of another form.
    """
    if config.transport == "ssh":
        return Ssh(
            config.login_nodes,
            found=FoundNodes(config.hyperpod) if config.hyperpod is not None else None,
            person=person_here(),
            user=config.user,
            config=config.ssh_config,
            commands=config.commands,
            slurm_conf=config.slurm_conf,
        )
    return Here(config.commands, config.slurm_conf)
