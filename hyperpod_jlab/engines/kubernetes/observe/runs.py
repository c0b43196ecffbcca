"""Observation of runs: their state and their pods' output."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_core import from_json

from hyperpod_jlab.core.errors import DeniedError, HyperpodError, StorageError
from hyperpod_jlab.core.records import Observation, RunRecords
from hyperpod_jlab.core.repair import NodeRepair
from hyperpod_jlab.core.state import StateContext, derive
from hyperpod_jlab.engines.kubernetes.api.rights import ClusterConnection
from hyperpod_jlab.engines.kubernetes.kinds.kind import OBSERVER
from hyperpod_jlab.engines.kubernetes.kinds.pytorch_job import is_requested
from hyperpod_jlab.engines.kubernetes.observe.native_recorder import PodRecorder
from hyperpod_jlab.engines.kubernetes.observe.pod_logs import PodLogFollower, is_done, mark_done, note_lost
from hyperpod_jlab.engines.kubernetes.observe.pods import JobRow, parse_indices
from hyperpod_jlab.engines.kubernetes.observe.poll import RunLocation, RunPoller, RunSnapshot, task_location
from hyperpod_jlab.engines.kubernetes.observe.verdicts import (
    POD_ENDED,
    between_attempts_observation,
    explain_end,
    interrupted_end,
    refine,
    retries_exhausted,
)
from hyperpod_jlab.engines.kubernetes.tables.lists import NODES, ListCache
from hyperpod_jlab.engines.kubernetes.tables.nodes import HEALTH_LABEL, node_facts
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.records import BundleReader

# --------------------------------------------------------------------------------------------------
# Runs whose launchers have ended although their job continues: failed pods are restarted, by a
# runtime without limit, with OnFailure up to the job's limit.

_MAX_BYTES = 1 << 20


def has_restart_left(job_row: JobRow) -> bool:
    """Whether a job may restart pods that have ended; jobs that HyperPod resumes have OnFailure."""
    return job_row.kind.restarts_forever or is_requested(job_row.job)


def is_over(bundle: BundleReader, job_row: JobRow, records: RunRecords, observation: Observation) -> Observation | None:
    """The end of a failed run, as its node 0 recorded it; None while its job decides. Blocking.

    Args:
        bundle: The run.
        job_row: Its job.
        records: Its records.
        observation: The job's observation: that it continues.
    """
    if not has_restart_left(job_row) or not records.attempts:
        return None
    is_cancelled = any(
        recorded.observer == OBSERVER and recorded.verdict and recorded.state == "ended"
        for recorded in records.observations
    )
    launch_plan = _read_plan(bundle)
    code = launch_plan.get("exit_code")
    if launch_plan.get("scheduler_id") != observation.scheduler_id or not isinstance(code, int) or code == 0:
        return None
    nodes = records.attempts[-1].nodes
    end_times = [node.ended_at for node in nodes if node.ended_at is not None]
    if not is_cancelled and (len(end_times) < records.head.nodes or len(end_times) < len(nodes)):
        return None
    changes = {
        "time": float(launch_plan.get("time") or observation.time),
        "state": "ended",
        "verdict": "FAILED",
        # Node 0 ends with its own exit code, which may not be the first failure's.
        "exit_code": None if any(node.exit_code for node in nodes) else code,
        "reason": None,
        "reason_code": None,
    }
    return observation.model_copy(update=changes)


def _read_plan(bundle: BundleReader) -> dict[str, Any]:
    try:
        plan = from_json(descent.read(bundle.records / "status" / "over" / "node-0.json", _MAX_BYTES))
    except (OSError, ValueError):
        return {}
    return plan if isinstance(plan, dict) else {}


# --------------------------------------------------------------------------------------------------
# Cleanup after a run: pods that continue after their job has failed, which the operator leaves
# alone.

_LOG = logging.getLogger(__name__)

TIMEOUT = 60.0
"""Seconds after a job's end in which its pods may end by themselves."""


class OrphanedPods:
    """Deletes such pods, each once, and jobs that continue though their run has failed; without the permission, they end by themselves.

    Args:
        connection: The cluster.
    """

    def __init__(self, connection: ClusterConnection) -> None:
        self._connection = connection
        self._seen_runs: set[str] = set()

    async def end(
        self, bundle: BundleReader, location: RunLocation, snapshot: RunSnapshot, observation: Observation
    ) -> None:
        """Check a run that has ended.

        Args:
            bundle: The run.
            location: Its job.
            snapshot: Its snapshot.
            observation: Its end.
        """
        remaining_children = [
            pod for pod in snapshot.pods if not (pod.is_ended or pod.state.deleting or pod.uid in self._seen_runs)
        ]
        if not remaining_children or snapshot.job is None or location.native or location.task is not None:
            return
        ended_observation = snapshot.job.observe(snapshot.time)
        is_running = ended_observation.state != "ended"
        is_overdue = snapshot.time - (observation if is_running else ended_observation).time > TIMEOUT
        if not is_overdue or not await asyncio.to_thread(lambda: bundle.is_own):
            return
        self._seen_runs.update(pod.uid for pod in remaining_children)
        if is_running and not location.kind.restarts_forever:
            return
        if is_running:  # its job would recreate its pods
            await self._delete(f"{location.path}/{location.name}", snapshot.job.uid)
            return
        for pod in remaining_children:
            await self._delete(f"/api/v1/namespaces/{location.namespace}/pods/{pod.name}", pod.uid)

    async def _delete(self, path: str, uid: str) -> None:
        client = await self._connection.client()
        with contextlib.suppress(HyperpodError):
            await client.delete(path, {"preconditions": {"uid": uid}})


# --------------------------------------------------------------------------------------------------
# Nodes that HyperPod repairs, as marked by their labels.

_ACTIONS: Mapping[str, NodeRepair] = {
    "Unschedulable": "repair",
    "UnschedulablePendingReplacement": "replace",
    "UnschedulablePendingReboot": "reboot",
}


async def find_repairs(list_cache: ListCache) -> dict[str, NodeRepair]:
    """HyperPod's repairs by node name; empty if this user may not read nodes.

    Raises:
        UnreachableError: The cluster does not answer.
    """
    nodes = await list_cache.everywhere(NODES, node_facts)
    repairs: dict[str, NodeRepair] = {}
    for node in nodes.rows or ():
        action = _ACTIONS.get(dict(node.labels).get(HEALTH_LABEL, ""))
        if action is not None:
            repairs[node.name] = action
    return repairs


# --------------------------------------------------------------------------------------------------
# Observations of whole runs: a run is ending, its object is gone, an array has ended.

_SETTLE_S = 20.0
"""Seconds after a submit in which the API server may not have the job yet."""


def ending_observation(observation: Observation, now: float) -> Observation:
    """The observation of an ended run whose pods may still have output."""
    return observation.model_copy(
        update={
            "time": now,
            "state": "running",
            "verdict": None,
            "exit_code": None,
            "reason": "its last nodes are stopping",
            "reason_code": "ending",
        }
    )


def after_recorded(records: RunRecords, observation: Observation) -> Observation:
    """Move an observation after the last recorded one: the cluster's clock may be behind ours."""
    timestamp = max([observation.time, *(recorded.time + 0.001 for recorded in records.observations)])
    return observation.model_copy(update={"time": timestamp})


def is_new(records: RunRecords, now: float) -> bool:
    """Whether a run was submitted so recently that its job may not be visible yet, or never was."""
    if records.attempts or records.claim is not None:
        return False
    sent = records.submission
    return sent is None or now - sent.submitted_at < _SETTLE_S


def is_reported(records: RunRecords) -> bool:
    """Whether the cluster's observation of the end is recorded."""
    return any(
        recorded.observer == OBSERVER and recorded.verdict and recorded.state == "ended"
        for recorded in records.observations
    )


def array_observation(
    bundle: BundleReader, location: RunLocation, snapshot: RunSnapshot, *, is_open: bool
) -> Observation | None:
    """The observation of an array as a whole, which ends once all of its tasks have ended. Blocking."""
    records = bundle.read()
    if snapshot.job is None:
        return gone_observation(location, records, snapshot)
    observation = snapshot.job.observe(snapshot.time)
    if observation.state != "ended":
        return observation
    if is_open:
        return ending_observation(observation, snapshot.time)
    with contextlib.suppress(StorageError):
        bundle.add_observation(after_recorded(records, observation))
    return observation


def gone_observation(location: RunLocation, records: RunRecords, snapshot: RunSnapshot) -> Observation | None:
    """The observation of a run whose object was deleted; None if it was never seen."""
    if is_reported(records) or is_new(records, snapshot.time):
        return None
    return Observation(
        time=max([snapshot.time, *(recorded.time + 0.001 for recorded in records.observations)]),
        observer=OBSERVER,
        scheduler_id=location.name,
        state="ended",
        verdict="LOST",
        reason=f"its {location.kind.name} {location.name} was removed from the cluster",
        reason_code="lost",
    )


# --------------------------------------------------------------------------------------------------
# The array tasks to observe: those with active pods, and those whose end is not known yet. Methods
# may block.


class ArrayTaskTracker:
    """Remembers which tasks are finished, so that each task of a large array is observed once."""

    def __init__(self) -> None:
        self._settled_tasks: dict[str, set[int]] = {}

    def find_due(
        self, bundle: BundleReader, location: RunLocation, snapshot: RunSnapshot
    ) -> list[tuple[BundleReader, RunLocation]]:
        """The tasks of an array to observe; the records or the array describe all others."""
        tasks, indices = snapshot.tasks(), parse_indices(location.array or "")
        settled_tasks = self._settled_tasks.setdefault(bundle.run_id, set())
        ended_tasks: set[int] = set()
        if bundle.is_own:  # another user's bundle is never written to
            ended_tasks = {*tasks.failed} - settled_tasks
        records = bundle.read()
        children = []
        for number in sorted(tasks.live | ended_tasks):
            if number >= len(indices):
                continue
            child = bundle.child(indices[number], records)
            if number in ended_tasks and _is_ended(child):
                settled_tasks.add(number)
            else:
                children.append((child, task_location(location, indices[number])))
        return children


def _is_ended(child: BundleReader) -> bool:
    return derive(child.read(), StateContext(time.time(), "alive")).ended


def has_open_task(array: str, observations: Mapping[str, Observation]) -> bool:
    """Whether a recorded task of an array has not ended."""
    return any(
        observation.state != "ended" for run_id, observation in observations.items() if run_id.startswith(f"{array}.")
    )


_FINAL_READ_S = 30.0
"""Seconds after a run's end in which it counts as running while its last pods end and their final output is fetched."""

_REMOVAL = 10.0
"""Seconds after a run's end in which deleted pods may be followed by their job: deleting a namespace deletes pods first."""


class RunTracker:
    """The runs of one cluster.

    Args:
        connection: The cluster.
    """

    def __init__(self, connection: ClusterConnection) -> None:
        self._poller = RunPoller(connection)
        self._pod_logs = PodLogFollower(connection, self._poller)
        self._leftovers = OrphanedPods(connection)
        self._arrays = ArrayTaskTracker()
        self._cleanup_tasks: dict[str, asyncio.Task[bool]] = {}
        self._is_active = False

    @property
    def poller(self) -> RunPoller:
        """Polls the runs."""
        return self._poller

    def mark_active(self) -> None:
        """Note continued use: lists are watched, and pod output is fetched as it arrives."""
        self._is_active = True
        self._poller.mark_active()

    def forget(self) -> None:
        """Invalidate cached snapshots after a possible change."""
        self._poller.forget()

    def refresh(self) -> None:
        """The same; lists are watched, and so always current."""
        self._poller.forget()

    async def observe(self, bundles: Sequence[BundleReader]) -> dict[str, Observation]:
        """Observations of these runs."""
        locations = await self._locate_all(bundles)
        snapshots = await self._poller.get_all([location for _, location in locations])
        arrays = [(bundle, location) for bundle, location in locations if location.is_array]
        locations = [(bundle, location) for bundle, location in locations if not location.is_array]
        if arrays:
            run_ids = {location.run_id for _, location in locations}
            find_due = await asyncio.to_thread(self._find_due_tasks, arrays, snapshots)
            locations += [(bundle, location) for bundle, location in find_due if location.run_id not in run_ids]
            snapshots |= await self._poller.get_all([location for _, location in locations])
        observations, unfinished, uncertain = await asyncio.to_thread(self._observe_all, locations, snapshots)
        for bundle, location, records in uncertain:
            snapshots[location.run_id] = fresh = await self._poller.refresh(location)
            observation = await asyncio.to_thread(self._observe_one, bundle, location, fresh, records)
            if isinstance(observation, Observation):
                observations[location.run_id] = observation
        for bundle, location in locations:
            snapshot, observation = snapshots[location.run_id], observations.get(location.run_id)
            if self._is_active and location.run_id in unfinished:
                self._start_cleanup(bundle, location, snapshot)
            has_ended = observation is not None and observation.state == "ended"
            if observation is not None and has_ended:
                await self._leftovers.end(bundle, location, snapshot, observation)
        for bundle, location in arrays:
            is_open = has_open_task(location.run_id, observations)
            snapshot = snapshots[location.run_id]
            observation = await asyncio.to_thread(array_observation, bundle, location, snapshot, is_open=is_open)
            observations |= {location.run_id: observation} if observation is not None else {}
        return observations

    def _find_due_tasks(
        self, arrays: Sequence[tuple[BundleReader, RunLocation]], snapshots: Mapping[str, RunSnapshot]
    ) -> list[tuple[BundleReader, RunLocation]]:
        """The array tasks to observe. Blocking."""
        return [
            task
            for bundle, location in arrays
            for task in self._arrays.find_due(bundle, location, snapshots[location.run_id])
        ]

    def _start_cleanup(self, bundle: BundleReader, location: RunLocation, snapshot: RunSnapshot) -> None:
        """Continue to fetch a run's pod output; for an ended run, fetch all of it and then stop."""
        if snapshot.job is not None and snapshot.job.observe(snapshot.time).state != "ended":
            self._pod_logs.follow(bundle, location)
        elif location.run_id not in self._cleanup_tasks:
            task = asyncio.create_task(self.catch_up(bundle, _FINAL_READ_S), name="hyperpod-end")
            self._cleanup_tasks[location.run_id] = task
            task.add_done_callback(lambda finished_task: self._on_cleanup_done(location.run_id, finished_task))

    def _on_cleanup_done(self, run_id: str, task: asyncio.Task[bool]) -> None:
        del self._cleanup_tasks[run_id]
        if not task.cancelled() and task.exception() is not None:
            _LOG.debug("the final logs of %s cannot be fetched: %s", run_id, task.exception())

    async def catch_up(self, bundle: BundleReader, seconds: float) -> bool:
        """Fetch a run's current pod output if it is a user's own manifest; only for this user's runs.

        Args:
            bundle: The run.
            seconds: The timeout; after it, the fetch continues in the background.

        Returns:
            Whether the bundle may have changed.

        Raises:
            DeniedError: This user may not read the pods, and no other process has fetched their
                output.
        """
        if not await asyncio.to_thread(lambda: bundle.is_own):
            return False
        location = await self._poller.locate(bundle)
        if not location.native or await asyncio.to_thread(is_done, bundle):
            return False
        is_complete = await self._pod_logs.catch_up(bundle, location, seconds)
        if is_complete is not None:
            snapshot = (await self._poller.get_all([location]))[location.run_id]
            if is_complete.issuperset(pod.uid for pod in snapshot.pods):  # otherwise a new pod has appeared meanwhile
                await asyncio.to_thread(_record_end, bundle, snapshot)
        problem = self._pod_logs.problem(bundle.run_id)
        if isinstance(problem, DeniedError) and not await asyncio.to_thread(_has_logs, bundle):
            raise problem
        return True

    async def close(self) -> None:
        """Stop fetching."""
        cleanup_tasks = list(self._cleanup_tasks.values())
        for task in cleanup_tasks:
            task.cancel()
        await asyncio.gather(*cleanup_tasks, return_exceptions=True)
        await self._pod_logs.close()

    async def _locate_all(self, bundles: Sequence[BundleReader]) -> list[tuple[BundleReader, RunLocation]]:
        located = []
        for bundle in bundles:
            with contextlib.suppress(StorageError):  # the records contain what is known
                located.append((bundle, await self._poller.locate(bundle)))
        return located

    def _observe_all(
        self, locations: Sequence[tuple[BundleReader, RunLocation]], snapshots: Mapping[str, RunSnapshot]
    ) -> tuple[dict[str, Observation], set[str], list[tuple[BundleReader, RunLocation, RunRecords]]]:
        """Observations by run id, the runs with output left to fetch, and the runs to poll again with their records. Blocking."""
        observations, unfinished, uncertain = {}, set(), []
        for bundle, location in locations:
            observation = self._observe_one(bundle, location, snapshots[location.run_id])
            if isinstance(observation, RunRecords):
                uncertain.append((bundle, location, observation))
            elif observation is not None:
                observations[bundle.run_id] = observation
            fetched = location.native and bundle.is_own
            if fetched and snapshots[location.run_id].pods and not is_done(bundle):
                unfinished.add(location.run_id)
        return observations, unfinished, uncertain

    def _observe_one(
        self,
        bundle: BundleReader,
        location: RunLocation,
        snapshot: RunSnapshot,
        known_records: RunRecords | None = None,
    ) -> Observation | RunRecords | None:
        """The observation of a run, or its records if they may be newer than the snapshot. Blocking.

        Args:
            bundle: The run.
            location: Its job.
            snapshot: Its snapshot.
            known_records: Its records as read before the snapshot.
        """
        if location.native and snapshot.pods and bundle.is_own:
            PodRecorder(bundle, location.name).record(snapshot.pods)
        records = known_records or bundle.read()
        if snapshot.job is None:
            return gone_observation(location, records, snapshot)
        if location.task is not None and _is_cancelled(records, snapshot):
            return None
        retried = location.native and location.kind.replaces_failed_pods
        observation = refine(snapshot.job.observe(snapshot.time), snapshot.pods, records.head.nodes, retried=retried)
        if location.native:
            observation = retries_exhausted(observation, snapshot.job.job, records)
        if observation.state != "ended" and not location.native:
            observation = is_over(bundle, snapshot.job, records, observation) or observation
        if observation.state != "ended":
            if location.native and _is_retried(records):
                return _observe_retry(bundle, records, snapshot, observation, retried=True)
            if known_records is None and _may_be_stale(records, snapshot, observation):
                return records
            return _observe_retry(bundle, records, snapshot, observation)
        if not self._is_settled(bundle, location, snapshot) and snapshot.time - observation.time < _FINAL_READ_S:
            return ending_observation(observation, snapshot.time)
        observation = explain_end(observation, bundle, records)
        if observation.reason_code == POD_ENDED and snapshot.time - observation.time < _REMOVAL:
            return ending_observation(observation, snapshot.time)
        if location.task is None or not is_reported(records):  # there may be many tasks
            with contextlib.suppress(StorageError):  # another user's bundle is not written to
                bundle.add_observation(after_recorded(records, observation))
        return observation

    def _is_settled(self, bundle: BundleReader, location: RunLocation, snapshot: RunSnapshot) -> bool:
        """Whether the data of an ended run is complete. Blocking."""
        if location.native:
            return is_done(bundle)
        may_restart = snapshot.job is not None and has_restart_left(snapshot.job)
        return may_restart or all(pod.is_ended for pod in snapshot.pods)


def _is_cancelled(records: RunRecords, snapshot: RunSnapshot) -> bool:
    """Whether a task was cancelled and is no longer active, or had not started; its Job may take a moment to count it as failed."""
    if not is_reported(records):
        return False
    if not records.attempts:
        return True
    is_requested = any(action.action == "cancel" for action in records.actions)
    return is_requested and not any(pod.main.container_id and not pod.is_ended for pod in snapshot.pods)


def _record_end(bundle: BundleReader, snapshot: RunSnapshot) -> None:
    """Record that the output of a run is complete, after its job has ended or was deleted. Blocking."""
    records = bundle.read()
    if snapshot.job is None:
        if is_new(records, snapshot.time):
            return
    elif snapshot.job.observe(snapshot.time).state != "ended":
        return
    if not _has_logs(bundle):
        note_lost(bundle)
    mark_done(bundle)


def _has_logs(bundle: BundleReader) -> bool:
    with contextlib.suppress(OSError):
        return any(name.startswith("attempt-") for name in descent.list_names(bundle.records / "logs"))
    return False


def _may_be_stale(records: RunRecords, snapshot: RunSnapshot, observation: Observation) -> bool:
    """Whether an observation that ends the newest attempt may predate its start: its records arrived during the query, or a watch is behind."""
    if not _is_waiting_after_attempt(records, snapshot, observation):
        return False
    number = records.attempts[-1].number
    return not any(recorded.attempt == number and recorded.verdict for recorded in records.observations)


def _is_waiting_after_attempt(records: RunRecords, snapshot: RunSnapshot, observation: Observation) -> bool:
    has_running_pod = any(pod.main.container_id and not pod.is_ended for pod in snapshot.pods)
    return observation.state == "waiting" and bool(records.attempts) and not has_running_pod


def _is_retried(records: RunRecords) -> bool:
    """Whether the newest attempt failed by itself, so that its end needs no explanation."""
    nodes = records.attempts[-1].nodes if records.attempts else ()
    return bool(nodes) and all(node.exit_code for node in nodes)


def _observe_retry(
    bundle: BundleReader, records: RunRecords, snapshot: RunSnapshot, observation: Observation, *, retried: bool = False
) -> Observation:
    """The observation of a run that continues. Blocking.

    If it waits after an attempt, the attempt is over, and the cause is recorded unless it is
    `retried`.
    """
    if observation.state == "running":
        launchers = _launcher_observation(records)
        if launchers is None:
            return observation
        return after_recorded(records, between_attempts_observation(observation, snapshot.pods, launchers))
    if not _is_waiting_after_attempt(records, snapshot, observation):
        return observation
    number = records.attempts[-1].number
    observation = after_recorded(records, observation).model_copy(
        update={"attempt": number, "reason_code": observation.reason_code or "recovering"}
    )
    if retried or any(recorded.attempt == number and recorded.verdict for recorded in records.observations):
        return observation
    verdict, reason = interrupted_end(snapshot.pods)
    with contextlib.suppress(StorageError):
        bundle.add_observation(observation.model_copy(update={"verdict": verdict, "reason": reason}))
    return observation


def _launcher_observation(records: RunRecords) -> Observation | None:
    """The launchers' last observation, if it says that the attempt after the newest one waits."""
    launcher_observations = [recorded for recorded in records.observations if recorded.observer == "launcher"]
    newest = max(launcher_observations, key=lambda recorded: recorded.time, default=None)
    if newest is None or newest.state != "waiting" or not records.attempts:
        return None
    return newest if newest.attempt == records.attempts[-1].number else None
