"""The objects of runs, as small rows: what their status says, without the pods' template, in which the code may travel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from hyperpod_jlab.model.records import Observation
from hyperpod_jlab.orchestrators.kubernetes.kinds.kind import Kind, labels_of
from hyperpod_jlab.orchestrators.kubernetes.kinds.names import RUN_LABEL
from hyperpod_jlab.orchestrators.kubernetes.kinds.registry import KINDS
from hyperpod_jlab.orchestrators.kubernetes.watching.array_tasks import Task

_DROPPED = frozenset(
    {"template", "managedFields", "podTemplateOverrides", "podSpecOverrides", "env"}
)


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job.

    Attributes:
        kind: Its kind.
        run_id: The run that its label names; "" without one.
        uid: Its own id.
        job: The object, without what is large.
        task: Which of its tasks the row is of, where it is an array's; None for the whole.
    """

    kind: Kind
    run_id: str
    uid: str
    job: Mapping[str, Any] = field(repr=False)
    task: Task | None = None

    def observe(self, now: float) -> Observation:
        """What it says of its run, seen at `now` (Unix seconds)."""
        word = self.kind.observe(self.job, now)
        return word if self.task is None else self.task.observe(word, self.job)


def job_row(kind: Kind, job: Mapping[str, Any]) -> JobRow:
    """The row of an object."""
    return JobRow(
        kind=kind,
        run_id=str(labels_of(job).get(RUN_LABEL, "")),
        uid=str(job["metadata"].get("uid", "")),
        job=_without_large(job),
    )


REDUCE: Mapping[str, Callable[[Mapping[str, Any]], JobRow]] = {
    kind.name: partial(job_row, kind) for kind in KINDS
}
"""Makes the rows of a kind, by its name: one function each, so that all who ask share a watch."""


def _without_large(found: Any) -> Any:
    if isinstance(found, Mapping):
        return {key: _without_large(value) for key, value in found.items() if key not in _DROPPED}
    if isinstance(found, list):
        return [_without_large(value) for value in found]
    return found
