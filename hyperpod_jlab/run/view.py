"""Making the view of a run from its records."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hyperpod_jlab.core.errors import HyperpodError
from hyperpod_jlab.core.quantities import parse_array
from hyperpod_jlab.core.records import Observation, RunRecords
from hyperpod_jlab.core.run import Run, State, Status, summarize_children
from hyperpod_jlab.core.state import StateContext, Submitter, derive
from hyperpod_jlab.core.usage import Usage, signal_of
from hyperpod_jlab.engines.registry import Engines
from hyperpod_jlab.engines.repairs import journal_usage
from hyperpod_jlab.logs.source import HEARTBEAT
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.acl import number_outside
from hyperpod_jlab.storage.index import RunIndex, Session
from hyperpod_jlab.storage.owners import user_name
from hyperpod_jlab.storage.processes import life
from hyperpod_jlab.storage.records import BundleReader

# --------------------------------------------------------------------------------------------------
# Whether a run's nodes were heard of just now: where the scheduler does not answer, the launchers' own files tell that it runs.

TIMEOUT = 12 * HEARTBEAT
"""Seconds without a sign after which a node counts as silent: the clocks of the nodes and of this machine may differ a little."""


def nodes_heard(bundle: BundleReader, records: RunRecords) -> bool:
    """Whether each node of the newest attempt that has not said its end has written its activity record just now. Blocking.

    Args:
        bundle: The bundle of the run, or of an array's child.
        records: Its records.
    """
    if not records.attempts:
        return False
    attempt = records.attempts[-1]
    over = {node.node_rank for node in attempt.nodes if node.ended_at is not None}
    logs = bundle.records / "logs" / f"attempt-{attempt.number}"
    now = time.time()
    for rank in range(records.head.nodes):
        if rank in over:
            continue
        try:
            written = descent.state(logs / f"node-{rank}.activity.json").st_mtime
        except OSError:
            return False
        if abs(now - written) > TIMEOUT:
            return False
    return True


# --------------------------------------------------------------------------------------------------
# What ended runs used: asked of the engine once, then remembered in the bundle, so that it stays when the scheduler forgets.


async def usage_of(run: Run, bundle: BundleReader, engines: Engines) -> Usage | None:
    """What a run used; None when it has not ended.

    A cluster that does not answer is no fault: the run's own records have to do then, and it is asked the next time.

    Raises:
        DamagedBundleError: The bundle cannot be read.
    """
    if not run.status.ended:
        return None
    records = await asyncio.to_thread(bundle.read)
    known = await asyncio.to_thread(bundle.usage)
    if known is not None and (run.children or known.attempts == len(records.attempts)):
        return known
    said = None
    with contextlib.suppress(HyperpodError):
        accounting = engines.get(run.cluster).accounting
        said = await accounting.usage(bundle) if accounting is not None else None
    if said is None:
        return _with_end(await asyncio.to_thread(journal_usage, bundle), run, records)
    found = _with_end(said, run, records)
    with contextlib.suppress(HyperpodError):  # somebody else's run, or no room: it is asked again
        await asyncio.to_thread(bundle.write_usage, found)
    return found


def _with_end(usage: Usage, run: Run, records: RunRecords) -> Usage:
    """With exit code and signal as the ranks' records tell: a scheduler sees only what the launcher ended with."""
    if run.children:
        return usage.model_copy(update={"exit_code": None, "signal": None})
    code = run.status.exit_code
    if code is None:
        return usage
    return usage.model_copy(update={"exit_code": code, "signal": signal_of(records, code)})


# --------------------------------------------------------------------------------------------------
# How the children of an array are: what exists is looked at, never what the array's record claims, and what has ended is not looked at again.
#
# A child without records of its own is as the array is, so all of those are looked at as one.

_FEW = 200
"""Children up to which all are looked at each time."""

_FOREIGN_SECONDS = 0.1
"""Time for the children of another user's array."""

LIST_SECONDS = 0.5
"""Time that a list of runs spends on children of one array that it has not seen before; the next list goes on."""


class EndedChildren:
    """Remembers how the children of this user's large arrays ended, in the index.

    A child that ended stays so unless the scheduler says that it lives again: then it is looked at.
    """

    def __init__(self, index: RunIndex) -> None:
        self._index = index
        self._known: dict[str, dict[int, Status]] = {}

    def known(self, run_id: str) -> Mapping[int, Status]:
        """How children of an array ended, by index. May block."""
        if run_id not in self._known:
            rows = self._index.use(lambda session: session.children(run_id))
            self._known[run_id] = {index: Status(*rest) for index, *rest in rows}
        return self._known[run_id]

    def add(self, run_id: str, found: Mapping[int, Status]) -> None:
        """Remember more of them. May block."""
        if not found:
            return
        self._known.setdefault(run_id, {}).update(found)
        rows = [
            (index, one.state, one.exit_code, one.started_at, one.ended_at)
            for index, one in found.items()
        ]

        def write(session: Session) -> None:
            session.put_children(run_id, rows)

        self._index.use(write)


@dataclass(frozen=True)
class ArrayFacts:
    """What is known beside the records when an array is looked at.

    Attributes:
        words: What the engine sees now, by run id.
        unreachable: Why the engine cannot be asked.
        ended: What is remembered of children; None: nothing.
        seconds: The time for children that were never looked at; None: no limit.
    """

    words: Mapping[str, Observation] = field(default_factory=dict)
    unreachable: str | None = None
    ended: EndedChildren | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Children:
    """The status of an array's children, with how many have it, and how many were not looked at yet."""

    statuses: list[tuple[Status, int]]
    uncounted: int = 0


def look_at_children(bundle: BundleReader, records: RunRecords, look: ArrayFacts) -> Children:
    """How the children of an array are. May block."""
    indices = parse_array(records.head.array or "").indices
    told = {
        index for run_id in look.words if (index := _index_in(bundle.run_id, run_id)) is not None
    }
    known = (set(bundle.child_indices()) | told).intersection(indices)
    memory = look.ended if len(known) > _FEW and bundle.is_own else None
    limited = memory is not None or not bundle.is_own
    remembered = memory.known(bundle.run_id) if memory is not None else {}
    end = end_of(records)
    statuses: list[tuple[Status, int]] = []
    new: dict[int, Status] = {}
    uncounted = 0
    seconds = look.seconds if bundle.is_own else _FOREIGN_SECONDS
    deadline = None if seconds is None else time.monotonic() + seconds
    for index in sorted(known):
        before = remembered.get(index)
        if before is not None and index not in told:
            statuses.append((before, 1))
            continue
        if limited and deadline is not None and time.monotonic() > deadline:
            uncounted += 1
            continue
        status = _child_status(bundle.child(index, records), end, look)
        statuses.append((status, 1))
        if memory is not None and status.ended:
            new[index] = status
    if memory is not None:
        memory.add(bundle.run_id, new)
    others = len(indices) - len(known)
    if others:
        first = next(index for index in indices if index not in known)
        statuses.append((_child_status(bundle.child(first, records), end, look), others))
    return Children(statuses, uncounted)


def children_with_records(bundle: BundleReader, array: str) -> Iterator[BundleReader]:
    """The bundles of an array's children that have records, in the order of their indices."""
    indices = frozenset(parse_array(array).indices)
    return (bundle.child(index) for index in bundle.child_indices() if index in indices)


def first_children(bundle: BundleReader, array: str, limit: int | None) -> Iterable[BundleReader]:
    """An array's children in the order of their indices; of more than `limit` those first that have records."""
    indices = parse_array(array).indices
    if limit is not None and len(indices) > limit:
        known = set(bundle.child_indices()).intersection(indices)
        shown = sorted(known)[:limit]
        rest = (index for index in indices if index not in known)
        shown += [index for index, _ in zip(rest, range(limit - len(shown)), strict=False)]
        indices = tuple(sorted(shown))
    return (bundle.child(index) for index in indices)


def heard_now(
    bundle: BundleReader, records: RunRecords, words: Mapping[str, Observation]
) -> RunRecords:
    """The records with what the engine sees of the run now."""
    word = words.get(bundle.run_id)
    return replace(records, observations=(*records.observations, word)) if word else records


def end_of(records: RunRecords) -> Observation | None:
    """The word that a run has ended, if that is what was said last."""
    newest = max(records.observations, key=lambda seen: seen.time, default=None)
    return newest if newest is not None and newest.state == "ended" else None


def with_end(records: RunRecords, end: Observation | None) -> RunRecords:
    """A child's records with its array's end, which is its own when it had not begun by then."""
    begun = records.observations or records.attempts or records.owner
    return records if end is None or begun else replace(records, observations=(end,))


def _index_in(array: str, run_id: str) -> int | None:
    """The index of an array's child; None for another run."""
    parent, dot, index = run_id.partition(".")
    return int(index) if dot and parent == array and index.isdecimal() else None


def _child_status(child: BundleReader, end: Observation | None, look: ArrayFacts) -> Status:
    records = with_end(heard_now(child, child.read(), look.words), end)
    heard = look.unreachable is not None and nodes_heard(child, records)
    return derive(records, StateContext(time.time(), "alive", look.unreachable, heard))


def view_of(
    bundle: BundleReader,
    records: RunRecords,
    look: ArrayFacts | None = None,
) -> Run:
    """The view of a run.

    An array shows the sum of its children.

    Args:
        bundle: Its bundle.
        records: Its records.
        look: What is known beside them: of the run, of an array's children, of a child's array.
    """
    head = records.head
    look = look or ArrayFacts()
    records = heard_now(bundle, records, look.words)
    if bundle.index is not None:
        array = bundle.array()
        records = with_end(records, end_of(heard_now(array, array.read(), look.words)))
    heard = look.unreachable is not None and nodes_heard(bundle, records)
    status = derive(
        records, StateContext(time.time(), submitter_of(records), look.unreachable, heard)
    )
    children: Counter[State] = Counter()
    deaf = status.reason_code == "unreachable"
    if head.array is not None and bundle.index is None and (deaf or not _failed_early(status)):
        found = look_at_children(bundle, records, look)
        children.update(_counted(found))
        if found.uncounted:
            status = _half_counted(status, found)
        elif not deaf or _know_better(found.statuses):
            status = summarize_children(status, found.statuses)
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
        children=dict(children) or None,
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
    """The view of a run of which something can be read, but not what it was to do."""
    return replace(run, state="unknown", reason=reason, reason_code=code, exit_code=None)


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
    status = derive(records, StateContext(time.time(), "alive"))
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


def _counted(children: Children) -> Counter[State]:
    counts: Counter[State] = Counter()
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
