"""Runs: get, list, act."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import AsyncGenerator, Awaitable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from hyperpod_jlab.clusters import pages as page_cursor
from hyperpod_jlab.core.cache import Cache
from hyperpod_jlab.core.cluster import WaitReason
from hyperpod_jlab.core.errors import (
    ConflictError,
    DeniedError,
    HyperpodError,
    InvalidInputError,
    NotFoundError,
    StorageDeniedError,
    StorageError,
    UnsupportedError,
)
from hyperpod_jlab.core.job_actions import ActionKind, Change, check_change
from hyperpod_jlab.core.quantities import parse_array
from hyperpod_jlab.core.records import Action, Observation, RunRecords
from hyperpod_jlab.core.repair import is_repair_reason
from hyperpod_jlab.core.run import Run
from hyperpod_jlab.core.run_id import split_run_id
from hyperpod_jlab.core.usage import Usage
from hyperpod_jlab.core.wire import from_plain, to_plain
from hyperpod_jlab.engines.protocol import Orchestrator, require
from hyperpod_jlab.engines.registry import Engines
from hyperpod_jlab.logs.array import ArrayStreams
from hyperpod_jlab.logs.records import RecordStreams
from hyperpod_jlab.logs.source import SourceSet
from hyperpod_jlab.run.listing import RunFilter, RunPage
from hyperpod_jlab.run.repairs import AwsRepairs
from hyperpod_jlab.run.view import (
    LIST_BUDGET_S,
    ArrayFacts,
    EndedChildren,
    as_damaged,
    damaged_view,
    first_children,
    is_finished,
    orphans,
    read_usage,
    view_of,
)
from hyperpod_jlab.storage.acl import own_uid
from hyperpod_jlab.storage.big_records import BUDGET_S, Deadline
from hyperpod_jlab.storage.index import BrokenIndexError, Row, RunIndex, Session, status_stamp
from hyperpod_jlab.storage.mounts import PresenceGuard
from hyperpod_jlab.storage.owners import current_user
from hyperpod_jlab.storage.records import BundleReader, DamagedBundleError

# --------------------------------------------------------------------------------------------------
# User actions on a run: validation and journal.

_REQUIRED_STATES = {"requeue": "running", "change": "waiting or running"}


def check_action(run: Run, action: ActionKind, engine: Orchestrator) -> None:
    """Check that an action fits the run's state and its engine.

    Raises:
        ConflictError: The action does not fit the run's state.
        UnsupportedError: The engine does not support it.
    """
    if engine.actions is None or action not in engine.actions.supported:
        raise UnsupportedError(f"{engine.kind} clusters cannot {action} a run")
    is_waiting = run.state == "waiting" or bool((run.children or {}).get("waiting"))
    is_allowed = {
        "hold": is_waiting,
        "release": is_waiting,
        "requeue": run.state == "running",
        "change": is_waiting or run.state == "running",
    }
    if not is_allowed.get(action, True):
        raise ConflictError(
            f"{run.run_id} is {run.state}; to {action} it, the run must be " + _REQUIRED_STATES.get(action, "waiting"),
            code="wrong_state",
            hint="submit it again with: hpj clone" if run.status.ended else None,
            detail={"state": run.state},
        )


def write_action(run: Run, bundle: BundleReader, action: ActionKind, change: Change | None = None) -> Action | None:
    """Write an action to the run's journal. Blocking. None: no space left for a cancel, which proceeds.

    Raises:
        DeniedError: It is another user's run.
        StorageError: The partition rejects the write.
    """
    try:
        change = change or Change()
        return bundle.add_action(action, current_user(), time_limit=change.time_limit, queue=change.queue)
    except StorageError as error:
        # The run to cancel may be the one that fills the partition; the engine can still signal its
        # processes.
        if error.code != "storage_full" or action != "cancel" or run.children:
            raise
        return None


async def carry_out(
    run: Run, bundle: BundleReader, engine: Orchestrator, action: ActionKind, change: Change | None = None
) -> None:
    """Write an action to the journal and do it. A change is written after the engine has applied it, since the journal shows the run's actual settings.

    Raises:
        DeniedError: It is another user's run, or the engine denies permission.
    """
    await asyncio.to_thread(bundle.check_own, action)
    actions = require(engine.actions, engine, f"cannot {action} a run")
    if action == "change":
        await actions.act(action, bundle, change or Change())
        with contextlib.suppress(StorageError):  # the change is applied regardless
            await asyncio.to_thread(write_action, run, bundle, action, change)
    else:
        record = await asyncio.to_thread(write_action, run, bundle, action)
        await _run_or_withdraw(actions.act(action, bundle), bundle, record)


async def _run_or_withdraw(operation: Awaitable[None], bundle: BundleReader, record: Action | None) -> None:
    """Remove an action from the journal if the engine failed; otherwise the run would count as cancelled. If it succeeded after all, the engine's state shows it.

    A run without a job keeps the action: it must not be submitted later.
    """
    try:
        await operation
    except NotFoundError:
        raise
    except HyperpodError:
        if record is not None:
            with contextlib.suppress(StorageError):
                await asyncio.to_thread(bundle.drop_action, record)
        raise


# --------------------------------------------------------------------------------------------------
# Pagination cursor of a list of runs.


def encode(created: float, run_id: str) -> str:
    """The cursor of the page after a run."""
    return page_cursor.encode(created, run_id)


def decode(cursor: str | None) -> tuple[float, str] | None:
    """The run that a page follows, as (created, run_id); None for the first page.

    Raises:
        InvalidInputError: The cursor is invalid.
    """
    if cursor is None:
        return None
    created, run_id = page_cursor.decode(cursor, math.isfinite, "a list of runs")
    return float(created), run_id


# --------------------------------------------------------------------------------------------------
# Live state of runs from the engines of clusters, in addition to the runs' records.


@dataclass(frozen=True)
class EngineObservations:
    """The engines' observations, by run id, and why others are missing."""

    observations: dict[str, Observation] = field(default_factory=dict)
    unreachable: dict[str, str] = field(default_factory=dict)

    def add(self, other: EngineObservations) -> None:
        """Merge another engine's observations."""
        self.observations.update(other.observations)
        self.unreachable.update(other.unreachable)

    def array_facts(self, run_id: str, ended: EndedChildren | None = None, seconds: float | None = None) -> ArrayFacts:
        """The observation of a run, and the cached state of its children."""
        return ArrayFacts(self.observations, self.unreachable.get(run_id), ended, seconds)


async def ask_engine(
    engines: Engines, repairs: AwsRepairs | None, cluster: str, bundles: Sequence[BundleReader]
) -> EngineObservations:
    """A cluster's observations of runs; if it does not answer, each run gets the reason instead of an error."""
    try:
        engine = engines.get(cluster)
    except HyperpodError:  # the cluster is not configured on this machine
        return EngineObservations()
    try:
        observations = await engine.runs(bundles)
        if repairs is not None:
            observations = await repairs.with_repairs(cluster, bundles, observations)
        children = await asyncio.to_thread(orphans, bundles, observations)
        return EngineObservations({**observations, **await engine.runs(children)} if children else observations)
    except HyperpodError as error:
        state_text = "denied access" if isinstance(error, DeniedError) else "does not answer"
        reason = f"{cluster} {state_text}: {error.message}"
        return EngineObservations(unreachable=dict.fromkeys((b.run_id for b in bundles), reason))


_BATCH_SIZE = 500
_FOREIGN_BUDGET_S = 2.0  # Seconds that a list spends on other users' runs, per 500 of them.
_MOMENT = 2.0
"""Timeout, in seconds, for fetching a single run's latest records from its nodes."""
_NOTICE_TIMEOUT_S, _WAIT_FIRST, _WAIT_MAX, _WAIT_GROWTH = 2.0, 0.05, 1.0, 1.3


@dataclass(frozen=True)
class _RunSnapshot:
    """A run's records, and the stamp taken before reading them."""

    bundle: BundleReader
    records: RunRecords
    stamp: int
    problem: HyperpodError | None
    """Why its spec cannot be read."""


@dataclass(frozen=True)
class _Page:
    """A page of runs, the runs to refresh, and the generation of the index it comes from."""

    listing: RunPage
    unsure: Sequence[str]
    number: int


class Runs:
    """The runs on the storage partition."""

    def __init__(self, engines: Engines, index: RunIndex | None = None, repairs: AwsRepairs | None = None) -> None:
        self._engines = engines
        self._repairs = repairs
        self._partition = engines.partition
        self._index = index or RunIndex(self._partition)
        self._ended = EndedChildren(self._index)
        self._presence = PresenceGuard(self._partition.root, self._partition.runs)

    def bundle(self, run_id: str) -> BundleReader:
        """The bundle of a run or of an array's child.

        Raises:
            NotFoundError: The run does not exist.
            StorageError: The partition is not mounted, but was before.
        """
        folder = self._partition.find(run_id)
        bundle = BundleReader(self._partition, run_id, folder)
        if folder is None:
            self._presence.check()
            raise NotFoundError(f"run {run_id} not found", code="no_such_run", hint="list runs with: hpj runs")
        if bundle.index is not None and bundle.index not in (indices := self._indices(bundle)):
            base_id = split_run_id(run_id)[0]
            reason = f"has no child {bundle.index}" if indices else "is not an array"
            hint = f"see: hpj show {base_id}"
            raise NotFoundError(f"{base_id} {reason}", code="no_such_run", hint=hint)
        return bundle

    async def get(self, run_id: str) -> Run:
        """One run in its current state.

        Raises:
            NotFoundError: The run does not exist.
            DamagedBundleError: Its bundle cannot be read.
        """
        bundle = await asyncio.to_thread(self.bundle, run_id)
        records = await asyncio.to_thread(bundle.read)
        bundles = [bundle]
        if bundle.index is not None:
            bundles.append(bundle.array())
        if await self._catch_up(records.head.cluster, bundle, _MOMENT):
            records = await asyncio.to_thread(bundle.read)
        observed = await self._ask(records.head.cluster, bundles)
        await asyncio.to_thread(self._presence.check)  # an unmounted partition would look like a wrong end
        if any(observation.state == "ended" for observation in observed.observations.values()):
            # A run that has just ended may have written its final records since, or the engine may
            # have.
            records = await asyncio.to_thread(bundle.read)
        facts = observed.array_facts(run_id, self._ended)
        return await asyncio.to_thread(view_of, bundle, records, facts)

    async def catch_up(self, run_id: str, seconds: float) -> None:
        """Fetch a run's latest records and logs from its nodes.

        Raises:
            HyperpodError: The run does not exist, its cluster does not answer, or permission is denied.
        """
        bundle = await asyncio.to_thread(self.bundle, run_id)
        head = await asyncio.to_thread(bundle.head)
        if not bundle.is_own:  # records from its nodes are written into its bundle
            return
        with contextlib.suppress(InvalidInputError):  # the cluster is not configured on this machine
            remote = self._engines.get(head.cluster).remote_records
            if remote is not None:
                await remote.catch_up(bundle, seconds)

    async def list(self, run_filter: RunFilter | None = None) -> RunPage:
        """List runs, newest first. Damaged runs are listed as such."""
        run_filter = run_filter or RunFilter()
        refreshed: set[str] = set()
        number = None
        while True:
            page = await asyncio.to_thread(self._page, run_filter)
            if page.number != number:  # first use, or the index was just removed
                number = page.number
                refreshed.clear()
            unread = [run_id for run_id in page.unsure if run_id not in refreshed]
            if not unread:
                return page.listing
            refreshed.update(unread)
            for start in range(0, len(unread), _BATCH_SIZE):
                if await self._refresh(unread[start : start + _BATCH_SIZE]) != number:
                    number = None  # saved to a different index than the page came from

    async def children(self, run_id: str, limit: int | None = None) -> tuple[Run, ...]:
        """The children of an array, in the order of their indices; empty for other runs.

        Args:
            run_id: The array.
            limit: Maximum number; those that have started come first.
        """
        bundle = await asyncio.to_thread(self.bundle, run_id)
        head = await asyncio.to_thread(bundle.head)
        if bundle.index is not None or head.array is None:
            return ()
        array = head.array
        await self._catch_up(head.cluster, bundle, _MOMENT)
        selected = await asyncio.to_thread(lambda: [*first_children(bundle, array, limit)])
        observed = await self._ask(head.cluster, [bundle, *selected])

        def views() -> tuple[Run, ...]:
            deadline = Deadline(math.inf if bundle.is_own else BUDGET_S)
            return tuple(
                view_of(child, child.read(), observed.array_facts(child.run_id))
                for child in selected
                if not deadline.is_over()
            )

        return await asyncio.to_thread(views)

    def child_ids(self, run_id: str) -> tuple[str, ...]:
        """The ids of an array's children, in the order of their indices; empty for other runs. May block."""
        bundle = self.bundle(run_id)
        if bundle.index is not None:
            return ()
        return tuple(f"{run_id}.{index}" for index in self._indices(bundle))

    async def act(self, run_id: str, action: ActionKind, change: Change | None = None, *, wait: bool = True) -> Run:
        """Cancel, hold, release, requeue or change a run; returns the updated run.

        Args:
            run_id: The run.
            action: The action.
            change: With the action ``change``: what to change.
            wait: Whether to wait briefly until the engine shows the effect.

        Raises:
            NotFoundError: The run does not exist.
            ConflictError: The action does not fit the run's state.
            DeniedError: It is another user's run.
            UnsupportedError: The engine does not support it.
            InvalidInputError: There is nothing to change, or a change with another action.
        """
        check_change(action, change)
        run = await self.get(run_id)
        bundle = await asyncio.to_thread(self.bundle, run_id)
        await asyncio.to_thread(bundle.check_own, action)
        engine = self._engines.get(run.cluster)
        if action == "cancel" and run.status.ended:
            actions = engine.actions
            if run.status.reason_code == "lost" and actions is not None:
                await actions.act(action, bundle)  # its leftovers may still run
            elif run.status.reason_code == "submit_interrupted" and actions is not None:
                with contextlib.suppress(NotFoundError):  # everything that exists was removed
                    await actions.act(action, bundle)
            return run
        check_action(run, action, engine)
        await carry_out(run, bundle, engine, action, change)
        return await self._wait_until_noticed(run_id, action) if wait else run

    async def _wait_until_noticed(self, run_id: str, action: ActionKind) -> Run:
        """The run once the engine shows a hold or a release, or after a timeout."""
        deadline = time.monotonic() + _NOTICE_TIMEOUT_S
        while True:
            run = await self.get(run_id)
            is_noticed = action not in {"hold", "release"} or (action == "hold") == (run.status.reason_code == "held")
            if is_noticed or time.monotonic() > deadline:
                return run
            await asyncio.sleep(_WAIT_FIRST)

    async def watch(self, run_id: str) -> AsyncGenerator[Run, None]:
        """Yield the run on each change, until it has ended."""
        pause, last = _WAIT_FIRST, None
        while True:
            run = await self.get(run_id)
            if last is None or run.status != last.status:
                yield run
                pause = _WAIT_FIRST
            if run.status.ended:
                return
            last = run
            await asyncio.sleep(pause)
            pause = min(pause * _WAIT_GROWTH, _WAIT_MAX)

    async def wait(self, run_id: str) -> Run:
        """Wait until a run has ended."""
        last = None
        async for run in self.watch(run_id):
            last = run
        return last if last is not None else await self.get(run_id)

    async def explain_wait(self, run_id: str) -> WaitReason:
        """Why a run waits, or that it does not, or that its cluster does not answer."""
        run = await self.get(run_id)
        if run.state == "unknown":
            reason = f"whether it is waiting is unknown now: {run.status.reason}"
            return WaitReason(run_id, reason, run.status.reason_code)
        if run.state != "waiting":
            return WaitReason(run_id, f"it is not waiting, it is {run.state}", run.state)
        if is_repair_reason(run.status.reason, run.status.reason_code):
            return WaitReason(run_id, run.status.reason, run.status.reason_code)
        bundle = await asyncio.to_thread(self.bundle, run_id)
        explainer = self._engines.get(run.cluster).wait_explainer
        if explainer is None:
            return WaitReason(run_id, run.status.reason, run.status.reason_code)
        found = await explainer.explain_wait(bundle)
        if found.reason is None:  # an array's children know more
            return replace(found, reason=run.status.reason, reason_code=run.status.reason_code)
        return found

    async def usage(self, run_id: str) -> Usage | None:
        """A run's usage; None until it has ended.

        Raises:
            NotFoundError: The run does not exist.
        """
        run = await self.get(run_id)
        return await read_usage(run, await asyncio.to_thread(self.bundle, run_id), self._engines)

    def records_folder(self, run_id: str) -> Path:
        """The folder of a run's records and logs; raises as `bundle` does."""
        return self.bundle(run_id).records

    def check_no_array(self, run_id: str, what: str = "metrics") -> None:
        """Check that a run is no array, whose children have what is asked for. May block.

        Args:
            run_id: The run.
            what: What only children have, for the error.

        Raises:
            UnsupportedError: It is an array.
            NotFoundError: The run does not exist.
        """
        bundle = self.bundle(run_id)
        indices = self._indices(bundle) if bundle.index is None else ()
        if indices:
            raise UnsupportedError(
                f"{run_id} is an array; only its children have {what}",
                hint=f"choose a child: {run_id}.{indices[0]}",
                detail={"run_id": run_id, "cluster": bundle.head().cluster},
            )

    def _indices(self, bundle: BundleReader) -> tuple[int, ...]:
        array = bundle.head().array
        return parse_array(array).indices if array is not None else ()

    def _page(self, run_filter: RunFilter) -> _Page:
        """A page from the index, and the runs to refresh before it is valid."""
        self._presence.check()
        position = decode(run_filter.cursor)

        def rows_of(session: Session) -> tuple[Sequence[Row], Sequence[Run], Sequence[str], int]:
            session.refresh(everyone=run_filter.everyone)
            rows = session.newest(
                limit=None if run_filter.limit is None else run_filter.limit + 1,
                before_run=position,
                uid=None if run_filter.everyone else own_uid(),
                cluster=run_filter.cluster,
                notebook=run_filter.notebook,
                states=run_filter.states,
            )
            try:
                runs = [from_plain(Run, row.view) for row in rows[: run_filter.limit]]
            except (KeyError, TypeError, ValueError) as error:
                raise BrokenIndexError(str(error)) from error
            open_ids = [row.run_id for row in rows if not row.ended]
            unsure = dict.fromkeys([*session.list_unsettled(everyone=run_filter.everyone), *open_ids])
            return rows, runs, list(unsure), session.number

        rows, runs, unsure, number = self._index.use(rows_of)
        outdated = [row.run_id for row in rows if row.ended and row.stamp != status_stamp(Path(row.view["bundle"]))]
        has_more = bool(runs) and len(rows) > len(runs)
        last = rows[len(runs) - 1] if has_more else None
        following = encode(last.created, last.run_id) if last is not None else None
        return _Page(RunPage(tuple(runs), following), [*unsure, *outdated], number)

    async def _refresh(self, run_ids: Sequence[str]) -> int:
        """Recompute runs and save them; returns the generation of the index."""
        snapshots, damaged, missing = await asyncio.to_thread(self._read, run_ids)
        observed = EngineObservations()
        open_runs = [snapshot for snapshot in snapshots if not is_finished(snapshot.records)]
        for cluster in {snapshot.records.head.cluster for snapshot in open_runs}:
            bundles = [snapshot.bundle for snapshot in open_runs if snapshot.records.head.cluster == cluster]
            observed.add(await self._ask(cluster, bundles))
        return await asyncio.to_thread(self._store, snapshots, damaged, missing, observed)

    def _read(self, run_ids: Sequence[str]) -> tuple[Sequence[_RunSnapshot], Sequence[Run], Sequence[str]]:
        """Records of readable runs, views of unreadable ones, and the ids of removed ones."""
        snapshots, damaged, missing = [], [], []
        elapsed = 0.0
        folders = self._index.use(lambda session: session.find_folders(run_ids))
        for run_id in run_ids:
            bundle = BundleReader(self._partition, run_id, folders.get(run_id))
            if elapsed > _FOREIGN_BUDGET_S and not bundle.is_own:
                continue  # keep the cached view; a run that was never read waits for the next list
            started_at = time.monotonic()
            try:
                stamp = status_stamp(bundle.folder)
                snapshots.append(_RunSnapshot(bundle, bundle.read(), stamp, _spec_problem(bundle)))
            except (DamagedBundleError, StorageDeniedError) as error:
                damaged.append(damaged_view(bundle, error.message, error.code))
            except NotFoundError:
                missing.append(run_id)
            finally:
                elapsed += 0.0 if bundle.is_own else time.monotonic() - started_at
        return snapshots, damaged, missing

    def _store(
        self,
        snapshots: Sequence[_RunSnapshot],
        damaged: Sequence[Run],
        missing: Sequence[str],
        observed: EngineObservations,
    ) -> int:
        views = [(self._view(snapshot, observed), snapshot.stamp) for snapshot in snapshots]

        def write(session: Session) -> int:
            for run, stamp in views:
                ended = run.status.ended and run.status.reason_code != "submit_interrupted"
                session.put(run.run_id, to_plain(run), created=run.created_at, ended=ended, stamp=stamp)
            for run in damaged:
                session.put(run.run_id, to_plain(run), created=run.created_at, ended=False, stamp=0)
            for run_id in missing:
                session.forget(run_id)
            return session.number

        return self._index.use(write)

    def _view(self, snapshot: _RunSnapshot, observed: EngineObservations) -> Run:
        run = view_of(
            snapshot.bundle, snapshot.records, observed.array_facts(snapshot.bundle.run_id, self._ended, LIST_BUDGET_S)
        )
        if snapshot.problem is None:
            return run
        return as_damaged(run, snapshot.problem.message, snapshot.problem.code)

    async def _catch_up(self, cluster: str, bundle: BundleReader, seconds: float) -> bool:
        if not await asyncio.to_thread(lambda: bundle.is_own):
            return False
        try:
            remote = self._engines.get(cluster).remote_records
            return remote is not None and await remote.catch_up(bundle, seconds)
        except HyperpodError:
            return False  # unknown cluster, or no answer: use the records alone

    async def _ask(self, cluster: str, bundles: Sequence[BundleReader]) -> EngineObservations:
        return await ask_engine(self._engines, self._repairs, cluster, bundles)


def _spec_problem(bundle: BundleReader) -> HyperpodError | None:
    """Why a run's spec cannot be read; None if it can."""
    try:
        bundle.spec()
    except (DamagedBundleError, StorageDeniedError) as error:
        return error
    return None


# --------------------------------------------------------------------------------------------------
# The runs service as the log service needs it.

_A_MOMENT = 2.0
_TIMEOUT = 60.0
_MAX_CACHED = 256
_ENDED_TTL_S = 0.25  # TTL of "has it ended", in seconds, shared by all followers


class RunLogAdapter:
    """Adapts the runs service to the log service (`hyperpod_jlab.logs.service.LogCatalog`)."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        # Even an end is not cached for long: an interrupted submit may be sent again under the same
        # id.
        self._ended: Cache[str, bool] = Cache(_ENDED_TTL_S, limit=_MAX_CACHED)

    def sources(self, run_id: str) -> SourceSet:
        """The run's own logs; for an array, those of all children. May block."""
        bundle = self._runs.bundle(run_id)
        head = bundle.head()
        if head.array is None or bundle.index is not None:
            return RecordStreams(bundle.records, head.processes_per_node)
        return ArrayStreams(bundle.folder / "tasks", head.nodes, head.processes_per_node)

    async def attempt_reasons(self, run_id: str) -> dict[int, str | None]:
        """Why the attempts of a run ended, by number; None if unknown. Those that have not ended are left out."""
        try:
            run = await self._runs.get(run_id)
        except HyperpodError:  # for example a damaged record: show the log without the reasons
            return {}
        newest = max((attempt.number for attempt in run.status.attempts), default=0)
        return {
            attempt.number: None if attempt.reason_code == "lost" else attempt.reason
            for attempt in run.status.attempts
            if attempt.number < newest or attempt.ended_at is not None
        }

    async def catch_up(self, run_id: str, *, follow: bool) -> None:
        """Wait until the nodes' output so far is readable; a follower does not wait for all of it.

        Raises:
            DeniedError: This user has no permission to read it.
        """
        try:
            await self._runs.catch_up(run_id, _A_MOMENT if follow else _TIMEOUT)
        except DeniedError:
            raise
        except HyperpodError:
            return  # the reader of the log gets the reason

    async def is_ended(self, run_id: str) -> bool:
        """Whether the run can start no further attempt."""
        return await self._ended.get(run_id, lambda: self._is_ended(run_id))

    async def _is_ended(self, run_id: str) -> bool:
        ended = (await self._runs.get(run_id)).status.ended
        if ended:
            await self.catch_up(run_id, follow=False)
        return ended
