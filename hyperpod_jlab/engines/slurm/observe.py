"""What Slurm says of runs of ours: of those in the queue, of those that left it, and of what ended their earlier attempts."""

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
from hyperpod_jlab.engines.launch import REFUSAL, UNTRUSTED, refusal
from hyperpod_jlab.engines.slurm.accounting import AccountingHistory, Execution
from hyperpod_jlab.engines.slurm.job_files import (
    batch_log_name,
    last_words,
    launcher_end,
    read_end,
    verdict_in_log,
)
from hyperpod_jlab.engines.slurm.jobs import ENDED, WAITING, SlurmJob, scheduler_id
from hyperpod_jlab.engines.slurm.native_recorder import NativeRecorder
from hyperpod_jlab.engines.slurm.queue import Snapshot
from hyperpod_jlab.engines.slurm.reasons import RUNNING, code_of, words_of
from hyperpod_jlab.engines.slurm.tables import SlurmNode
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.partition import Partition
from hyperpod_jlab.storage.records import BundleReader

# --------------------------------------------------------------------------------------------------
# What Slurm says of a run, as observations: pure functions of its jobs in the queue and of its executions so far.

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
"""A job's last state, and the verdict on its last attempt."""

_ENDED = {
    "DEADLINE": "it reached its deadline",
    "BOOT_FAIL": "a node did not boot",
    "REVOKED": "it runs on another cluster of the federation",
}


def observe(job: SlurmJob, now: float) -> Observation:
    """The observation of a job in the queue, seen at `now` (Unix seconds)."""
    if job.ended:
        return _ended(job, now)
    if job.state in WAITING:
        return Observation(
            time=now,
            observer=OBSERVER,
            scheduler_id=job.scheduler_id,
            state="waiting",
            reason=words_of(job.reason),
            reason_code=code_of(job),
        )
    return Observation(
        time=now,
        observer=OBSERVER,
        scheduler_id=job.scheduler_id,
        state="running",
        reason=RUNNING.get(job.state),
    )


def _ended(job: SlurmJob, now: float) -> Observation:
    never = job.reason == "DependencyNeverSatisfied"
    verdict = "DEPENDENCY" if never else VERDICTS[job.state]
    return Observation(
        time=_not_later(job.ends, now),
        observer=OBSERVER,
        scheduler_id=job.scheduler_id,
        state="ended",
        verdict=verdict,
        exit_code=0 if verdict == "COMPLETED" else None,
        reason=_ENDED.get(job.state),
    )


def observe_execution(execution: Execution, now: float) -> Observation:
    """The observation of a job that has left the queue: its last execution."""
    verdict = VERDICTS.get(execution.state, "LOST")
    code = execution.exit_code or (128 + execution.signal if execution.signal else 0)
    return Observation(
        time=_not_later(execution.end, now),
        observer=OBSERVER,
        scheduler_id=execution.scheduler_id,
        state="ended",
        verdict=verdict,
        exit_code=0 if verdict == "COMPLETED" else code or None,
        reason=_ENDED.get(execution.state),
    )


def lost(scheduler_id: str | None, now: float, *, accounting: bool) -> Observation:
    """The observation of a job that Slurm does not know any more."""
    kept = "" if accounting else ", and the cluster has no accounting"
    return Observation(
        time=now,
        observer=OBSERVER,
        scheduler_id=scheduler_id,
        state="ended",
        verdict="LOST",
        reason=f"Slurm no longer has its job{kept}",
        reason_code="lost",
    )


def unasked(error: HyperpodError, now: float) -> Observation:
    """The observation of a job that left the queue while the accounting, which knows how, does not answer."""
    return Observation(
        time=now,
        observer=OBSERVER,
        state="waiting",
        reason=f"its job has left the Slurm queue, and its exit state is unknown: {error.message}",
        reason_code=error.code,
    )


def _not_later(moment: float | None, now: float) -> float:
    """The controller's clock may run ahead of ours."""
    return now if moment is None else min(moment, now)


def newest(jobs: Sequence[SlurmJob], scheduler_id: str | None) -> SlurmJob | None:
    """The job that counts for a run: the one that the records name, else one that lives, else the newest."""
    named = [
        job for job in jobs if scheduler_id in {job.job_id, job.array_job_id, job.scheduler_id}
    ]
    alive = [job for job in named or jobs if job.state not in ENDED]
    return max(alive or named or jobs, key=lambda job: int(job.job_id), default=None)


def round_of(attempt: AttemptRecords) -> int | None:
    """Which execution of the job an attempt belongs to, counted from 0: restarts within one execution have the same."""
    if attempt.claim is None:
        return None
    first, dot, _ = attempt.claim.incarnation.partition(".")
    return int(first) if dot and first.isdecimal() else None


def cut_short(attempts: Sequence[AttemptRecords], executions_begun: int) -> list[AttemptRecords]:
    """The attempts that a requeue ended: the last ones of executions that are over.

    Args:
        attempts: All attempts of the run.
        executions_begun: How many executions of the job have begun and are not to be looked at: the number of the first that is not over.
    """
    last: dict[int, AttemptRecords] = {}
    for attempt in attempts:
        number = round_of(attempt)
        if number is not None and number < executions_begun:
            last[number] = attempt
    return [last[number] for number in sorted(last)]


def requeued(
    attempt: AttemptRecords, execution: Execution | None, now: float, *, told: str | None = None
) -> Observation:
    """The verdict on an attempt after which the job went back into the queue.

    Args:
        attempt: The attempt.
        execution: What the accounting says of it, or None.
        now: Unix seconds.
        told: What else tells why, where there is no accounting: a verdict, or None.
    """
    verdict = VERDICTS.get(execution.state, "REQUEUED") if execution else told or "REQUEUED"
    if verdict in {"COMPLETED", "FAILED"}:  # it asked for its requeue itself
        verdict = "REQUEUED"
    return Observation(
        time=_not_later(execution.end if execution else None, now),
        observer=OBSERVER,
        attempt=attempt.number,
        state="waiting",
        verdict=verdict,
        reason_code="recovering",
    )


# --------------------------------------------------------------------------------------------------
# Waiting jobs that are to run nothing: doubles of a run that another job holds, and those of runs that have succeeded.


class OrphanedJobs:
    """Ends such jobs, each once. The launcher would let none of them run, so that none need wait.

    Args:
        end: Ends a job by its id.
    """

    def __init__(self, end: Callable[[str], Awaitable[None]]) -> None:
        self._end = end
        self._seen: set[str] = set()

    async def end(
        self, partition: Partition, snapshot: Snapshot, claims: Mapping[str, Claim | None]
    ) -> None:
        """Look through this user's waiting jobs.

        Args:
            partition: Where the runs lie.
            snapshot: The queue.
            claims: Of this user's runs that are asked about just now, arrays left out: who holds them, or None.
        """
        for run_id, jobs in snapshot.by_run.items():
            waiting = {job.array_job_id for job in jobs if job.waiting} - self._seen
            if not waiting:
                continue
            if run_id in claims:
                claim = claims[run_id]
                waiting = waiting - {claim.scheduler_id} if claim is not None else set()
            else:  # a controller that lost sight of its nodes may have put it back into the queue
                self._seen |= waiting
                if not await asyncio.to_thread(_has_succeeded, partition, run_id):
                    continue
            for job_id in waiting:
                self._seen.add(job_id)
                with contextlib.suppress(HyperpodError):
                    await self._end(job_id)


def _has_succeeded(partition: Partition, run_id: str) -> bool:
    """Whether a run's own records say that it has. Blocking."""
    try:
        bundle = BundleReader(partition, run_id)
        if not bundle.is_own:  # another user's run of this id says nothing of this user's jobs
            return False
        records = bundle.read()
    except HyperpodError:
        return False
    if records.head.array is not None:  # its children have records of their own
        return False
    return derive(records, StateContext(time.time(), "alive")).state == "succeeded"


# --------------------------------------------------------------------------------------------------
# Why a job failed before all of its launchers had begun: what Slurm says is "failed" and no more.

_NO_FOLDER = re.compile(r"^slurmstepd-(\S+): error: couldn't chdir to `(.*)': ", re.MULTILINE)
"""What slurmstepd says of a working folder that is not there (src/slurmd/slurmstepd/task.c); it goes on in /tmp."""


@dataclass(frozen=True)
class EndedJob:
    """A job that has ended: its id, and the nodes that it had as a host list."""

    scheduler_id: str
    nodes: str


def explained(
    word: Observation, bundle: BundleReader, records: RunRecords, job: EndedJob
) -> Observation:
    """The word on a job that failed; with why, when some launcher of its last attempt never began. Blocking."""
    begun = records.attempts[-1].nodes if records.attempts else ()
    if word.verdict != "FAILED":
        return word
    if len(begun) >= records.head.nodes:
        if all(node.ended_at is not None for node in begun):
            return word  # they say themselves how they ended
        return word.model_copy(update={"reason": launcher_end(bundle, job.scheduler_id)})
    path = bundle.folder / "logs" / batch_log_name(job.scheduler_id)
    if not descent.is_file(path):
        if records.attempts or bundle.partition.root not in path.parents:
            return word
        first = job.nodes or "its first node"
        return _unseen(
            word,
            f"Slurm could not open the log of the run on {first}: the storage partition is not mounted or not writable there",
        )
    blind = {
        found[1]
        for found in _NO_FOLDER.finditer(read_end(path))
        if bundle.folder.name in found[2].split("/")
    }
    if blind:
        names = ", ".join(sorted(blind))
        return _unseen(
            word,
            f"the folder of the run does not exist on {names}: check that the storage partition is mounted there",
        )
    how = launcher_end(bundle, job.scheduler_id)
    last = last_words(bundle, job.scheduler_id)
    reason, code = how if records.attempts else last or how, word.reason_code
    if last is not None and last.startswith(REFUSAL):
        reason, code = refusal(bundle.run_id, last), UNTRUSTED
    return word.model_copy(update={"reason": reason, "reason_code": code})


def _unseen(word: Observation, reason: str) -> Observation:
    return word.model_copy(update={"reason": reason, "reason_code": "partition_missing"})


_SETTLES = 60.0
"""Seconds after a submit for which a job that is not in the queue may still be on its way into it."""

_MOST_TOLD = 1000
"""Tasks of one row of the queue that have words of their own: an array may have very many that wait, and are as the array is."""


class QueueSource(Protocol):
    """The queue as far as this module asks."""

    async def mine(self) -> Snapshot:
        """This user's jobs."""
        ...

    async def everybodys(self) -> Snapshot:
        """All jobs."""
        ...

    async def nodes_down(self, names: Iterable[str]) -> bool:
        """Whether one of these nodes is down."""
        ...

    async def hides_jobs(self) -> bool:
        """Whether a user is not shown the jobs of others."""
        ...

    async def end(self, job_id: str) -> None:
        """End a job."""
        ...


@dataclass(frozen=True)
class _Asked:
    """A run that is asked about: its bundle and its records."""

    bundle: BundleReader
    records: RunRecords
    begun_by: float
    """When this process knew at the latest that the newest attempt had begun (Unix seconds of this machine's clock)."""

    def was_seen(self, snapshot_time: float) -> bool:
        """Whether a look at the queue was later than the newest attempt's begin: else it may say that the job still waits."""
        return snapshot_time >= self.begun_by

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
    """Observations of runs, at the cost of one shared look at the queue.

    Args:
        queue: The queue.
        history: The accounting.
        stand_in: Writes the records of runs without a launcher.
    """

    def __init__(
        self, queue: QueueSource, history: AccountingHistory, stand_in: NativeRecorder
    ) -> None:
        self._queue = queue
        self._history = history
        self._stand_in = stand_in
        self._judged: set[tuple[str, int]] = set()
        self._leftovers = OrphanedJobs(queue.end)
        self._begun: dict[tuple[str, int], float] = {}
        self._kept: dict[str, Observation] = {}

    async def observe(self, bundles: Sequence[BundleReader]) -> dict[str, Observation]:
        """A word on each run that Slurm has one on, by run id; an array's children have their own.

        Raises:
            UnreachableError: The controller does not answer.
        """
        asked = await asyncio.to_thread(self._read, bundles)
        if not asked:
            return {}
        snapshot = await self._queue.mine()
        said, gone = await asyncio.to_thread(self._in_queue, asked, snapshot)
        if gone:
            said |= await self._not_mine(gone)
        await self._play(asked, snapshot, gone, said)
        for run_id, verdict in (await self._judge(asked, snapshot)).items():
            word = said.get(run_id)
            if word is not None and word.state == "waiting":
                said[run_id] = word.model_copy(update={"verdict": verdict})
        claims = {
            one.parent: one.records.claim
            for one in asked
            if one.bundle.is_own and not one.records.head.array
        }
        await self._leftovers.end(asked[0].bundle.partition, snapshot, claims)
        await asyncio.to_thread(self._keep, asked, said)
        return said

    def _keep(self, asked: Sequence[_Asked], said: Mapping[str, Observation]) -> None:
        """Write down the ends, each once: Slurm forgets them (MinJobAge), and other machines may not be able to ask."""
        for one in asked:
            if not one.bundle.is_own:
                continue
            bundles = {one.bundle.run_id: one.bundle}
            if one.is_array:
                ids = [run_id for run_id in said if run_id.startswith(f"{one.parent}.")]
                bundles |= {id_: one.bundle.child(int(id_.rpartition(".")[2])) for id_ in ids}
            for run_id, bundle in bundles.items():
                word = said.get(run_id)
                if word is None or word.state != "ended" or word.verdict == "LOST":
                    continue
                if self._kept.get(run_id) != word:
                    with contextlib.suppress(StorageError):
                        bundle.add_observation(word)
                        self._kept[run_id] = word

    def _read(self, bundles: Sequence[BundleReader]) -> list[_Asked]:
        found = []
        for bundle in bundles:
            with contextlib.suppress(HyperpodError):  # a damaged bundle is told by whoever reads it
                records = bundle.read()
                newest_attempt = records.attempts[-1].number if records.attempts else 0
                begun = self._begun.setdefault((bundle.run_id, newest_attempt), time.time())
                found.append(_Asked(bundle, records, begun))
        return found

    def _jobs_of(self, one: _Asked, snapshot: Snapshot) -> Sequence[SlurmJob]:
        """The jobs that may be a run's. Anybody can write a run's id into a comment: once its job is known, no other counts."""
        jobs = self._stand_in.jobs_of(one.bundle, one.parent, snapshot)
        if one.scheduler_id is None:
            return jobs
        known = one.scheduler_id.partition("_")[0]
        return [job for job in jobs if known in {job.job_id, job.array_job_id}]

    def _in_queue(
        self, asked: Sequence[_Asked], snapshot: Snapshot
    ) -> tuple[dict[str, Observation], list[_Asked]]:
        said: dict[str, Observation] = {}
        gone = []
        for one in asked:
            jobs = self._jobs_of(one, snapshot)
            words = _words(one, jobs, snapshot.time)
            said |= words
            if one.bundle.run_id not in words:
                gone.append(one)
        return said, gone

    async def _not_mine(self, gone: Sequence[_Asked]) -> dict[str, Observation]:
        """Runs that none of this user's jobs in the queue is of: somebody else's, or gone."""
        now = time.time()
        settled = [one for one in gone if one.scheduler_id and now - _taken_at(one.records) > 0]
        everybodys = await self._queue.everybodys() if settled else None
        said: dict[str, Observation] = {}
        left = []
        for one in settled:
            jobs = everybodys.by_run.get(one.parent, ()) if everybodys else ()
            owned = [
                job
                for job in jobs
                if one.scheduler_id in {job.job_id, job.scheduler_id, job.array_job_id}
            ]
            words = _words(one, owned, everybodys.time if everybodys else now)
            said |= words
            if one.bundle.run_id not in words:
                left.append(one)
        past = await self._history.of(one.scheduler_id or "" for one in left if not one.is_array)
        for one in left:
            if not past.get(one.scheduler_id or "") and await self._is_hidden(one):
                continue
            executions = past.get(one.scheduler_id or "")
            word = await asyncio.to_thread(self._word_on_gone, one, executions, now)
            if word is not None:
                said[one.bundle.run_id] = word
        return said

    async def _is_hidden(self, one: _Asked) -> bool:
        """Whether a run is somebody else's whose jobs this user is not shown: its records alone tell of it."""
        return not one.bundle.is_own and await self._queue.hides_jobs()

    def _word_on_gone(
        self, one: _Asked, executions: Sequence[Execution] | None, now: float
    ) -> Observation | None:
        last = executions[-1] if executions else None
        if last is not None and last.over and last.state != "REQUEUED":
            word = observe_execution(last, now)
            job = EndedJob(last.scheduler_id, last.nodes)
            return explained(word, one.bundle, one.records, job)
        if now - _taken_at(one.records) < _SETTLES:
            return None
        if self._history.silent is not None:  # it may know
            return None if one.records.attempts else unasked(self._history.silent, now)
        return lost(one.scheduler_id, now, accounting=self._history.kept)

    async def _play(
        self,
        asked: Sequence[_Asked],
        snapshot: Snapshot,
        gone: Sequence[_Asked],
        said: Mapping[str, Observation],
    ) -> None:
        """Write the records of runs that have no launcher to do it."""
        native, jobs = await asyncio.to_thread(self._without_launcher, asked, snapshot)
        if not native:
            return
        await self._stand_in.play(jobs)
        for one in native:
            if one not in gone or one.is_array or one.scheduler_id is None:
                continue
            past = (await self._history.of([one.scheduler_id])).get(one.scheduler_id)
            word = said.get(one.bundle.run_id)
            if past:
                await asyncio.to_thread(self._stand_in.write_past, one.bundle, past)
            elif word is not None and word.verdict == "LOST":
                await asyncio.to_thread(self._stand_in.link_logs, one.bundle, one.scheduler_id)

    def _without_launcher(
        self, asked: Sequence[_Asked], snapshot: Snapshot
    ) -> tuple[list[_Asked], list[tuple[BundleReader, SlurmJob]]]:
        own = [one for one in asked if one.bundle.is_own]
        native = [one for one in own if self._stand_in.sending(one.bundle) is not None]
        jobs = [pair for one in native for pair in _with_jobs(one, self._jobs_of(one, snapshot))]
        return native, jobs

    async def _judge(self, asked: Sequence[_Asked], snapshot: Snapshot) -> dict[str, str | None]:
        """Write down why those attempts ended that a requeue cut short, once each; the newest verdict on each run."""
        verdicts: dict[str, str | None] = {}
        for one in asked:
            if not one.records.attempts or one.is_array or not one.bundle.is_own:
                continue
            jobs = self._jobs_of(one, snapshot)
            job = newest(_of_task(jobs, one.bundle.index), one.scheduler_id)
            begun = max((round_of(attempt) or 0 for attempt in one.records.attempts), default=0)
            waiting = job is not None and _back_in_queue(job) and one.was_seen(snapshot.time)
            over = cut_short(one.records.attempts, begun + 1 if waiting else begun)
            judged = {seen.attempt for seen in one.records.observations if seen.verdict}
            todo = [
                attempt
                for attempt in over
                if attempt.number not in judged
                and (one.bundle.run_id, attempt.number) not in self._judged
            ]
            if not todo or one.scheduler_id is None:
                continue
            past = await self._history.of([one.scheduler_id], executions=len(over))
            executions = past.get(one.scheduler_id, ())
            for attempt in todo:
                number = round_of(attempt) or 0
                execution = executions[number] if number < len(executions) else None
                told = None if execution is not None else await self._told(one, attempt)
                word = requeued(attempt, execution, time.time(), told=told)
                self._judged.add((one.bundle.run_id, attempt.number))
                verdicts[one.bundle.run_id] = word.verdict
                with contextlib.suppress(StorageError):
                    await asyncio.to_thread(one.bundle.add_observation, word)
        return verdicts

    async def _told(self, one: _Asked, attempt: AttemptRecords) -> str | None:
        """Why an attempt was cut short, where no accounting says it: as the job's output tells, or as its nodes are now."""
        job = one.scheduler_id or ""
        said = await asyncio.to_thread(verdict_in_log, one.bundle, job, attempt.number)
        if said is not None:
            return said
        down = await self._queue.nodes_down(node.node for node in attempt.nodes)
        return "NODE_FAIL" if down else None


def _with_jobs(one: _Asked, jobs: Sequence[SlurmJob]) -> Iterable[tuple[BundleReader, SlurmJob]]:
    """A run, or the children of an array that have begun, each with its job."""
    if one.is_array:
        for job in jobs:
            indices = job.first_tasks(2)
            if len(indices) == 1:
                yield one.bundle.child(indices[0]), job
        return
    found = newest(_of_task(jobs, one.bundle.index), one.scheduler_id)
    if found is not None:
        yield one.bundle, found


def _taken_at(records: RunRecords) -> float:
    if records.submission is not None:
        return records.submission.submitted_at
    return records.claim.time if records.claim is not None else records.head.created_at


def _words(one: _Asked, jobs: Sequence[SlurmJob], now: float) -> dict[str, Observation]:
    """The words on a run, or on an array and its children, that these jobs give. Of very many tasks that are one job, as those that wait are, the first have words."""
    if not one.is_array:
        job = newest(_of_task(jobs, one.bundle.index), one.scheduler_id)
        if job is None:
            return {}
        return {one.bundle.run_id: _word(one, job, now)}
    if not jobs:
        return {}
    said: dict[str, Observation] = {}
    for job in jobs:
        word = observe(job, now)
        said |= {f"{one.parent}.{index}": word for index in job.first_tasks(_MOST_TOLD)}
    said[one.parent] = _word_on_array(jobs, now)
    return said


def _word(one: _Asked, job: SlurmJob, now: float) -> Observation:
    word = observe(job, now)
    attempts = one.records.attempts
    if word.state == "waiting" and attempts:
        if not one.was_seen(now):  # it has begun since
            return word.model_copy(update={"state": "running", "reason": None, "reason_code": None})
        if _back_in_queue(job):
            number, code = attempts[-1].number, word.reason_code or "recovering"
            at = _after_verdict(one.records, number, word.time)
            return word.model_copy(update={"time": at, "attempt": number, "reason_code": code})
    if word.state == "ended":
        word = word.model_copy(update={"time": _after(one.records, word.time)})
    return explained(word, one.bundle, one.records, EndedJob(job.scheduler_id, job.node_list))


def _back_in_queue(job: SlurmJob) -> bool:
    return job.state in WAITING and job.state != "SUSPENDED"


def _after(records: RunRecords, moment: float) -> float:
    """A moment that is later than all that was said before: the controller's clock may be behind ours."""
    return max([moment, *(seen.time + 0.001 for seen in records.observations)])


def _after_verdict(records: RunRecords, attempt: int, moment: float) -> float:
    """A moment that is later than our own verdict on an attempt, which says why it is over and not for what the run waits now."""
    told = (
        seen.time + 0.001
        for seen in records.observations
        if seen.state == "waiting" and seen.attempt == attempt
    )
    return max([moment, *told])


def _word_on_array(jobs: Sequence[SlurmJob], now: float) -> Observation:
    """The word on an array as a whole: it waits while none of its tasks has begun, and has ended when all have."""
    alive = [job for job in jobs if not job.ended]
    waiting = [job for job in alive if job.state in WAITING]
    if alive and len(waiting) == len(jobs):
        return observe(waiting[0], now)
    if alive:
        return observe(
            next((job for job in alive if job not in waiting), alive[0]), now
        ).model_copy(update={"state": "running", "reason": None, "reason_code": None})
    worst = next((job for job in jobs if job.state != "COMPLETED"), jobs[0])
    return observe(worst, now).model_copy(update={"scheduler_id": worst.array_job_id})


def _of_task(jobs: Sequence[SlurmJob], index: int | None) -> Sequence[SlurmJob]:
    return jobs if index is None else [job for job in jobs if job.has_task(index)]


# --------------------------------------------------------------------------------------------------
# Nodes of Slurm that HyperPod repairs.
#
# HyperPod repairs a node that is set to ``fail`` with the reason ``Action:Replace`` or ``Action:Reboot`` (AWS' documentation of manual
# recovery); it keeps its name, and the reason until the repair is over.

_ORDER = re.compile(r"Action:(Replace|Reboot)")
_ACTIONS: Mapping[str, NodeRepair] = {"Replace": "replace", "Reboot": "reboot"}


def ordered_repairs(nodes: Mapping[str, SlurmNode]) -> dict[str, NodeRepair]:
    """What HyperPod does to nodes, by their names, as their reasons say."""
    return {
        name: _ACTIONS[found[1]]
        for name, node in nodes.items()
        if node.reason and not node.usable and (found := _ORDER.fullmatch(node.reason.strip()))
    }
