"""The whole examination, in the order in which things build on each other."""

from __future__ import annotations

from collections.abc import AsyncIterator

from hyperpod_jlab.model.check import Check
from hyperpod_jlab.services.doctor.at_aws import AtAws
from hyperpod_jlab.services.doctor.chain import Begun, Chain
from hyperpod_jlab.services.doctor.clusters import cluster_steps
from hyperpod_jlab.services.doctor.installation import first_steps, local_steps
from hyperpod_jlab.services.doctor.mounts import MountLooks
from hyperpod_jlab.services.doctor.network import NetworkLooks
from hyperpod_jlab.services.doctor.opened import Opened
from hyperpod_jlab.services.doctor.partition import partition_steps
from hyperpod_jlab.services.doctor.rights import rights_steps
from hyperpod_jlab.services.doctor.studio import StudioLooks


async def examine(begun: Begun | None = None) -> AsyncIterator[Check]:
    """All checks, each as soon as it is there. What stands on something that failed could not be checked, and says so.

    Args:
        begun: Told of each step that begins, so that somebody who waits can be shown for what.
    """
    opened, chain = Opened(), Chain(begun)
    try:
        async for check in chain.walk(first_steps(opened)):
            yield check
        at_aws = AtAws(opened)
        steps = [
            *local_steps(opened),
            *StudioLooks(at_aws).steps(),
            *rights_steps(at_aws),
            *NetworkLooks(at_aws).steps(),
            *MountLooks(opened, at_aws).steps(),
            *partition_steps(opened),
            *cluster_steps(opened),
        ]
        async for check in chain.walk(steps):
            yield check
    finally:
        await opened.close()
