"""Build the view of a run from its records."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hyperpod_jlab.core.errors import HyperpodError
from hyperpod_jlab.core.quantities import parse_array
from hyperpod_jlab.core.records import Observation, RunRecords, with_observed_attempt
from hyperpod_jlab.core.run import Run, State, Status, summarize_children
from hyperpod_jlab.core.state import StateContext, Submitter, derive
from hyperpod_jlab.core.usage import Usage, signal_of
from hyperpod_jlab.engines.registry import Engines
from hyperpod_jlab.engines.repairs import journal_usage
from hyperpod_jlab.logs.source import HEARTBEAT
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.acl import host_uid
from hyperpod_jlab.storage.index import RunIndex, Session
from hyperpod_jlab.storage.owners import user_name
from hyperpod_jlab.storage.processes import liveness
from hyperpod_jlab.storage.records import BundleReader

# --------------------------------------------------------------------------------------------------
# Node liveness from the launchers' files, for when the scheduler does not answer.

TIMEOUT = 12 * HEARTBEAT
"""Seconds without a heartbeat after which a node counts as silent; allows for clock skew between nodes and this machine."""


def are_nodes_alive(bundle: BundleReader, records: RunRecords) -> bool:
    """Whether each node of the newest attempt that has not reported its end has a recent heartbeat. Blocking.

    Args:
        bundle: The bundle of the run, or of an array's child.
        records: Its records.
    """
    if not records.attempts:
        return False
    attempt = records.attempts[-1]
    ended_ranks = {node.node_rank for node in attempt.nodes if node.ended_at is not None}
    logs = bundle.records / "logs" / f"attempt-{attempt.number}"
    now = time.time()
    for rank in range(records.head.nodes):
        if rank in ended_ranks:
            continue
        try:
            written_at = descent.state(logs / f"node-{rank}.activity.json").st_mtime
        except OSError:
            return False
        if abs(now - written_at) > TIMEOUT:
            return False
    return True


# --------------------------------------------------------------------------------------------------
# Usage of ended runs: queried from the engine once, then stored in the bundle, so that it survives
# the scheduler's own records.


async def read_usage(run: Run, bundle: BundleReader, engines: Engines) -> Usage | None:
    """A run's usage; None until it has ended.

    A cluster that does not answer is not an error: the result then comes from the run's own records, and the next call queries the cluster again.

    Raises:
        DamagedBundleError: The bundle cannot be read.
    """
    if not run.status.ended:
        return None
    records = await asyncio.to_thread(bundle.read)
    stored = await asyncio.to_thread(bundle.usage)
    if stored is not None and (run.children or stored.attempts == len(records.attempts)):
        return stored
    usage_reported = None
    with contextlib.suppress(HyperpodError):
        accounting = engines.get(run.cluster).accounting
        usage_reported = await accounting.usage(bundle) if accounting is not None else None
    if usage_reported is None:
        return _with_end(await asyncio.to_thread(journal_usage, bundle), run, records)
    usage = _with_end(usage_reported, run, records)
    with contextlib.suppress(HyperpodError):  # another user's run, or no space: the next call queries again
        await asyncio.to_thread(bundle.write_usage, usage)
    return usage


def _with_end(usage: Usage, run: Run, records: RunRecords) -> Usage:
    """With exit code and signal from the ranks' records: a scheduler only sees the launcher's."""
    if run.children:
        return usage.model_copy(update={"exit_code": None, "signal": None})
    code = run.status.exit_code
    if code is None:
        return usage
    return usage.model_copy(update={"exit_code": code, "signal": signal_of(records, code)})


# --------------------------------------------------------------------------------------------------
# Status of an array's children: derived from existing records, never from the array's own record;
# ended children are cached.
#
# All children without records have the array's status, so it is derived once for all of them.

_MAX_COUNTED = 200
"""Up to this many children, all are read each time."""

_FOREIGN_BUDGET_S = 0.1
"""Time for the children of another user's array."""

LIST_BUDGET_S = 0.5
"""Time per list of runs for reading new children of one array; the next list continues."""


class EndedChildren:
    """Caches in the index how the children of this user's large arrays ended.

    An ended child stays ended unless the scheduler still reports on it; then it is read again.
    """

    def __init__(self, index: RunIndex) -> None:
        self._index = index
        self._statuses_by_run: dict[str, dict[int, Status]] = {}

    def known(self, run_id: str) -> Mapping[int, Status]:
        """The end of an array's children, by index. May block."""
        if run_id not in self._statuses_by_run:
            rows = self._index.use(lambda session: session.children(run_id))
            self._statuses_by_run[run_id] = {index: Status(*rest) for index, *rest in rows}
        return self._statuses_by_run[run_id]

    def add(self, run_id: str, statuses: Mapping[int, Status]) -> None:
        """Add to the cache. May block."""
        if not statuses:
            return
        self._statuses_by_run.setdefault(run_id, {}).update(statuses)
        rows = [
            (index, status.state, status.exit_code, status.started_at, status.ended_at)
            for index, status in statuses.items()
        ]

        def write(session: Session) -> None:
            session.put_children(run_id, rows)

        self._index.use(write)


@dataclass(frozen=True)
class ArrayFacts:
    """Facts beside the records when an array is read.

    Attributes:
        observations: The engine's current observations, by run id.
        unreachable: Why the engine does not answer.
        ended: The cache of ended children; None: no cache.
        seconds: Time for children that were never read; None: no limit.
    """

    observations: Mapping[str, Observation] = field(default_factory=dict)
    unreachable: str | None = None
    ended: EndedChildren | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class ChildStatuses:
    """The distinct statuses of an array's children, their counts, and the number of children not read yet."""

    statuses: list[tuple[Status, int]]
    uncounted: int = 0


def count_children(bundle: BundleReader, records: RunRecords, facts: ArrayFacts) -> ChildStatuses:
    """Count an array's children by status. May block."""
    indices = parse_array(records.head.array or "").indices
    recorded_indices = {
        index for run_id in facts.observations if (index := _index_in(bundle.run_id, run_id)) is not None
    }
    recorded = (set(bundle.child_indices()) | recorded_indices).intersection(indices)
    memory = facts.ended if len(recorded) > _MAX_COUNTED and bundle.is_own else None
    limited = memory is not None or not bundle.is_own
    ended_before = memory.known(bundle.run_id) if memory is not None else {}
    end = find_end(records)
    statuses: list[tuple[Status, int]] = []
    newly_ended: dict[int, Status] = {}
    uncounted = 0
    seconds = facts.seconds if bundle.is_own else _FOREIGN_BUDGET_S
    deadline = None if seconds is None else time.monotonic() + seconds
    for index in sorted(recorded):
        previous = ended_before.get(index)
        if previous is not None and index not in recorded_indices:
            statuses.append((previous, 1))
            continue
        if limited and deadline is not None and time.monotonic() > deadline:
            uncounted += 1
            continue
        status = _child_status(bundle.child(index, records), end, facts)
        statuses.append((status, 1))
        if memory is not None and status.ended:
            newly_ended[index] = status
    if memory is not None:
        memory.add(bundle.run_id, newly_ended)
    unrecorded = len(indices) - len(recorded)
    if unrecorded:
        first = next(index for index in indices if index not in recorded)
        statuses.append((_child_status(bundle.child(first, records), end, facts), unrecorded))
    return ChildStatuses(statuses, uncounted)


def children_with_records(bundle: BundleReader, array: str) -> Iterator[BundleReader]:
    """The bundles of an array's children that have records, in the order of their indices."""
    indices = frozenset(parse_array(array).indices)
    return (bundle.child(index) for index in bundle.child_indices() if index in indices)


def first_children(bundle: BundleReader, array: str, limit: int | None) -> Iterable[BundleReader]:
    """An array's children by index; of more than `limit`, those with records come first."""
    indices = parse_array(array).indices
    if limit is not None and len(indices) > limit:
        recorded = set(bundle.child_indices()).intersection(indices)
        selected = sorted(recorded)[:limit]
        rest = (index for index in indices if index not in recorded)
        selected += [index for index, _ in zip(rest, range(limit - len(selected)), strict=False)]
        indices = tuple(sorted(selected))
    return (bundle.child(index) for index in indices)


def with_observations(bundle: BundleReader, records: RunRecords, observations: Mapping[str, Observation]) -> RunRecords:
    """The records with the engine's current observation of the run."""
    observation = observations.get(bundle.run_id)
    if observation is None:
        return records
    return with_observed_attempt(replace(records, observations=(*records.observations, observation)))


def find_end(records: RunRecords) -> Observation | None:
    """The observation that a run has ended, if it is the latest."""
    newest = max(records.observations, key=lambda item: item.time, default=None)
    return newest if newest is not None and newest.state == "ended" else None


def with_end(records: RunRecords, end: Observation | None) -> RunRecords:
    """A child's records with its array's end, which also ends the child if it had not started."""
    has_begun = records.observations or records.attempts or records.owner
    return records if end is None or has_begun else replace(records, observations=(end,))


def _index_in(array: str, run_id: str) -> int | None:
    """The index of an array's child; None for another run."""
    parent, dot, index = run_id.partition(".")
    return int(index) if dot and parent == array and index.isdecimal() else None


def _child_status(child: BundleReader, end: Observation | None, facts: ArrayFacts) -> Status:
    records = with_end(with_observations(child, child.read(), facts.observations), end)
    is_alive = facts.unreachable is not None and are_nodes_alive(child, records)
    return derive(records, StateContext(time.time(), "alive", facts.unreachable, is_alive))


def view_of(bundle: BundleReader, records: RunRecords, facts: ArrayFacts | None = None) -> Run:
    """Build the view of a run; an array shows the sum of its children.

    Args:
        bundle: Its bundle.
        records: Its records.
        facts: Facts beside the records: of the run, of an array's children, of a child's array.
    """
    head = records.head
    facts = facts or ArrayFacts()
    records = with_observations(bundle, records, facts.observations)
    if bundle.index is not None:
        array = bundle.array()
        records = with_end(records, find_end(with_observations(array, array.read(), facts.observations)))
    is_alive = facts.unreachable is not None and are_nodes_alive(bundle, records)
    status = derive(records, StateContext(time.time(), submitter_of(records), facts.unreachable, is_alive))
    children: Counter[State] = Counter()
    is_unreachable = status.reason_code == "unreachable"
    if head.array is not None and bundle.index is None and (is_unreachable or not _failed_early(status)):
        child_statuses = count_children(bundle, records, facts)
        children.update(_count_states(child_statuses))
        if child_statuses.uncounted:
            status = _partial_status(status, child_statuses)
        elif not is_unreachable or _is_decided_by_children(child_statuses.statuses):
            status = summarize_children(status, child_statuses.statuses)
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
        **vars(status),
        created_at=head.created_at,
        submitted_at=submission.submitted_at if submission else None,
        scheduler_id=submission.scheduler_id if submission else None,
        parent=head.parent if bundle.index is None else head.run_id,
        bundle=str(bundle.folder),
        notebook=head.notebook,
        kind=head.kind,
        nodes=head.nodes,
        processes_per_node=head.processes_per_node,
        gpus_per_node=head.gpus_per_node,
        children=dict(children) or None,
    )


def damaged_view(bundle: BundleReader, reason: str, code: str) -> Run:
    """The view of a run whose bundle cannot be read."""
    created, owner = 0.0, bundle.owner
    with contextlib.suppress(OSError):
        status = descent.state(bundle.folder)
        created, owner = status.st_mtime, host_uid(status.st_uid)
    return Run(
        run_id=bundle.run_id,
        name=bundle.run_id,
        cluster="",
        orchestrator="",
        user=user_name(owner),
        uid=owner,
        queue=None,
        state="unknown",
        reason=reason,
        reason_code=code,
        created_at=created,
        submitted_at=None,
        scheduler_id=None,
        parent=None,
        bundle=str(bundle.folder),
    )


def as_damaged(run: Run, reason: str, code: str) -> Run:
    """The view of a run whose spec cannot be read."""
    return replace(run, state="unknown", reason=reason, reason_code=code, exit_code=None)


def submitter_of(records: RunRecords) -> Submitter:
    """Whether the submitting process is alive, as far as this machine can tell; a process that gave up does not count."""
    gave_up_at = max(
        (observation.time for observation in records.observations if observation.reason_code == "submit_interrupted"),
        default=0.0,
    )
    process_states = {liveness(intent) for intent in records.intents if intent.time > gave_up_at}
    if records.intents and not process_states:
        return "dead"
    if "alive" in process_states:
        return "alive"
    return "dead" if process_states == {"dead"} else "unknown"


def _queue_of(records: RunRecords) -> str | None:
    """The queue after the last move, else the submitted one."""
    queues = [action.queue for action in records.actions if action.queue is not None]
    return queues[-1] if queues else records.head.queue


def _failed_early(status: Status) -> bool:
    return status.state in {"submitting", "unknown"} or status.reason_code == "submit_interrupted"


def is_finished(records: RunRecords) -> bool:
    """Whether the records alone prove that a run has ended, so that the engine is not queried."""
    observations = [
        observation for observation in records.observations if observation.reason_code != "submit_interrupted"
    ]
    if records.head.array is not None:  # its children have records of their own
        return False
    status = derive(records, StateContext(time.time(), "alive"))
    return status.state == "succeeded" or any(observation.state == "ended" for observation in observations)


def orphans(bundles: Sequence[BundleReader], observations: Mapping[str, Observation]) -> Sequence[BundleReader]:
    """Children with records of arrays for which the engine reports a verdict: only the engine knows whether they are alive."""
    lost_children = [
        b for b in bundles if b.index is None and b.run_id in observations and observations[b.run_id].verdict
    ]
    array_ids = [(bundle, bundle.head().array) for bundle in lost_children]
    return [child for bundle, array in array_ids if array for child in children_with_records(bundle, array)]


def _count_states(children: ChildStatuses) -> Counter[State]:
    counts: Counter[State] = Counter()
    for status, count in children.statuses:
        counts[status.state] += count
    if children.uncounted:
        counts["unknown"] += children.uncounted
    return counts


def _partial_status(status: Status, children: ChildStatuses) -> Status:
    """The status of an array with unread children; the next read continues."""
    counted_total = sum(count for _, count in children.statuses)
    reason = f"{counted_total} of {counted_total + children.uncounted} children counted so far"
    return replace(status, state="running", reason=reason, reason_code="counting", exit_code=None)


def _is_decided_by_children(children: Sequence[tuple[Status, int]]) -> bool:
    """Whether an array's children determine its status although the cluster does not answer: one runs, or all have ended."""
    return any(child.state == "running" for child, _ in children) or all(child.ended for child, _ in children)
