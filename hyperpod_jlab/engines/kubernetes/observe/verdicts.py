"""What a run's pods add to its object's state: why it waits, and why it ended. Pure.

The object of a failed job only says that some pod failed; whether it ran out of memory, was
evicted, or its own program failed is in the pods.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from hyperpod_jlab.core.quantities import format_size
from hyperpod_jlab.core.records import AttemptRecords, NodeRecord, Observation, RunRecords
from hyperpod_jlab.core.state import RESTARTS_USED_UP
from hyperpod_jlab.engines.kubernetes.kinds.kind import active_conditions
from hyperpod_jlab.engines.kubernetes.observe.pods import RunPod
from hyperpod_jlab.engines.kubernetes.waiting.messages import explain_reason
from hyperpod_jlab.engines.launch import EXIT_UNTRUSTED, UNTRUSTED, untrusted_reason
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.records import BundleReader

SETTLE_S = 15.0
"""Seconds after which pods that have all ended count although their object does not say so: its operator may be down."""

END_BY_REASON = {
    "Evicted": ("NODE_FAIL", "evicted"),
    "PreemptionByScheduler": ("PREEMPTED", "preempted"),
    "PreemptionByKubeScheduler": ("PREEMPTED", "preempted"),
    "Preempted": ("PREEMPTED", "preempted"),
    "Preempting": ("PREEMPTED", "preempted"),
    "DeletionByTaintManager": ("NODE_FAIL", "node_fail"),
    "DeletionByPodGC": ("NODE_FAIL", "node_fail"),
    "TerminationByKubelet": ("NODE_FAIL", "node_fail"),
    "EvictionByEvictionAPI": ("NODE_FAIL", "evicted"),
    "NodeLost": ("NODE_FAIL", "node_fail"),
    "NodeShutdown": ("NODE_FAIL", "node_fail"),
    "Terminated": ("NODE_FAIL", "node_fail"),
    "DeadlineExceeded": ("TIMEOUT", "timeout"),
}
"""Reasons of pods that the cluster terminated (k8s.io/api/core/v1, PodConditionType DisruptionTarget; kubelet), and our verdicts."""

_LOST_NODE_REASONS = frozenset({"DeletionByTaintManager", "NodeLost"})

NOT_STARTED_REASONS = frozenset({"StartError", "ContainerCannotRun", "CreateContainerError"})
"""Reasons of containers that ended before they started."""


def refine(observation: Observation, pods: Sequence[RunPod], nodes: int, *, retried: bool = False) -> Observation:
    """Refine a run's observation with its pods.

    Args:
        observation: The object's observation.
        pods: Its pods, ordered by rank.
        nodes: The expected number of pods.
        retried: Whether failed pods may be replaced some time later.
    """
    if observation.state == "ended":
        return _refine_ended(observation, pods)
    if observation.state == "waiting" and not pods:
        return observation
    all_ended = None if retried else _observe_all_ended(observation, pods, nodes)
    if all_ended is not None:
        return all_ended
    if retried:
        pods = [pod for pod in pods if not pod.is_ended]
    return _refine_waiting(observation, pods)


def _refine_waiting(observation: Observation, pods: Sequence[RunPod]) -> Observation:
    """Why some pods do not run; a run waits until one of its containers starts."""
    troubled = [pod for pod in pods if pod.problem is not None]
    if not troubled:
        return _refine_started(observation, pods)
    reason, message = troubled[0].problem or ("", "")
    pod_reason = explain_reason(reason, message)
    text = pod_reason.message
    if len(pods) > 1:
        count = len(troubled)
        text = f"{_name(troubled[0])}{f' and {count - 1} more' if count > 1 else ''}: {text}"
    has_started = any(pod.main.container_id for pod in pods)
    return observation.model_copy(
        update={"state": "running" if has_started else "waiting", "reason": text, "reason_code": pod_reason.code}
    )


def _refine_started(observation: Observation, pods: Sequence[RunPod]) -> Observation:
    """An observation without details for a run whose pods have started: a running TrainJob's object looks like a waiting one's (research)."""
    lacks_reason = observation.state == "waiting" and observation.reason_code is None
    has_started = any(pod.main.container_id and not pod.state.deleting for pod in pods)
    return observation.model_copy(update={"state": "running"}) if lacks_reason and has_started else observation


def _observe_all_ended(observation: Observation, pods: Sequence[RunPod], nodes: int) -> Observation | None:
    """The end that all pods agree on, though their object does not show it (yet); otherwise None."""
    newest = {pod.node_rank: pod for pod in pods}
    last = list(newest.values())
    if len(last) < nodes or not all(pod.is_ended and not pod.state.deleting for pod in last):
        return None
    end_times = [pod.main.exit.ended_at for pod in last if pod.main.exit and pod.main.exit.ended_at]
    if len(end_times) < len(last) or observation.time - max(end_times) < SETTLE_S:
        return None
    has_succeeded = all(pod.state.phase == "Succeeded" for pod in last)
    ended_observation = observation.model_copy(
        update={
            "time": max(end_times),
            "state": "ended",
            "verdict": "COMPLETED" if has_succeeded else "FAILED",
            "exit_code": 0 if has_succeeded else None,
            "reason": None,
            "reason_code": None,
        }
    )
    return _refine_ended(ended_observation, last)


def _refine_ended(observation: Observation, pods: Sequence[RunPod]) -> Observation:
    if observation.verdict != "FAILED":
        return observation
    for pod in pods:
        cluster_end = _cluster_end(pod)
        if cluster_end is not None:
            return observation.model_copy(update=cluster_end)
    for pod in pods:
        cluster_end = _out_of_memory_end(pod)
        if cluster_end is not None:
            return observation.model_copy(update=cluster_end)
    return observation.model_copy(update=_own_end(pods))


def _cluster_end(pod: RunPod) -> dict[str, Any] | None:
    """The verdict on a pod that the cluster terminated."""
    if pod.termination is None:
        return None
    reason, message = pod.termination
    pod_reason = explain_reason(reason, message)
    verdict, code = END_BY_REASON.get(reason, ("FAILED", pod_reason.code))
    return {"verdict": verdict, "reason": f"{_name(pod)}: {pod_reason.message}", "reason_code": code}


def _out_of_memory_end(pod: RunPod) -> dict[str, Any] | None:
    end = pod.main.exit or pod.main.previous
    if end is None or end.reason != "OOMKilled":
        return None
    limit = f" (limit {_size(pod.memory)})" if pod.memory else ""
    return {
        "verdict": "OOM",
        "exit_code": end.code,
        "reason": f"{_name(pod)}: {explain_reason('OOMKilled', '').message}{limit}",
        "reason_code": "out_of_memory",
    }


def _size(memory: str) -> str:
    """A memory size as text."""
    return format_size(int(memory)) if memory.isdecimal() else memory


def _own_end(pods: Sequence[RunPod]) -> dict[str, Any]:
    """The first container that ended with an error, and the cause if it never started."""
    failed = [pod for pod in pods if pod.main.exit is not None and pod.main.exit.code]
    if not failed:
        return {}
    first = min(failed, key=lambda pod: (pod.main.exit.ended_at if pod.main.exit else None) or 0.0)
    end = first.main.exit
    if end is not None and end.reason in NOT_STARTED_REASONS:
        reason = explain_reason(end.reason, end.message or "")
        return {"reason": f"{_name(first)}: {reason.message}", "reason_code": reason.code}
    return {"exit_code": end.code if end is not None else None}


def between_attempts_observation(
    observation: Observation, pods: Sequence[RunPod], launchers: Observation
) -> Observation:
    """The observation of a run whose job runs while its launchers wait for a lost or replaced node.

    Args:
        observation: The observation from the job and its pods.
        pods: Its pods.
        launchers: The launchers' observation: the next attempt waits.
    """
    reason, code = observation.reason, observation.reason_code
    if reason is None:
        reason, code = _find_lost_node(pods) or launchers.reason, launchers.reason_code
    return observation.model_copy(
        update={"state": "waiting", "attempt": launchers.attempt, "reason": reason, "reason_code": code}
    )


def _find_lost_node(pods: Sequence[RunPod]) -> str | None:
    """The pod still assigned to a node that does not answer: it is replaced only when the node returns or is deleted."""
    for pod in pods:
        is_lost = pod.termination is not None and pod.termination[0] in _LOST_NODE_REASONS
        if is_lost and pod.state.deleting and not pod.is_ended:
            return f"{_name(pod)}: its node does not respond; its pod is recreated when the node is back or an administrator removes it from the cluster"
    return None


def interrupted_end(pods: Sequence[RunPod]) -> tuple[str, str | None]:
    """Why an attempt ended whose job waits again: a verdict and the cause, as far as existing pods show it."""
    for pod in pods:
        cluster_end = _cluster_end(pod)
        if cluster_end is not None and cluster_end["verdict"] in {"PREEMPTED", "NODE_FAIL"}:
            return cluster_end["verdict"], cluster_end["reason"]
    return "REQUEUED", None


def _name(pod: RunPod) -> str:
    """The pod as text: its rank and its node."""
    pod_text = f"node {pod.node_rank}" if pod.node_rank is not None else pod.name
    return f"{pod_text} ({pod.state.node})" if pod.state.node else pod_text


# --------------------------------------------------------------------------------------------------
# Why a run failed, from its records, when no pod shows it: its launchers never started, or a pod
# was terminated from outside.

POD_ENDED = "pod_ended"
"""The reason code of a run with a terminated pod."""

_EXIT_NOT_FOUND = frozenset({126, 127})
"""Exit codes of a shell that cannot find or execute a program (POSIX, Shell Command Language 2.8.2)."""
_NO_PYTHON = "the image does not have this Python: set --python to one that it has, or use another image"

_NODE = re.compile(r"node-[0-9]+\.json")
_MAX_FILES = 1000
"""Maximum number of names to list and files to read."""
_MAX_BYTES = 1 << 20


def explain_end(observation: Observation, bundle: BundleReader, records: RunRecords) -> Observation:
    """The observation of a failed job, with the cause. Blocking."""
    if observation.verdict != "FAILED" or observation.reason_code is not None:
        return observation
    if records.attempts:
        node = _find_stopped_node(records.attempts[-1])
        cancelled = any(action.action == "cancel" for action in records.actions)
        if node is None or cancelled:
            return observation
        message = f"node {node.node_rank} ({node.node}): its pod was deleted or evicted"
        return observation.model_copy(update={"verdict": "NODE_FAIL", "reason": message, "reason_code": POD_ENDED})
    launch_error = find_launch_error(bundle)
    if launch_error is not None:
        reason, code = launch_error
        return observation.model_copy(update={"reason": reason, "reason_code": code})
    if observation.exit_code == EXIT_UNTRUSTED:
        reason = untrusted_reason(bundle.run_id)
        return observation.model_copy(update={"reason": reason, "reason_code": UNTRUSTED})
    if observation.exit_code in _EXIT_NOT_FOUND:
        return observation.model_copy(update={"reason": _NO_PYTHON, "reason_code": "no_program"})
    return observation


def retries_exhausted(observation: Observation, job: Mapping[str, Any], records: RunRecords) -> Observation:
    """The observation of a user's own Job that failed because its containers failed too often.

    With ``restartPolicy: OnFailure`` the Job gives up while the container after the last failure
    already runs, and terminates it (observed on 1.34). That container has no exit code, so the run
    gets that of the last one that ended by itself.

    Args:
        observation: The observation from the Job and its pods.
        job: The Job.
        records: The run's records.
    """
    failed = active_conditions(job).get("Failed") or {}
    if observation.verdict != "FAILED" or failed.get("reason") != "BackoffLimitExceeded":
        return observation
    codes = [node.exit_code for attempt in reversed(records.attempts) for node in attempt.nodes if node.exit_code]
    code = observation.exit_code or next(iter(codes), None)
    last = f": the last one that ended by itself had exit code {code}" if code else ""
    return observation.model_copy(
        update={
            "exit_code": code,
            "reason": f"its containers failed more often than the backoffLimit of the Job allows{last}",
            "reason_code": RESTARTS_USED_UP,
        }
    )


def _find_stopped_node(attempt: AttemptRecords) -> NodeRecord | None:
    """The node that was terminated, if none of the attempt failed by itself."""
    if any(node.exit_code and node.stopped_by is None for node in attempt.nodes):
        return None
    stopped_nodes = [node for node in attempt.nodes if node.stopped_by in {"SIGTERM", "SIGINT"}]
    return min(stopped_nodes, key=lambda node: node.ended_at or 0.0, default=None)


def find_launch_error(bundle: BundleReader) -> tuple[str, str | None] | None:
    """A launcher's error from before any attempt. Blocking."""
    for path in _files(bundle.records / "status" / "unstarted", _NODE):
        try:
            error = from_json(descent.read(path, _MAX_BYTES))["error"]
            return str(error["message"]), str(error["code"]) if error.get("code") else None
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return None


def _files(folder: Path, names: re.Pattern[str]) -> list[Path]:
    """The files of a folder with matching names, in order."""
    try:
        file_names = descent.list_names(folder, _MAX_FILES)
    except OSError:
        return []
    return [folder / name for name in sorted(filter(names.fullmatch, file_names))]
