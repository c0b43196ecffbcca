"""The whole examination, in the order in which things build on each other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from hyperpod_jlab.model.check import Check, Step
from hyperpod_jlab.model.config import LOCAL
from hyperpod_jlab.services.doctor.at_aws import AtAws
from hyperpod_jlab.services.doctor.chain import Begun, Chain
from hyperpod_jlab.services.doctor.clusters import cluster_steps
from hyperpod_jlab.services.doctor.installation import first_steps, local_steps
from hyperpod_jlab.services.doctor.job import job_steps
from hyperpod_jlab.services.doctor.lifecycle import lifecycle_steps
from hyperpod_jlab.services.doctor.mounts import MountLooks
from hyperpod_jlab.services.doctor.network import NetworkLooks
from hyperpod_jlab.services.doctor.opened import Opened
from hyperpod_jlab.services.doctor.partition import partition_steps
from hyperpod_jlab.services.doctor.rights import rights_steps
from hyperpod_jlab.services.doctor.run_as import run_as_steps
from hyperpod_jlab.services.doctor.studio import StudioLooks
from hyperpod_jlab.services.doctor.subnets import SubnetLooks


@dataclass(frozen=True)
class Asked:
    """What is to be examined.

    Attributes:
        cluster: Only the way to this cluster of the configuration; None: all.
        job: Whether a tiny job is sent at the end, to that cluster or the default one.
    """

    cluster: str | None = None
    job: bool = False


async def examine(asked: Asked | None = None, begun: Begun | None = None) -> AsyncIterator[Check]:
    """All checks, each as soon as it is there. What stands on something that failed could not be checked, and says so.

    Args:
        asked: What is to be examined; default: all, without a job.
        begun: Told of each step that begins, so that somebody who waits can be shown for what.

    Raises:
        InvalidInputError: There is no cluster of that name.
    """
    wanted = asked or Asked()
    opened, chain = Opened(), Chain(begun)
    try:
        async for check in chain.walk(first_steps(opened)):
            yield check
        if wanted.cluster is not None and opened.is_open:
            opened.hyperpod.engines.get(wanted.cluster)
        async for check in chain.walk(_steps(opened, wanted)):
            yield check
        if wanted.job:
            steps = job_steps(opened, wanted.cluster)
            chain.give(sum(step.seconds for step in steps))
            async for check in chain.walk(steps):
                yield check
    finally:
        await opened.close()


def _steps(opened: Opened, wanted: Asked) -> list[Step]:
    """All but the first ones and the job."""
    only = wanted.cluster
    at_aws = AtAws(opened, only)
    network = NetworkLooks(at_aws)
    return [
        *(local_steps(opened) if only in {None, LOCAL} else ()),
        *lifecycle_steps(),
        *StudioLooks(at_aws).steps(),
        *rights_steps(at_aws),
        *run_as_steps(at_aws),
        *network.steps(),
        *SubnetLooks(at_aws, network).steps(),
        *MountLooks(opened, at_aws).steps(),
        *partition_steps(opened),
        *cluster_steps(opened, only),
    ]
