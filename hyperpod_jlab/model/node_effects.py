"""What an action on a node does to it and to what runs there, in sentences: what a user is told before it is done.

How long a repair takes is from AWS' field guide (awsome-distributed-ai, hyperpod-mental-model), the loss of disks from SageMaker's API model.
"""

from __future__ import annotations

from collections.abc import Sequence

from hyperpod_jlab.model.cluster import Job, Node
from hyperpod_jlab.model.node_actions import NodeActionKind

_ALL: dict[NodeActionKind, tuple[str, ...]] = {
    "reboot": (
        "whatever runs on the nodes ends; instance ids and disks stay; it usually takes 1 to 3 minutes",
    ),
    "replace": (
        "whatever runs on the nodes ends; each gets other hardware and a new instance id; it usually takes 20 to 30 minutes",
        "what lies on the nodes' own disks is lost for good; what lies on FSx stays",
    ),
    "drain": ("no new job starts on the nodes; jobs that run there go on to their end",),
    "resume": ("new jobs may start on the nodes again",),
}

_ROLES = {
    "Controller": "it is Slurm's controller: until it is back nobody can submit, and jobs that run go on",
    "Login": "it is a login node: whoever is logged in there is thrown out",
}

_AFTERWARDS = {
    "slurm": "Slurm puts it back into the queue, unless it was sent with --no-requeue, and it begins anew",
    "kubernetes": "its pods there end, and its operator makes them anew where it restarts such pods",
}


def effects_of(action: NodeActionKind) -> tuple[str, ...]:
    """What it does to all nodes."""
    return _ALL[action]


def effects_on(
    action: NodeActionKind,
    *,
    orchestrator: str | None,
    role: str | None = None,
    node: Node | None = None,
    jobs: Sequence[Job] | None = None,
) -> tuple[str, ...]:
    """What it does to one node and its jobs.

    Args:
        action: What is done.
        orchestrator: ``slurm`` or ``kubernetes``; None where that is not known.
        role: What its instance group is to Slurm, such as ``Controller``.
        node: What the scheduler knows of it.
        jobs: The jobs that run on it; None where that is not known.
    """
    if action == "resume":
        ordered = node is not None and (node.reason or "").startswith("Action:")
        return ("HyperPod was told to repair it, and may have to be told again",) if ordered else ()
    found = [_ROLES[role]] if action in {"reboot", "replace"} and role in _ROLES else []
    if jobs is None:
        return tuple(found)
    if not jobs:
        return (*found, "no job runs on it")
    return (*found, *(_on_job(action, orchestrator, job) for job in jobs))


def _on_job(action: NodeActionKind, orchestrator: str | None, job: Job) -> str:
    whose = f"job {job.scheduler_id} ({job.name}, of {job.user}"
    named = f"{whose}, run {job.run_id})" if job.run_id else f"{whose})"
    if action == "drain":
        return f"{named} goes on"
    after = _AFTERWARDS.get(orchestrator or "")
    return f"{named} ends: {after}" if after else f"{named} ends"
