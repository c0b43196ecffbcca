"""Making the view of a run from its records."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from hyperpod_jlab.model.array_state import sum_up_children
from hyperpod_jlab.model.records import Observation, RunRecords
from hyperpod_jlab.model.run import Run, Status
from hyperpod_jlab.model.state import Moment, Submitter, derive
from hyperpod_jlab.services.array_children import (
    Children,
    Look,
    children_with_records,
    end_of,
    heard_now,
    look_at_children,
    with_end,
)
from hyperpod_jlab.services.heard import nodes_heard
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.numbers import number_outside
from hyperpod_jlab.storage.processes import life
from hyperpod_jlab.storage.records import BundleReader
from hyperpod_jlab.storage.users import user_name


def view_of(
    bundle: BundleReader,
    records: RunRecords,
    look: Look | None = None,
) -> Run:
    """The view of a run.

    An array shows the sum of its children.

    Args:
        bundle: Its bundle.
        records: Its records.
        look: What is known beside them: of the run, of an array's children, of a child's array.
    """
    head = records.head
    look = look or Look()
    records = heard_now(bundle, records, look.words)
    if bundle.index is not None:
        array = bundle.array()
        records = with_end(records, end_of(heard_now(array, array.read(), look.words)))
    heard = look.unreachable is not None and nodes_heard(bundle, records)
    status = derive(records, Moment(time.time(), submitter_of(records), look.unreachable, heard))
    children: Counter[str] = Counter()
    deaf = status.reason_code == "unreachable"
    if head.array is not None and bundle.index is None and (deaf or not _failed_early(status)):
        found = look_at_children(bundle, records, look)
        children.update(_counted(found))
        if found.uncounted:
            status = _half_counted(status, found)
        elif not deaf or _know_better(found.statuses):
            status = sum_up_children(status, found.statuses)
    submission = records.submission
    return Run(
        run_id=bundle.run_id,
        name=head.name if bundle.index is None else f"{head.name}.{bundle.index}",
        cluster=head.cluster,
        orchestrator=head.orchestrator,
        user=user_name(bundle.owner),
        uid=bundle.owner,
        space=head.space,
        queue=_queue_of(records),
        status=status,
        created_at=head.created_at,
        submitted_at=submission.submitted_at if submission else None,
        scheduler_id=submission.scheduler_id if submission else None,
        parent=head.parent if bundle.index is None else head.run_id,
        bundle=str(bundle.folder),
        notebook=head.notebook,
        kind=head.kind,
        nodes=head.nodes,
        processes_per_node=head.processes_per_node,
        children=dict(children),
    )


def damaged_view(bundle: BundleReader, reason: str, code: str) -> Run:
    """The view of a run whose bundle cannot be read."""
    created, owner = 0.0, bundle.owner
    with contextlib.suppress(OSError):
        found = descent.state(bundle.folder)
        created, owner = found.st_mtime, number_outside(found.st_uid)
    return Run(
        run_id=bundle.run_id,
        name=bundle.run_id,
        cluster="",
        orchestrator="",
        user=user_name(owner),
        uid=owner,
        queue=None,
        status=Status("unknown", reason=reason, reason_code=code),
        created_at=created,
        submitted_at=None,
        scheduler_id=None,
        parent=None,
        bundle=str(bundle.folder),
    )


def as_damaged(run: Run, reason: str, code: str) -> Run:
    """The view of a run of which something can be read, but not what it was to do."""
    status = replace(run.status, state="unknown", reason=reason, reason_code=code, exit_code=None)
    return replace(run, status=status)


def submitter_of(records: RunRecords) -> Submitter:
    """Whether a process that submits the run still lives, as far as this machine can say; one that gave up does not count."""
    given_up = max(
        (seen.time for seen in records.observations if seen.reason_code == "submit_interrupted"),
        default=0.0,
    )
    lives = {life(intent) for intent in records.intents if intent.time > given_up}
    if records.intents and not lives:
        return "dead"
    if "alive" in lives:
        return "alive"
    return "dead" if lives == {"dead"} else "unknown"


def _queue_of(records: RunRecords) -> str | None:
    """The queue that a run was moved to last, else the one it was sent to."""
    moved = [action.queue for action in records.actions if action.queue is not None]
    return moved[-1] if moved else records.head.queue


def _failed_early(status: Status) -> bool:
    return status.state in {"submitting", "unknown"} or status.reason_code == "submit_interrupted"


def is_over(records: RunRecords) -> bool:
    """Whether the records alone say how a run ended, so that no engine has to be asked."""
    told = [seen for seen in records.observations if seen.reason_code != "submit_interrupted"]
    if records.head.array is not None:  # its children have records of their own
        return False
    status = derive(records, Moment(time.time(), "alive"))
    return status.state == "succeeded" or any(seen.state == "ended" for seen in told)


def orphans(
    bundles: Sequence[BundleReader], said: Mapping[str, Observation]
) -> Sequence[BundleReader]:
    """The children of arrays that are said to be gone: only the engine knows whether they live on."""
    gone = [b for b in bundles if b.index is None and b.run_id in said and said[b.run_id].verdict]
    arrays = [(bundle, bundle.head().array) for bundle in gone]
    return [
        child for bundle, array in arrays if array for child in children_with_records(bundle, array)
    ]


def _counted(children: Children) -> Counter[str]:
    counts: Counter[str] = Counter()
    for status, count in children.statuses:
        counts[status.state] += count
    if children.uncounted:
        counts["unknown"] += children.uncounted
    return counts


def _half_counted(status: Status, children: Children) -> Status:
    """The status of an array of which not all children were looked at yet: the next look goes on."""
    counted = sum(count for _, count in children.statuses)
    reason = f"{counted} of {counted + children.uncounted} children counted so far"
    return replace(status, state="running", reason=reason, reason_code="counting", exit_code=None)


def _know_better(children: Sequence[tuple[Status, int]]) -> bool:
    """Whether an array's children say how it is although the cluster does not answer: one of them runs, or all have ended."""
    return any(child.state == "running" for child, _ in children) or all(
        child.ended for child, _ in children
    )
