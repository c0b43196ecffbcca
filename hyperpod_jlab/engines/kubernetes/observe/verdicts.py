"""What pods say of a run beyond what its object says: why it waits, and why it ended. Pure.

The object of a job that has failed only says that some pod did; whether that was out of memory, put off its node, or ended by its own program stands in the pods.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from hyperpod_jlab.core.quantities import format_size
from hyperpod_jlab.core.records import AttemptRecords, NodeRecord, Observation, RunRecords
from hyperpod_jlab.core.state import RESTARTS_USED_UP
from hyperpod_jlab.engines.kubernetes.kinds.kind import true_conditions
from hyperpod_jlab.engines.kubernetes.observe.pods import RunPod
from hyperpod_jlab.engines.kubernetes.waiting.messages import told
from hyperpod_jlab.engines.launch import EXIT_UNTRUSTED, UNTRUSTED, refusal
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.records import BundleReader

SETTLES = 15.0
"""Seconds after which pods that have all ended count, though their object does not say so: its operator may be down."""

BY_CLUSTER = {
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
"""Reasons of pods that the cluster ended (k8s.io/api/core/v1, PodConditionType DisruptionTarget; kubelet), and our verdicts."""

_LOST_NODE = frozenset({"DeletionByTaintManager", "NodeLost"})

NOT_STARTED = frozenset({"StartError", "ContainerCannotRun", "CreateContainerError"})
"""Reasons of containers that ended before they began."""


def refined(
    word: Observation, pods: Sequence[RunPod], nodes: int, *, retried: bool = False
) -> Observation:
    """The word on a run, with what its pods say.

    Args:
        word: What its object says.
        pods: Its pods, in the order of their ranks.
        nodes: How many it is to have.
        retried: Whether others may come in place of pods that have failed, some time later.
    """
    if word.state == "ended":
        return _ended(word, pods)
    if word.state == "waiting" and not pods:
        return word
    over = None if retried else _all_over(word, pods, nodes)
    if over is not None:
        return over
    if retried:
        pods = [pod for pod in pods if not pod.ended]
    return _waiting(word, pods)


def _waiting(word: Observation, pods: Sequence[RunPod]) -> Observation:
    """Why pods do not run, where some do not; a run waits as long as none of its containers has begun."""
    troubled = [pod for pod in pods if pod.trouble is not None]
    if not troubled:
        return _begun(word, pods)
    reason, message = troubled[0].trouble or ("", "")
    found = told(reason, message)
    words = found.words
    if len(pods) > 1:
        count = len(troubled)
        words = f"{_name(troubled[0])}{f' and {count - 1} more' if count > 1 else ''}: {words}"
    begun = any(pod.main.container_id for pod in pods)
    return word.model_copy(
        update={
            "state": "running" if begun else "waiting",
            "reason": words,
            "reason_code": found.code,
        }
    )


def _begun(word: Observation, pods: Sequence[RunPod]) -> Observation:
    """A word that says nothing, of a run whose pods have begun: of a TrainJob that runs its object says no more than of one that waits (research)."""
    silent = word.state == "waiting" and word.reason_code is None
    begun = any(pod.main.container_id and not pod.state.deleting for pod in pods)
    return word.model_copy(update={"state": "running"}) if silent and begun else word


def _all_over(word: Observation, pods: Sequence[RunPod], nodes: int) -> Observation | None:
    """The end that all pods tell, though their object does not (yet); None when they do not."""
    newest = {pod.node_rank: pod for pod in pods}
    last = list(newest.values())
    if len(last) < nodes or not all(pod.ended and not pod.state.deleting for pod in last):
        return None
    ends = [pod.main.exit.at for pod in last if pod.main.exit and pod.main.exit.at]
    if len(ends) < len(last) or word.time - max(ends) < SETTLES:
        return None
    well = all(pod.state.phase == "Succeeded" for pod in last)
    ended = word.model_copy(
        update={
            "time": max(ends),
            "state": "ended",
            "verdict": "COMPLETED" if well else "FAILED",
            "exit_code": 0 if well else None,
            "reason": None,
            "reason_code": None,
        }
    )
    return _ended(ended, last)


def _ended(word: Observation, pods: Sequence[RunPod]) -> Observation:
    if word.verdict != "FAILED":
        return word
    for pod in pods:
        said = _by_cluster(pod)
        if said is not None:
            return word.model_copy(update=said)
    for pod in pods:
        said = _out_of_memory(pod)
        if said is not None:
            return word.model_copy(update=said)
    return word.model_copy(update=_by_itself(pods))


def _by_cluster(pod: RunPod) -> dict[str, Any] | None:
    """The verdict on a pod that the cluster ended."""
    if pod.ended_by is None:
        return None
    reason, message = pod.ended_by
    found = told(reason, message)
    verdict, code = BY_CLUSTER.get(reason, ("FAILED", found.code))
    return {
        "verdict": verdict,
        "reason": f"{_name(pod)}: {found.words}",
        "reason_code": code,
    }


def _out_of_memory(pod: RunPod) -> dict[str, Any] | None:
    end = pod.main.exit or pod.main.previous
    if end is None or end.reason != "OOMKilled":
        return None
    limit = f" (limit {_size(pod.memory)})" if pod.memory else ""
    return {
        "verdict": "OOM",
        "exit_code": end.code,
        "reason": f"{_name(pod)}: {told('OOMKilled', '').words}{limit}",
        "reason_code": "out_of_memory",
    }


def _size(memory: str) -> str:
    """An amount of memory for people."""
    return format_size(int(memory)) if memory.isdecimal() else memory


def _by_itself(pods: Sequence[RunPod]) -> dict[str, Any]:
    """The first container that ended with an error: with why, when it never began."""
    failed = [pod for pod in pods if pod.main.exit is not None and pod.main.exit.code]
    if not failed:
        return {}
    first = min(failed, key=lambda pod: (pod.main.exit.at if pod.main.exit else None) or 0.0)
    end = first.main.exit
    if end is not None and end.reason in NOT_STARTED:
        found = told(end.reason, end.message or "")
        return {"reason": f"{_name(first)}: {found.words}", "reason_code": found.code}
    return {"exit_code": end.code if end is not None else None}


def between_attempts(
    word: Observation, pods: Sequence[RunPod], launchers: Observation
) -> Observation:
    """The word on a run whose job runs, while its launchers wait for a node that was lost or has to come anew.

    Args:
        word: What the job and its pods say.
        pods: Its pods.
        launchers: What its launchers said: that the next attempt waits.
    """
    reason, code = word.reason, word.reason_code
    if reason is None:
        reason, code = _on_lost_node(pods) or launchers.reason, launchers.reason_code
    return word.model_copy(
        update={
            "state": "waiting",
            "attempt": launchers.attempt,
            "reason": reason,
            "reason_code": code,
        }
    )


def _on_lost_node(pods: Sequence[RunPod]) -> str | None:
    """Which pod is still counted on a node that does not answer: it comes anew only when the node is back or was removed."""
    for pod in pods:
        lost = pod.ended_by is not None and pod.ended_by[0] in _LOST_NODE
        if lost and pod.state.deleting and not pod.ended:
            return f"{_name(pod)}: its node does not respond; its pod is recreated when the node is back or an administrator removes it from the cluster"
    return None


def cut_short(pods: Sequence[RunPod]) -> tuple[str, str | None]:
    """Why an attempt ended whose job waits anew: a verdict, and why, as far as pods that are still there tell."""
    for pod in pods:
        said = _by_cluster(pod)
        if said is not None and said["verdict"] in {"PREEMPTED", "NODE_FAIL"}:
            return said["verdict"], said["reason"]
    return "REQUEUED", None


def _name(pod: RunPod) -> str:
    """The pod for people: which node of the run, and where that is."""
    which = f"node {pod.node_rank}" if pod.node_rank is not None else pod.name
    return f"{which} ({pod.state.node})" if pod.state.node else which


# --------------------------------------------------------------------------------------------------
# Why a run failed, as its records tell where no pod does: its launchers never began, or a pod was ended from outside.

POD_ENDED = "pod_ended"
"""The reason code of a run of which a pod was told to end."""

_NOT_FOUND = frozenset({126, 127})
"""Exit codes of a shell that cannot find or execute a program (POSIX, Shell Command Language 2.8.2)."""
_NO_PYTHON = (
    "the image does not have this Python: set --python to one that it has, or use another image"
)

_NODE = re.compile(r"node-[0-9]+\.json")
_LOG = re.compile(r".+\.log")
_MOST = 1000
"""Names that are looked at, and files that are read, at most."""
_LARGEST = 1 << 20
_LONGEST = 300
_TAIL = 1 << 16
"""Bytes at the end of a log in which its last words are looked for."""


def explained(word: Observation, bundle: BundleReader, records: RunRecords) -> Observation:
    """The word on a job that failed, with why. Blocking."""
    if word.verdict != "FAILED" or word.reason_code is not None:
        return word
    if records.attempts:
        node = _ended_from_outside(records.attempts[-1])
        cancelled = any(action.action == "cancel" for action in records.actions)
        if node is None or cancelled:
            return word
        words = f"node {node.node_rank} ({node.node}): its pod was deleted or evicted"
        return word.model_copy(
            update={"verdict": "NODE_FAIL", "reason": words, "reason_code": POD_ENDED}
        )
    said = unstarted(bundle)
    if said is not None:
        reason, code = said
        return word.model_copy(update={"reason": reason, "reason_code": code})
    if word.exit_code == EXIT_UNTRUSTED:
        reason = refusal(bundle.run_id)
        return word.model_copy(update={"reason": reason, "reason_code": UNTRUSTED})
    if word.exit_code in _NOT_FOUND:
        return word.model_copy(update={"reason": _NO_PYTHON, "reason_code": "no_program"})
    last = last_words(bundle)
    return word if last is None else word.model_copy(update={"reason": last})


def gave_up(word: Observation, job: Mapping[str, Any], records: RunRecords) -> Observation:
    """The word on a user's own Job that failed because its containers did so too often.

    With ``restartPolicy: OnFailure`` the Job gives up while the container after the last failure runs already, which it ends (seen on 1.34): of that one nobody
    knows an exit code, so the run has that of the last one that ended by itself.

    Args:
        word: What the Job and its pods say.
        job: The Job.
        records: The run's records.
    """
    failed = true_conditions(job).get("Failed") or {}
    if word.verdict != "FAILED" or failed.get("reason") != "BackoffLimitExceeded":
        return word
    codes = [
        node.exit_code
        for attempt in reversed(records.attempts)
        for node in attempt.nodes
        if node.exit_code
    ]
    code = word.exit_code or next(iter(codes), None)
    last = f": the last one that ended by itself had exit code {code}" if code else ""
    return word.model_copy(
        update={
            "exit_code": code,
            "reason": f"its containers failed more often than the backoffLimit of the Job allows{last}",
            "reason_code": RESTARTS_USED_UP,
        }
    )


def _ended_from_outside(attempt: AttemptRecords) -> NodeRecord | None:
    """The node that was told to end, when none of the attempt failed by itself."""
    if any(node.exit_code and node.stopped_by is None for node in attempt.nodes):
        return None
    told = [node for node in attempt.nodes if node.stopped_by in {"SIGTERM", "SIGINT"}]
    return min(told, key=lambda node: node.ended_at or 0.0, default=None)


def unstarted(bundle: BundleReader) -> tuple[str, str | None] | None:
    """What a launcher wrote down that came into no attempt. Blocking."""
    for path in _files(bundle.records / "status" / "unstarted", _NODE):
        try:
            error = from_json(descent.read(path, _LARGEST))["error"]
            return str(error["message"]), str(error["code"]) if error.get("code") else None
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return None


def last_words(bundle: BundleReader) -> str | None:
    """The last line that says something of what a pod printed beside its launcher's frames. Blocking."""
    for path in _files(bundle.records / "logs" / "pods", _LOG):
        try:
            with os.fdopen(descent.open_file(path), "rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
                text = file.read(_TAIL).decode("utf-8", "replace")
        except OSError:
            continue
        said = [line.strip() for line in text.splitlines() if line.strip()]
        if said:
            return said[-1].removeprefix("hyperpod: ")[:_LONGEST]
    return None


def _files(folder: Path, names: re.Pattern[str]) -> list[Path]:
    """The files of a folder whose names match, in order."""
    try:
        found = descent.list_names(folder, _MOST)
    except OSError:
        return []
    return [folder / name for name in sorted(filter(names.fullmatch, found))]
