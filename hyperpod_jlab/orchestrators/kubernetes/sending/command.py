"""The command of a run's pods: our launcher, one a pod."""

from __future__ import annotations

from typing import Any

from hyperpod_jlab.model.ranges import format_ranges, parse_array
from hyperpod_jlab.orchestrators.kubernetes.kinds.meeting import Meeting
from hyperpod_jlab.orchestrators.kubernetes.sending.code import UNPACK
from hyperpod_jlab.orchestrators.protocol import RenderInput
from hyperpod_jlab.orchestrators.seal import guarded

RESUMED_PATIENCE = 3600
"""Seconds for which the launchers of a run that HyperPod resumes wait for a node that was lost: another instance takes its place in 20 to 30 minutes, or longer."""


def pod_command(
    given: RenderInput,
    name: str,
    meeting: Meeting,
    *,
    unpack: bool = False,
    resumed: bool = False,
) -> list[str]:
    """The launcher with what the kind's environment says; ``$(NAME)`` is replaced by the kubelet.

    Args:
        given: The run.
        name: The object's name.
        meeting: What the launcher is told of its rank and its master.
        unpack: Whether the bundle has to be unpacked in the pod first.
        resumed: Whether HyperPod resumes the run.
    """
    bundle = given.paths.there / given.bundle
    if unpack:  # what travels in the job's own object lies on no storage that others may write to
        before = ["-I", "-c", UNPACK, str(bundle), str(bundle / "launcher.py")]
    else:
        before = guarded(given.seal.words(given.paths.there, given.bundle))
    return [
        literal(given.python or "python3"),
        *map(literal, before),
        "pod",
        *(_whereabouts(meeting) if given.spec.array is None else _task(given.spec.array)),
        f"--nodes={given.spec.resources.nodes}",
        f"--scheduler-id={name}",
        f"--max-restarts={given.spec.max_restarts}",
        "--node-name=$(HYPERPOD_NODE)",
        *_time_limit(given),
        *([f"--return-patience={RESUMED_PATIENCE}"] if resumed else []),
        *(["--frames", "--unshared"] if unpack else ["--quiet"]),
    ]


def _whereabouts(meeting: Meeting) -> list[str]:
    """The pod's rank and its master, unless a shell adds them."""
    if meeting.late:
        return []
    return [f"--node-rank={meeting.node_rank}", f"--master-addr={meeting.master_addr}"]


def _task(array: str) -> list[str]:
    """The pod's task, by its index; each is a run of one node."""
    indices = parse_array(array).indices
    words = ["--node-rank=0", "--master-addr=127.0.0.1", "--task=$(JOB_COMPLETION_INDEX)"]
    return words if indices[-1] < len(indices) else [*words, f"--tasks={format_ranges(indices)}"]


def _time_limit(given: RenderInput) -> list[str]:
    """The launcher keeps to it, from the start of the first attempt: the training operator does not (research: activeDeadlineSeconds is not enforced)."""
    limit = given.spec.time_limit or given.time_limit
    return [f"--time-limit={limit}"] if limit is not None else []


def pod_environment() -> list[dict[str, Any]]:
    """What the command needs beyond what the kind's operator sets."""
    return [{"name": "HYPERPOD_NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]


def literal(text: str) -> str:
    """Text in which the kubelet replaces nothing."""
    return text.replace("$", "$$")
