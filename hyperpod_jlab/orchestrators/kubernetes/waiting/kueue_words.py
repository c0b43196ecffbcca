"""Why a workload waits in Kueue, in words (0.14's sentences, as they were seen and as they stand in its sources)."""

from __future__ import annotations

import re

from hyperpod_jlab.orchestrators.kubernetes.tables.kueue import WorkloadRow
from hyperpod_jlab.orchestrators.kubernetes.waiting.events import Told

_NEVER = re.compile(
    r"insufficient quota for (?P<resource>\S+) in flavor (?P<flavor>\S+?), (?:previously considered podsets requests \S+ \+ current podset request|request) > maximum capacity \((?P<wanted>.+?) > (?P<most>\S+?)\)"
)
_UNUSED = re.compile(
    r"insufficient unused quota for (?P<resource>\S+) in flavor (?P<flavor>\S+?), (?P<more>\S+) more needed"
)

_RULES: tuple[tuple[re.Pattern[str], str, str], ...] = (
    (
        _NEVER,
        "never_fits",
        "it asks for more than its queue can ever give: {wanted} {resource}, and at most {most} can be had (flavor {flavor}); it waits for ever: ask for less, or use another queue",
    ),
    (
        _UNUSED,
        "quota",
        "its queue's quota is used up: {more} more {resource} must become free (flavor {flavor})",
    ),
    (
        re.compile(r"LocalQueue (?P<name>\S+) doesn't exist"),
        "unknown_queue",
        "the queue {name} does not exist in the namespace, so it waits for ever: cancel it and name another one; see: hpj queues",
    ),
    (
        re.compile(r"ClusterQueue (?P<name>\S+) (?:is inactive|doesn't exist)"),
        "queue_stopped",
        "its queue starts nothing now: the cluster queue {name} is stopped or incomplete; see: hpj queues",
    ),
    (
        re.compile(r"LocalQueue (?P<name>\S+) is (?:inactive|stopped)"),
        "queue_stopped",
        "its queue {name} is stopped; see: hpj queues",
    ),
    (
        re.compile(r"namespace doesn't match ClusterQueue selector"),
        "queue_not_allowed",
        "its namespace may not use this queue's quota: use another queue, or ask the cluster's admin",
    ),
    (
        re.compile(r"resource (?P<resource>\S+) unavailable in ClusterQueue"),
        "never_fits",
        "its queue has no quota for {resource}, so it waits for ever: use another queue, or ask for none",
    ),
    (
        re.compile(r"flavor (?P<flavor>\S+) doesn't match (?:with )?node affinity"),
        "flavor",
        "the nodes of its queue (flavor {flavor}) have not the labels that it asks for",
    ),
    (
        re.compile(r"untolerated taint (?P<taint>.+?) in flavor (?P<flavor>\S+)"),
        "flavor",
        "the nodes of its queue (flavor {flavor}) have the taint {taint}, which it does not tolerate",
    ),
    (
        re.compile(r"[Pp]ending the preemption of (?P<count>\d+) workload"),
        "preempting",
        "it starts as soon as {count} others with a lower priority have given their place up",
    ),
    (
        re.compile(
            r"topology \"(?P<topology>[^\"]+)\" .*?fit.*?(?P<pods>\d+) (?:of|out of)? ?(?:the )?(?P<all>\d*)"
        ),
        "topology",
        "its pods do not fit next to each other as asked for (topology {topology}); wait, or ask for it as a preference only",
    ),
    (
        re.compile(r"AdmissionGated|admission check", re.IGNORECASE),
        "admission_check",
        "it has its quota, and waits for a check of the cluster before it starts",
    ),
)

_EVICTED = {
    "Preempted": "a workload with a higher priority, or with an older claim on the quota, took its place",
    "PodsReadyTimeout": "its pods did not all start in time",
    "ClusterQueueStopped": "its cluster queue was stopped",
    "LocalQueueStopped": "its queue was stopped",
    "NodeFailures": "a node failed",
    "AdmissionCheck": "a check of the cluster took its admission back",
}


def workload_words(workload: WorkloadRow) -> Told:
    """Why a workload waits."""
    if workload.state == "off":
        return Told(
            "held",
            "it is held back in Kueue (its workload is not active); release it to let it start",
        )
    message = workload.message or ""
    again = _EVICTED.get(workload.evicted[0]) if workload.evicted else None
    for pattern, code, words in _RULES:
        found = pattern.search(message)
        if found is not None:
            said = words.format(**{name: text or "" for name, text in found.groupdict().items()})
            return Told(code, f"{said} (before, {again})" if again else said)
    if again is not None:
        return Told("preempted", f"it waits to start again: {again}")
    if not message:
        return Told("queued", "it waits for its turn in its queue")
    return Told(workload.reason or "queued", f"Kueue says: {message[:400]}")
