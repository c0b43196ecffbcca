"""Words that the kinds' observations have in common. Status objects are read tolerantly: what is unknown, or no object at all, says nothing."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from hyperpod_jlab.model.records import Observation
from hyperpod_jlab.orchestrators.kubernetes.kinds.failures import failure_words
from hyperpod_jlab.orchestrators.kubernetes.kinds.names import HELD_ANNOTATION

OBSERVER = "kubernetes"

_LONGEST = 600


def status_of(job: Mapping[str, Any]) -> Mapping[str, Any]:
    """The status of an object; empty while its operator has not seen it."""
    found = job.get("status")
    return found if isinstance(found, Mapping) else {}


def true_conditions(job: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The conditions that hold, by type, in the object's order."""
    found = status_of(job).get("conditions")
    return {
        str(one.get("type")): one
        for one in (found if isinstance(found, list) else [])
        if isinstance(one, Mapping) and one.get("status") == "True"
    }


def running(job: Mapping[str, Any], now: float, reason: str | None = None) -> Observation:
    """It runs."""
    return Observation(
        time=now, observer=OBSERVER, scheduler_id=_name(job), state="running", reason=reason
    )


def waiting(
    job: Mapping[str, Any], now: float, reason: str | None = None, code: str | None = None
) -> Observation:
    """It waits."""
    return Observation(
        time=now,
        observer=OBSERVER,
        scheduler_id=_name(job),
        state="waiting",
        reason=reason,
        reason_code=code,
    )


def suspended(job: Mapping[str, Any], now: float) -> Observation:
    """It is held, by somebody or by its queue: the object does not tell which (research: only Kueue's Workload does), but for what was held from here."""
    if HELD_ANNOTATION in ((job.get("metadata") or {}).get("annotations") or {}):
        return waiting(job, now, "it is held", "held")
    return waiting(job, now, "it is suspended, or waits in its queue", "suspended")


def succeeded(job: Mapping[str, Any], condition: Mapping[str, Any], now: float) -> Observation:
    """It has ended well."""
    return _ended(job, condition, now, "COMPLETED", None)


def failed(job: Mapping[str, Any], condition: Mapping[str, Any], now: float) -> Observation:
    """It has ended badly: why, in words, with what the operator said."""
    deadline = condition.get("reason") == "DeadlineExceeded"
    message = " ".join(str(condition.get("message") or "").split())[:_LONGEST]
    words = "it reached its time limit" if deadline else failure_words(message)
    seen = _ended(job, condition, now, "TIMEOUT" if deadline else "FAILED", words)
    return seen.model_copy(update={"detail": message or None})


def _ended(
    job: Mapping[str, Any],
    condition: Mapping[str, Any],
    now: float,
    verdict: str,
    reason: str | None,
) -> Observation:
    text = status_of(job).get("completionTime") or condition.get("lastTransitionTime")
    return Observation(
        time=min(now, unix_time(text, now)),
        observer=OBSERVER,
        scheduler_id=_name(job),
        state="ended",
        verdict=verdict,
        exit_code=0 if verdict == "COMPLETED" else None,
        reason=reason,
    )


def unix_time(text: object, otherwise: float) -> float:
    """A time as Kubernetes writes it (RFC 3339) in Unix seconds."""
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except (ValueError, OverflowError, OSError):
        return otherwise


def whole(value: object) -> int:
    """A number in a status; 0 when it is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _name(job: Mapping[str, Any]) -> str:
    return str(job["metadata"]["name"])
