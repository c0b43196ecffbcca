"""How the children of an array are: what exists is looked at, never what the array's record claims, and what has ended is not looked at again.

A child without records of its own is as the array is, so all of those are looked at as one.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from hyperpod_jlab.model.ranges import parse_array
from hyperpod_jlab.model.records import Observation, RunRecords
from hyperpod_jlab.model.run import Status
from hyperpod_jlab.model.state import Moment, derive
from hyperpod_jlab.services.heard import nodes_heard
from hyperpod_jlab.storage.index import RunIndex, Session
from hyperpod_jlab.storage.records import BundleReader

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
class Look:
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


def look_at_children(bundle: BundleReader, records: RunRecords, look: Look) -> Children:
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


def _child_status(child: BundleReader, end: Observation | None, look: Look) -> Status:
    records = with_end(heard_now(child, child.read(), look.words), end)
    heard = look.unreachable is not None and nodes_heard(child, records)
    return derive(records, Moment(time.time(), "alive", look.unreachable, heard))
