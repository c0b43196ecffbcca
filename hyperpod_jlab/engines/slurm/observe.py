"""Observations of runs from Slurm: runs in the queue, runs that left it, and why earlier attempts ended."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from hyperpod_jlab.core.errors import HyperpodError, StorageError
from hyperpod_jlab.core.records import AttemptRecords, Claim, Observation, RunRecords
from hyperpod_jlab.core.repair import NodeRepair
from hyperpod_jlab.core.state import StateContext, derive
from hyperpod_jlab.engines.launch import REFUSAL_PREFIX, UNTRUSTED, untrusted_reason
from hyperpod_jlab.engines.slurm.accounting import AccountingHistory, Execution, find_last
from hyperpod_jlab.engines.slurm.client import SlurmClient
from hyperpod_jlab.engines.slurm.job_files import (
    JobFiles,
    PatternValues,
    batch_log_name,
    find_verdict,
    last_output,
    launcher_end_reason,
    read_tail,
)
from hyperpod_jlab.engines.slurm.jobs import ENDED_STATES, WAITING, SlurmJob, scheduler_id
from hyperpod_jlab.engines.slurm.native import FILENAME
from hyperpod_jlab.engines.slurm.queue import Snapshot
from hyperpod_jlab.engines.slurm.reasons import RUNNING, cached_message, find_code
from hyperpod_jlab.engines.slurm.rows import expand
from hyperpod_jlab.engines.slurm.script_jobs import (
    link_output,
    query_scripts,
    read_job_files,
    with_exit,
    with_start,
    write_job_files,
)
from hyperpod_jlab.engines.slurm.tables import SlurmNode
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.partition import Partition, PathMap
from hyperpod_jlab.storage.records import BundleReader

# --------------------------------------------------------------------------------------------------
# Observations of one run: pure functions of its jobs in the queue and its executions so far.

OBSERVER = "slurm"

VERDICTS = {
    "COMPLETED": "COMPLETED",
    "FAILED": "FAILED",
    "CANCELLED": "CANCELLED",
    "TIMEOUT": "TIMEOUT",
    "DEADLINE": "TIMEOUT",
    "OUT_OF_MEMORY": "OOM",
    "NODE_FAIL": "NODE_FAIL",
    "BOOT_FAIL": "NODE_FAIL",
    "PREEMPTED": "PREEMPTED",
    "REQUEUED": "REQUEUED",
    "REVOKED": "LOST",
}
"""A job's final state, and the verdict on its last attempt."""

_END_MESSAGES = {
    "DEADLINE": "it reached its deadline",
    "BOOT_FAIL": "a node did not boot",
    "REVOKED": "it runs on another cluster of the federation",
}


def observe(job: SlurmJob, now: float) -> Observation:
    """The observation of a job in the queue at `now` (Unix seconds)."""
    if job.is_ended:
        return _ended_observation(job, now)
    if job.state in WAITING:
        return Observation(
            time=now,
            observer=OBSERVER,
            scheduler_id=job.scheduler_id,
            state="waiting",
            reason=cached_message(job.reason),
            reason_code=find_code(job),
        )
    return Observation(
        time=now, observer=OBSERVER, scheduler_id=job.scheduler_id, state="running", reason=RUNNING.get(job.state)
    )


def _ended_observation(job: SlurmJob, now: float) -> Observation:
    is_never_satisfied = job.reason == "DependencyNeverSatisfied"
    verdict = "DEPENDENCY" if is_never_satisfied else VERDICTS[job.state]
    return Observation(
        time=_clamp_time(job.ends_at, now),
        observer=OBSERVER,
        scheduler_id=job.scheduler_id,
        state="ended",
        verdict=verdict,
        exit_code=0 if verdict == "COMPLETED" else None,
        reason=_END_MESSAGES.get(job.state),
    )


def observe_execution(execution: Execution, now: float) -> Observation:
    """The observation of a job that left the queue: its last execution."""
    verdict = VERDICTS.get(execution.state, "LOST")
    code = execution.exit_code or (128 + execution.signal if execution.signal else 0)
    return Observation(
        time=_clamp_time(execution.end, now),
        observer=OBSERVER,
        scheduler_id=execution.scheduler_id,
        state="ended",
        verdict=verdict,
        exit_code=0 if verdict == "COMPLETED" else code or None,
        reason=_END_MESSAGES.get(execution.state),
    )


def lost_observation(scheduler_id: str | None, now: float, *, accounting: bool) -> Observation:
    """The observation of a job that Slurm no longer knows."""
    suffix = "" if accounting else ", and the cluster has no accounting"
    return Observation(
        time=now,
        observer=OBSERVER,
        scheduler_id=scheduler_id,
        state="ended",
        verdict="LOST",
        reason=f"Slurm no longer has its job{suffix}",
        reason_code="lost",
    )


def unanswered_observation(error: HyperpodError, now: float) -> Observation:
    """The observation of a job that left the queue while the accounting, which knows its end, does not answer."""
    return Observation(
        time=now,
        observer=OBSERVER,
        state="waiting",
        reason=f"its job has left the Slurm queue, and its exit state is unknown: {error.message}",
        reason_code=error.code,
    )


def _clamp_time(timestamp: float | None, now: float) -> float:
    """The controller's clock may run ahead of ours."""
    return now if timestamp is None else min(timestamp, now)


def newest(jobs: Sequence[SlurmJob], scheduler_id: str | None) -> SlurmJob | None:
    """The job that represents a run: the one that the records name, else an active one, else the newest."""
    names = [job for job in jobs if scheduler_id in {job.job_id, job.array_job_id, job.scheduler_id}]
    alive = [job for job in names or jobs if job.state not in ENDED_STATES]
    return max(alive or names or jobs, key=lambda job: int(job.job_id), default=None)


def parse_restart_count(attempt: AttemptRecords) -> int | None:
    """The execution of the job that an attempt belongs to, counted from 0; restarts within one execution share it."""
    if attempt.claim is None:
        return None
    first, dot, _ = attempt.claim.incarnation.partition(".")
    return int(first) if dot and first.isdecimal() else None


def interrupted_attempts(attempts: Sequence[AttemptRecords], execution_count: int) -> list[AttemptRecords]:
    """The attempts that a requeue ended: the last attempt of each ended execution.

    Args:
        attempts: All attempts of the run.
        execution_count: How many executions of the job have ended: the number of the first one that
            has not.
    """
    last: dict[int, AttemptRecords] = {}
    for attempt in attempts:
        number = parse_restart_count(attempt)
        if number is not None and number < execution_count:
            last[number] = attempt
    return [last[number] for number in sorted(last)]


def requeued_observation(
    attempt: AttemptRecords, execution: Execution | None, now: float, *, log_verdict: str | None = None
) -> Observation:
    """The verdict on an attempt after which the job was requeued.

    Args:
        attempt: The attempt.
        execution: Its execution in the accounting, or None.
        now: Unix seconds.
        log_verdict: The verdict from the log, for clusters without accounting; or None.
    """
    verdict = VERDICTS.get(execution.state, "REQUEUED") if execution else log_verdict or "REQUEUED"
    if verdict in {"COMPLETED", "FAILED"}:  # the job requested its requeue itself
        verdict = "REQUEUED"
    return Observation(
        time=_clamp_time(execution.end if execution else None, now),
        observer=OBSERVER,
        attempt=attempt.number,
        state="waiting",
        verdict=verdict,
        reason_code="recovering",
    )


# --------------------------------------------------------------------------------------------------
# Pending jobs that must not run: duplicates of a run that another job holds, and jobs of runs that
# have succeeded.


class OrphanedJobs:
    """Cancels such jobs, each once. The launcher would not let them run, so they need not wait.

    Args:
        end: Cancels a job by its id.
    """

    def __init__(self, end: Callable[[str], Awaitable[None]]) -> None:
        self._end = end
        self._checked_runs: set[str] = set()

    async def cancel(self, partition: Partition, snapshot: Snapshot, claims: Mapping[str, Claim | None]) -> None:
        """Check this user's pending jobs.

        Args:
            partition: The storage partition with the runs.
            snapshot: The queue.
            claims: For each observed run of this user, except arrays: its claim, or None.
        """
        for run_id, jobs in snapshot.by_run.items():
            waiting = {job.array_job_id for job in jobs if job.is_waiting} - self._checked_runs
            if not waiting:
                continue
            if run_id in claims:
                claim = claims[run_id]
                waiting = waiting - {claim.scheduler_id} if claim is not None else set()
            else:  # a controller that lost contact with its nodes may have requeued it
                self._checked_runs |= waiting
                if not await asyncio.to_thread(_has_succeeded, partition, run_id):
                    continue
            for job_id in waiting:
                self._checked_runs.add(job_id)
                with contextlib.suppress(HyperpodError):
                    await self._end(job_id)


def _has_succeeded(partition: Partition, run_id: str) -> bool:
    """Whether a run's own records say that it succeeded. Blocking."""
    try:
        bundle = BundleReader(partition, run_id)
        if not bundle.is_own:  # another user's run of this id tells nothing about this user's jobs
            return False
        records = bundle.read()
    except HyperpodError:
        return False
    if records.head.array is not None:  # its children have their own records
        return False
    return derive(records, StateContext(time.time(), "alive")).state == "succeeded"


# --------------------------------------------------------------------------------------------------
# Why a job failed whose launchers did not all start or record their end; Slurm itself only reports
# "failed".

_NO_FOLDER = re.compile(r"^slurmstepd-(\S+): error: couldn't chdir to `(.*)': ", re.MULTILINE)
"""slurmstepd's line when the working folder does not exist (src/slurmd/slurmstepd/task.c); it continues in /tmp."""


@dataclass(frozen=True)
class EndedJob:
    """An ended job: its id, and its nodes as a host list."""

    scheduler_id: str
    nodes: str


def explain_end(observation: Observation, bundle: BundleReader, records: RunRecords, job: EndedJob) -> Observation:
    """The observation of a failed job, with the cause if a launcher of the last attempt never started or did not record its end. Blocking."""
    nodes = records.attempts[-1].nodes if records.attempts else ()
    if observation.verdict != "FAILED":
        return observation
    if len(nodes) >= records.head.nodes:
        if all(node.ended_at is not None for node in nodes):
            return observation  # the launchers' records say how they ended
        return observation.model_copy(update={"reason": launcher_end_reason(bundle, job.scheduler_id)})
    path = bundle.folder / "logs" / batch_log_name(job.scheduler_id)
    if not descent.is_file(path):
        if records.attempts or bundle.partition.root not in path.parents:
            return observation
        first = job.nodes or "its first node"
        return _partition_missing(
            observation,
            f"Slurm could not open the log of the run on {first}: the storage partition is not mounted or not writable there",
        )
    unmounted_nodes = {
        match[1] for match in _NO_FOLDER.finditer(read_tail(path)) if bundle.folder.name in match[2].split("/")
    }
    if unmounted_nodes:
        names = ", ".join(sorted(unmounted_nodes))
        return _partition_missing(
            observation,
            f"the folder of the run does not exist on {names}: check that the storage partition is mounted there",
        )
    launcher_reason = launcher_end_reason(bundle, job.scheduler_id)
    last = last_output(bundle, job.scheduler_id)
    reason, code = (launcher_reason if records.attempts else last or launcher_reason, observation.reason_code)
    if last is not None and last.startswith(REFUSAL_PREFIX):
        reason, code = untrusted_reason(bundle.run_id, last), UNTRUSTED
    return observation.model_copy(update={"reason": reason, "reason_code": code})


def _partition_missing(observation: Observation, reason: str) -> Observation:
    return observation.model_copy(update={"reason": reason, "reason_code": "partition_missing"})


_SETTLE_S = 60.0
"""Seconds after a submit during which a job may not be in the queue yet."""

_MAX_TASKS_PER_ROW = 1000
"""Maximum number of tasks of one queue row with observations of their own: an array may have very many pending tasks, all in the array's state."""


class QueueSource(Protocol):
    """The part of the queue that this module uses."""

    async def own_jobs(self) -> Snapshot: ...

    async def all_jobs(self) -> Snapshot: ...

    async def nodes_down(self, names: Iterable[str]) -> bool: ...

    async def hides_jobs(self) -> bool:
        """Whether the cluster hides other users' jobs."""
        ...

    async def cancel(self, job_id: str) -> None: ...


@dataclass(frozen=True)
class _ObservedRun:
    """An observed run: its bundle and its records."""

    bundle: BundleReader
    records: RunRecords
    is_script: bool
    """Whether it is a user's own script, which runs without our launcher."""
    latest_start: float
    """When this process first saw the newest attempt, which had started by then (Unix seconds of this machine's clock)."""

    def is_covered_by(self, snapshot_time: float) -> bool:
        """Whether the snapshot is newer than the newest attempt's start; an older one may still show the job as pending."""
        return snapshot_time >= self.latest_start

    @property
    def scheduler_id(self) -> str | None:
        return scheduler_id(self.records, self.bundle.index)

    @property
    def parent(self) -> str:
        return self.records.head.run_id

    @property
    def is_array(self) -> bool:
        return self.records.head.array is not None and self.bundle.index is None


class RunObserver:
    """Observes runs with one shared queue snapshot.

    Args:
        queue: The queue.
        history: The accounting.
        client: The cluster's commands.
        paths: The partition's paths on this machine and on the nodes.
    """

    def __init__(self, queue: QueueSource, history: AccountingHistory, client: SlurmClient, paths: PathMap) -> None:
        self._queue = queue
        self._history = history
        self._client = client
        self._paths = paths
        self._linked: set[tuple[str, float | None]] = set()
        self._exits: dict[tuple[str, float | None], tuple[int, int]] = {}
        self._recorded_requeues: set[tuple[str, int]] = set()
        self._orphaned_jobs = OrphanedJobs(queue.cancel)
        self._first_seen: dict[tuple[str, int], float] = {}
        self._last_observations: dict[str, Observation] = {}

    async def observe(self, bundles: Sequence[BundleReader]) -> dict[str, Observation]:
        """Observations by run id for each run that Slurm knows; array children have their own.

        Raises:
            UnreachableError: The controller does not answer.
        """
        runs = await asyncio.to_thread(self._read, bundles)
        if not runs:
            return {}
        snapshot = await self._queue.own_jobs()
        observations, missing_runs = await asyncio.to_thread(self._observe_queued, runs, snapshot)
        if missing_runs:
            observations_of_missing, tasks = await self._observe_missing(missing_runs)
            observations |= observations_of_missing
            runs, missing_runs = [*runs, *tasks], [*missing_runs, *tasks]
        await self._complete_scripts(runs, snapshot, observations)
        for run_id, verdict in (await self._record_requeues(runs, snapshot)).items():
            observation = observations.get(run_id)
            if observation is not None and observation.state == "waiting":
                observations[run_id] = observation.model_copy(update={"verdict": verdict})
        claims = {run.parent: run.records.claim for run in runs if run.bundle.is_own and not run.records.head.array}
        await self._orphaned_jobs.cancel(runs[0].bundle.partition, snapshot, claims)
        await asyncio.to_thread(self._record_ends, runs, observations)
        return observations

    def _record_ends(self, runs: Sequence[_ObservedRun], observations: Mapping[str, Observation]) -> None:
        """Record the ends, each once, except those of lost jobs: Slurm forgets them (MinJobAge), and other machines may not be able to query Slurm."""
        for run in runs:
            if not run.bundle.is_own:
                continue
            bundles = {run.bundle.run_id: run.bundle}
            if run.is_array:
                ids = [run_id for run_id in observations if run_id.startswith(f"{run.parent}.")]
                bundles |= {id_: run.bundle.child(int(id_.rpartition(".")[2])) for id_ in ids}
            for run_id, bundle in bundles.items():
                observation = observations.get(run_id)
                if observation is None or observation.state != "ended" or observation.verdict == "LOST":
                    continue
                if self._last_observations.get(run_id) != observation:
                    with contextlib.suppress(StorageError):
                        bundle.add_observation(observation)
                        self._last_observations[run_id] = observation

    def _read(self, bundles: Sequence[BundleReader]) -> list[_ObservedRun]:
        runs = []
        for bundle in bundles:
            with contextlib.suppress(HyperpodError):  # the bundle's readers report a damaged bundle
                records = bundle.read()
                newest_attempt = records.attempts[-1].number if records.attempts else 0
                first_seen = self._first_seen.setdefault((bundle.run_id, newest_attempt), time.time())
                is_script = descent.is_file(bundle.folder / FILENAME)
                runs.append(_ObservedRun(bundle, records, is_script, first_seen))
        return runs

    def _select_jobs(self, run: _ObservedRun, snapshot: Snapshot) -> Sequence[SlurmJob]:
        """The jobs that may belong to a run. Any user can write a run's id into a comment, so once the run's job is known, no other counts."""
        jobs = snapshot.by_run.get(run.parent, ())
        if run.scheduler_id is None:
            return jobs
        job_id = run.scheduler_id.partition("_")[0]
        return [job for job in jobs if job_id in {job.job_id, job.array_job_id}]

    def _observe_queued(
        self, runs: Sequence[_ObservedRun], snapshot: Snapshot
    ) -> tuple[dict[str, Observation], list[_ObservedRun]]:
        observations: dict[str, Observation] = {}
        missing_runs = []
        for run in runs:
            jobs = self._select_jobs(run, snapshot)
            run_observations = _observe_jobs(run, jobs, snapshot.time)
            observations |= run_observations
            if run.bundle.run_id not in run_observations:
                missing_runs.append(run)
        return observations, missing_runs

    async def _observe_missing(
        self, missing_runs: Sequence[_ObservedRun]
    ) -> tuple[dict[str, Observation], list[_ObservedRun]]:
        """Observe runs without a job of this user in the queue: other users' runs, or jobs that left it. Returns the array tasks that it found too."""
        now = time.time()
        settled_runs = [run for run in missing_runs if run.scheduler_id and now - _submitted_at(run.records) > 0]
        everybodys = await self._queue.all_jobs() if settled_runs else None
        observations: dict[str, Observation] = {}
        unresolved = []
        for run in settled_runs:
            jobs = everybodys.by_run.get(run.parent, ()) if everybodys else ()
            owned = [job for job in jobs if run.scheduler_id in {job.job_id, job.scheduler_id, job.array_job_id}]
            run_observations = _observe_jobs(run, owned, everybodys.time if everybodys else now)
            observations |= run_observations
            if run.bundle.run_id not in run_observations:
                unresolved.append(run)
        executions_by_job = await self._history.get(run.scheduler_id or "" for run in unresolved)
        tasks = await asyncio.to_thread(self._read_tasks, unresolved, executions_by_job)
        executions_by_job |= await self._history.get(run.scheduler_id or "" for run in tasks)
        for run in [*unresolved, *tasks]:
            executions = executions_by_job.get(run.scheduler_id or "")
            if not executions and await self._is_hidden(run):
                continue
            observation = await asyncio.to_thread(self._observe_gone, run, executions, now)
            if observation is not None:
                observations[run.bundle.run_id] = observation
        return observations, tasks

    def _read_tasks(
        self, unresolved: Sequence[_ObservedRun], executions_by_job: Mapping[str, Sequence[Execution]]
    ) -> list[_ObservedRun]:
        """The tasks of arrays that left the queue before anybody recorded them; each has its own end in the accounting."""
        run_ids = {run.bundle.run_id for run in unresolved}
        children = []
        for run in unresolved:
            executions = executions_by_job.get(run.scheduler_id or "")
            if not run.is_array or not executions:
                continue
            recorded = frozenset(run.bundle.child_indices())
            indices = {execution.task for execution in executions}
            children += [run.bundle.child(index) for index in indices if index is not None and index not in recorded]
        return self._read([child for child in children if child.run_id not in run_ids])

    async def _is_hidden(self, run: _ObservedRun) -> bool:
        """Whether a run belongs to another user whose jobs are hidden from this user; only its records describe it."""
        return not run.bundle.is_own and await self._queue.hides_jobs()

    def _observe_gone(
        self, run: _ObservedRun, executions: Sequence[Execution] | None, now: float
    ) -> Observation | None:
        last = find_last(executions or ())
        if last is not None and last.is_final:
            observation = observe_execution(last, now)
            if run.is_array:
                return observation.model_copy(update={"scheduler_id": run.scheduler_id})
            if run.is_script:
                self._link_gone(run, last.nodes)
                observation = with_start(observation, last.start, last.nodes)
                return with_exit(observation, last.exit_code, last.signal)
            job = EndedJob(last.scheduler_id, last.nodes)
            return explain_end(observation, run.bundle, run.records, job)
        if now - _submitted_at(run.records) < _SETTLE_S:
            return None
        if self._history.last_error is not None:  # it may know the job
            return None if run.records.attempts else unanswered_observation(self._history.last_error, now)
        if run.is_script and not run.is_array:
            self._link_gone(run, "")
        return lost_observation(run.scheduler_id, now, accounting=self._history.is_available)

    def _link_gone(self, run: _ObservedRun, nodes: str) -> None:
        """Link the log of a script's job that left the queue. Blocking."""
        if run.bundle.is_own:
            parent, _, task = (run.scheduler_id or "").partition("_")
            index = int(task) if task.isdecimal() else None
            host = next(iter(expand(nodes)), "")
            link_output(run.bundle, PatternValues(parent, parent, index, host), self._paths)

    async def _complete_scripts(
        self, runs: Sequence[_ObservedRun], snapshot: Snapshot, observations: dict[str, Observation]
    ) -> None:
        """For this user's scripts in the queue: link their logs, once for each start, and add the exit codes of failed ones."""
        started = [
            (bundle, job)
            for run in runs
            if run.is_script and run.bundle.is_own
            for bundle, job in _pair_with_jobs(run, self._select_jobs(run, snapshot))
            if job.state not in WAITING and job.started_at is not None
        ]
        unlinked = [(bundle, job) for bundle, job in started if (bundle.run_id, job.started_at) not in self._linked]
        unknown = await asyncio.to_thread(
            lambda: {job.job_id: bundle for bundle, job in unlinked if read_job_files(bundle) is None}
        )
        failed = [(bundle, job) for bundle, job in started if job.state == "FAILED"]
        unasked = {job.job_id for _, job in failed if (job.job_id, job.ends_at) not in self._exits}
        known = await query_scripts(self._client, [*unknown, *unasked])
        for bundle, job in failed:
            if job.job_id in known:
                self._exits[job.job_id, job.ends_at] = known[job.job_id].exit
            status = self._exits.get((job.job_id, job.ends_at))
            if status is not None and bundle.run_id in observations:
                observations[bundle.run_id] = with_exit(observations[bundle.run_id], *status)
        files = [(bundle, known[job].files) for job, bundle in unknown.items() if job in known]
        await asyncio.to_thread(self._link, files, unlinked)

    def _link(
        self, files: Sequence[tuple[BundleReader, JobFiles]], jobs: Sequence[tuple[BundleReader, SlurmJob]]
    ) -> None:
        for bundle, job_files in files:
            with contextlib.suppress(StorageError):
                write_job_files(bundle, job_files)
        for bundle, job in jobs:
            host = next(iter(expand(job.node_list)), "")
            values = PatternValues(job.job_id, job.array_job_id, bundle.index, host)
            link_output(bundle, values, self._paths)
            self._linked.add((bundle.run_id, job.started_at))

    async def _record_requeues(self, runs: Sequence[_ObservedRun], snapshot: Snapshot) -> dict[str, str | None]:
        """Record once why each requeued attempt ended; returns the newest verdict on each run."""
        verdicts: dict[str, str | None] = {}
        for run in runs:
            if not run.records.attempts or run.is_array or not run.bundle.is_own:
                continue
            jobs = self._select_jobs(run, snapshot)
            job = newest(_task_jobs(jobs, run.bundle.index), run.scheduler_id)
            restart_count = max((parse_restart_count(attempt) or 0 for attempt in run.records.attempts), default=0)
            waiting = job is not None and _is_requeued(job) and run.is_covered_by(snapshot.time)
            interrupted = interrupted_attempts(run.records.attempts, restart_count + 1 if waiting else restart_count)
            judged_attempts = {recorded.attempt for recorded in run.records.observations if recorded.verdict}
            pending = [
                attempt
                for attempt in interrupted
                if attempt.number not in judged_attempts
                and (run.bundle.run_id, attempt.number) not in self._recorded_requeues
            ]
            if not pending or run.scheduler_id is None:
                continue
            executions_by_job = await self._history.get([run.scheduler_id], executions=len(interrupted))
            executions = executions_by_job.get(run.scheduler_id, ())
            for attempt in pending:
                number = parse_restart_count(attempt) or 0
                execution = executions[number] if number < len(executions) else None
                log_verdict = None if execution is not None else await self._find_verdict(run, attempt)
                observation = requeued_observation(attempt, execution, time.time(), log_verdict=log_verdict)
                self._recorded_requeues.add((run.bundle.run_id, attempt.number))
                verdicts[run.bundle.run_id] = observation.verdict
                with contextlib.suppress(StorageError):
                    await asyncio.to_thread(run.bundle.add_observation, observation)
        return verdicts

    async def _find_verdict(self, run: _ObservedRun, attempt: AttemptRecords) -> str | None:
        """Why an attempt was interrupted, for clusters without accounting: from the job's output, or from the state of its nodes."""
        job = run.scheduler_id or ""
        verdict = await asyncio.to_thread(find_verdict, run.bundle, job, attempt.number)
        if verdict is not None:
            return verdict
        down = await self._queue.nodes_down(node.node for node in attempt.nodes)
        return "NODE_FAIL" if down else None


def _pair_with_jobs(run: _ObservedRun, jobs: Sequence[SlurmJob]) -> Iterable[tuple[BundleReader, SlurmJob]]:
    """A run, or the started children of an array, each with its job."""
    if run.is_array:
        for job in jobs:
            indices = job.first_tasks(2)
            if len(indices) == 1:
                yield run.bundle.child(indices[0]), job
        return
    job_found = newest(_task_jobs(jobs, run.bundle.index), run.scheduler_id)
    if job_found is not None:
        yield run.bundle, job_found


def _submitted_at(records: RunRecords) -> float:
    if records.submission is not None:
        return records.submission.submitted_at
    return records.claim.time if records.claim is not None else records.head.created_at


def _observe_jobs(run: _ObservedRun, jobs: Sequence[SlurmJob], now: float) -> dict[str, Observation]:
    """Observations of a run, or of an array and its children, from these jobs.

    If very many tasks share one job, as pending ones do, only the first get observations.
    """
    if not run.is_array:
        job = newest(_task_jobs(jobs, run.bundle.index), run.scheduler_id)
        if job is None:
            return {}
        return {run.bundle.run_id: _observe_job(run, job, now)}
    if not jobs:
        return {}
    observations: dict[str, Observation] = {}
    for job in jobs:
        observation = observe(job, now)
        if run.is_script:
            observation = with_start(observation, job.started_at, job.node_list)
        observations |= {f"{run.parent}.{index}": observation for index in job.first_tasks(_MAX_TASKS_PER_ROW)}
    observations[run.parent] = _observe_array(jobs, now)
    return observations


def _observe_job(run: _ObservedRun, job: SlurmJob, now: float) -> Observation:
    observation = observe(job, now)
    attempts = run.records.attempts
    if observation.state == "waiting" and attempts:
        if not run.is_covered_by(now):  # it has started since
            return observation.model_copy(update={"state": "running", "reason": None, "reason_code": None})
        if _is_requeued(job):
            number, code = attempts[-1].number, observation.reason_code or "recovering"
            adjusted_time = _after_requeue(run.records, number, observation.time)
            return observation.model_copy(update={"time": adjusted_time, "attempt": number, "reason_code": code})
    if observation.state == "ended":
        observation = observation.model_copy(update={"time": _after_last(run.records, observation.time)})
    if run.is_script:
        return with_start(observation, job.started_at, job.node_list)
    return explain_end(observation, run.bundle, run.records, EndedJob(job.scheduler_id, job.node_list))


def _is_requeued(job: SlurmJob) -> bool:
    return job.state in WAITING and job.state != "SUSPENDED"


def _after_last(records: RunRecords, timestamp: float) -> float:
    """A time after the last observation: the controller's clock may be behind ours."""
    return max([timestamp, *(observation.time + 0.001 for observation in records.observations)])


def _after_requeue(records: RunRecords, attempt: int, timestamp: float) -> float:
    """A time after our own verdict on an attempt, which says why it ended and not what the run waits for now."""
    requeue_times = (
        observation.time + 0.001
        for observation in records.observations
        if observation.state == "waiting" and observation.attempt == attempt
    )
    return max([timestamp, *requeue_times])


def _observe_array(jobs: Sequence[SlurmJob], now: float) -> Observation:
    """The observation of an array as a whole: it waits until one of its tasks starts, and ends when all have ended."""
    alive = [job for job in jobs if not job.is_ended]
    waiting = [job for job in alive if job.state in WAITING]
    if alive and len(waiting) == len(jobs):
        return observe(waiting[0], now)
    if alive:
        return observe(next((job for job in alive if job not in waiting), alive[0]), now).model_copy(
            update={"state": "running", "reason": None, "reason_code": None}
        )
    unsuccessful = next((job for job in jobs if job.state != "COMPLETED"), jobs[0])
    return observe(unsuccessful, now).model_copy(update={"scheduler_id": unsuccessful.array_job_id})


def _task_jobs(jobs: Sequence[SlurmJob], index: int | None) -> Sequence[SlurmJob]:
    return jobs if index is None else [job for job in jobs if job.has_task(index)]


# --------------------------------------------------------------------------------------------------
# Slurm nodes that HyperPod repairs.
#
# HyperPod repairs a node that is set to ``fail`` with the reason ``Action:Replace`` or
# ``Action:Reboot`` (AWS' documentation of manual recovery). The node keeps its name, and the reason
# until the repair ends.

_REPAIR_REASON = re.compile(r"Action:(Replace|Reboot)")
_ACTIONS: Mapping[str, NodeRepair] = {"Replace": "replace", "Reboot": "reboot"}


def ordered_repairs(nodes: Mapping[str, SlurmNode]) -> dict[str, NodeRepair]:
    """HyperPod's repair actions by node name, from the nodes' reasons."""
    return {
        name: _ACTIONS[match[1]]
        for name, node in nodes.items()
        if node.reason and not node.is_usable and (match := _REPAIR_REASON.fullmatch(node.reason.strip()))
    }
