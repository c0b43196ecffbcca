"""Acting on runs and jobs of a Slurm cluster, and taking jobs from elsewhere in."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hyperpod_jlab.core.cache import CachedQuery
from hyperpod_jlab.core.cluster import ChangeField
from hyperpod_jlab.core.errors import (
    ConflictError,
    DeniedError,
    HyperpodError,
    InvalidInputError,
    NotFoundError,
    UnreachableError,
)
from hyperpod_jlab.core.job_actions import ActionKind, Change, JobResult
from hyperpod_jlab.core.node_actions import DrainKind
from hyperpod_jlab.engines.protocol import ExternalJob
from hyperpod_jlab.engines.slurm.client import SlurmClient, complaint
from hyperpod_jlab.engines.slurm.external_jobs import look_up, mark
from hyperpod_jlab.engines.slurm.facts import ClusterFacts
from hyperpod_jlab.engines.slurm.job_queue import JobFinder, JobQueue
from hyperpod_jlab.engines.slurm.jobs import SlurmJob, scheduler_id, tasks_of
from hyperpod_jlab.engines.slurm.render import clock
from hyperpod_jlab.engines.slurm.tables import SlurmNode
from hyperpod_jlab.engines.slurm.transport import CommandOutput
from hyperpod_jlab.storage.records import BundleReader

# --------------------------------------------------------------------------------------------------
# What Slurm is told to do to jobs: one job or several, and what came of each.
#
# Which words Slurm answers with was seen on 22.05 and 24.11 (src/common/slurm_errno.c): scontrol writes a line for each job that it does not change,
# and for an array, as soon as one task differs, a line for each list of tasks; 22.05 also for those that it did change, with ``No error``.

_JOB = re.compile(r"([0-9]{1,10})(?:_([0-9]{1,10}))?")
_ROW = re.compile(r"([0-9]{1,10})_\[?([0-9][0-9,:-]*(?:%[0-9]+)?)\]?")
_QUEUE = re.compile(r"[^\s=,\"'\\-][^\s=,\"'\\]*")
_TASKS = re.compile(r"^[0-9]+_([0-9,:\[\]-]+): (.+)$", re.MULTILINE)
_OVER = ("already finished", "already completing", "no longer pending", "pending execution")
_NAMED = re.compile(
    r"\b(?:for job|on job id) ([0-9]+(?:_[0-9]+)?)\b|^([0-9]+(?:_[0-9]+)?)(?:_[0-9,:\[\]-]+)?: "
)


@dataclass(frozen=True)
class JobOrder:
    """What is to be done to jobs; `change` with the action ``change`` only."""

    action: ActionKind
    change: Change | None = None


async def give(
    client: SlurmClient, order: JobOrder, job: str, rows: Mapping[str, SlurmJob]
) -> None:
    """Tell Slurm what to do to one job, one task of an array, or an array.

    Args:
        client: The commands.
        order: What to do.
        job: The job's id as Slurm's commands take it.
        rows: What the queue says, by the jobs' ids: for the words of an error, and for the tasks of an array.

    Raises:
        DeniedError: It is somebody else's, or only an operator may do this.
        ConflictError: It does not fit the job's state.
        NotFoundError: There is no such job.
    """
    output = await client.run(_words(order, job))
    if output.code != 0 and not _partly_done(output, _tasks_in(job, rows)):
        error = complaint(_words(order, job)[0], output)
        raise _explained(error, order, job, rows.get(job) or rows.get(job.partition("_")[0]))


async def give_all(
    client: SlurmClient, order: JobOrder, jobs: Sequence[str], queue: Iterable[SlurmJob]
) -> list[JobResult]:
    """Tell Slurm what to do to several jobs; one result each, in their order.

    All go in one command, since calls are rationed; each complaint of Slurm's names the job that it is about.

    Args:
        client: The commands.
        order: What to do.
        jobs: Ids as tables show them.
        queue: The queue of all users.

    Raises:
        InvalidInputError: The new queue's name can be none.
    """
    if order.change is not None and order.change.queue is not None:
        _queue(order.change.queue)
    rows = _by_id(queue)
    names: dict[str, str | HyperpodError] = {job: _name(job, rows, order) for job in jobs}
    good = [name for name in names.values() if isinstance(name, str)]
    output = await client.run(_words(order, *good)) if good else CommandOutput(0, "", "")
    said = _by_job(output)
    if output.code != 0 and not said:
        raise complaint(_words(order, *good)[0], output)
    return [_result(job, names[job], order, rows, said) for job in jobs]


def _result(
    job: str,
    name: str | HyperpodError,
    order: JobOrder,
    rows: Mapping[str, SlurmJob],
    said: Mapping[str, list[str]],
) -> JobResult:
    """What came of it for one job, as Slurm's lines on it say; none means that it was done."""
    if isinstance(name, HyperpodError):
        return JobResult(job, name)
    array, _, task = name.partition(",")[0].partition("_")
    one = task.isdecimal() and "," not in name
    keys = [key for key in said if key == name or (not one and key.partition("_")[0] == array)]
    lines = [line for key in keys for line in said[key]]
    if not lines:
        return JobResult(job)
    output = CommandOutput(1, "", "\n".join(lines))
    if _partly_done(output, _tasks_in(name, rows)):
        return JobResult(job)
    error = complaint(_words(order, name)[0], output)
    return JobResult(job, _explained(error, order, job, rows.get(job)))


def _by_job(output: CommandOutput) -> dict[str, list[str]]:
    """Slurm's complaints by the job or task that they name; those on tasks of an array, listed, by the array."""
    found: dict[str, list[str]] = {}
    for line in output.err.splitlines():
        named = _NAMED.search(line)
        if named is not None:
            found.setdefault(named[1] or named[2], []).append(line)
    return found


async def give_to(
    client: SlurmClient, order: JobOrder, job: str, queue: Iterable[SlurmJob]
) -> None:
    """Tell Slurm what to do to the job of a run (see `give`); of an array, only tasks that run are requeued: Slurm would begin ended ones again.

    Args:
        client: The commands.
        order: What to do.
        job: The job's id as Slurm's commands take it.
        queue: This user's jobs.
    """
    rows = _by_id(queue)
    tasks = _running_tasks(job, rows) if order.action == "requeue" else []
    for one in tasks or [job]:
        await give(client, order, one, rows)


def _running_tasks(array: str, rows: Mapping[str, SlurmJob]) -> list[str]:
    """The ids of an array's tasks that run."""
    own = (row for row in rows.values() if row.array_job_id == array and row.array_task is not None)
    return list(dict.fromkeys(row.scheduler_id for row in own if not (row.ended or row.waiting)))


def _by_id(queue: Iterable[SlurmJob]) -> dict[str, SlurmJob]:
    """The rows of the queue by the ids that tables show; an array as a whole is known by its first row."""
    rows: dict[str, SlurmJob] = {}
    for job in queue:
        rows.setdefault(job.array_job_id, job)
        rows[job.scheduler_id] = job
    return rows


def _name(job: str, rows: Mapping[str, SlurmJob], order: JobOrder) -> str | HyperpodError:
    """A job's id as Slurm's commands take it, or why it cannot be meant. Nothing else gets into a command."""
    whole, row = _JOB.fullmatch(job), _ROW.fullmatch(job)
    if whole is None and row is None:
        return InvalidInputError(
            f"'{job[:60]}' is not a job id", hint="see: hpj jobs", detail={"job": job[:60]}
        )
    seen = rows.get(job)
    if seen is None and (whole is None or whole[2] is None or not _has_task(whole, rows)):
        return NotFoundError(
            f"job {job} not found on the cluster",
            code="no_such_job",
            hint="see: hpj jobs",
            detail={"job": job},
        )
    if seen is not None and seen.ended and seen.scheduler_id == job:
        return _unfit(
            job,
            seen,
            f"has ended ({seen.state}); {order.action} is possible only for waiting or running jobs",
        )
    if seen is not None and seen.waiting and seen.scheduler_id == job and order.action == "requeue":
        return _unfit(job, seen, "is already waiting; only running jobs can be requeued")
    if whole is not None:
        running = _running_tasks(job, rows) if order.action == "requeue" else []
        return ",".join(running) or job
    assert row is not None
    try:
        tasks = tasks_of(row[2])
    except ValueError:
        return InvalidInputError(f"'{job[:60]}' is not a job id", hint="see: hpj jobs")
    return f"{row[1]}_[{','.join(map(str, tasks))}]"  # Slurm takes no steps here


def _unfit(job: str, seen: SlurmJob, words: str) -> ConflictError:
    return ConflictError(
        f"job {job} {words}", code="wrong_state", detail={"job": job, "state": seen.state}
    )


def _has_task(found: re.Match[str], rows: Mapping[str, SlurmJob]) -> bool:
    """Whether a task is one of those that have no row of their own, since they wait."""
    return any(
        job.array_job_id == found[1] and int(found[2]) in _numbers(job.array_task)
        for job in rows.values()
    )


def _numbers(listed: str | None) -> tuple[int, ...]:
    try:
        return tasks_of(listed)
    except ValueError:
        return ()


def _tasks_in(job: str, rows: Mapping[str, SlurmJob]) -> frozenset[int]:
    """The tasks that an id stands for: all of an array, or those of a row."""
    array, _, listed = job.partition("_")
    if listed:
        return frozenset(_numbers(listed))
    own = (row for row in rows.values() if row.array_job_id == array)
    return frozenset(task for row in own for task in _numbers(row.array_task))


def _words(order: JobOrder, *jobs: str) -> list[str]:
    """The command. The ids are made of digits, brackets and commas."""
    if order.action == "cancel":
        return ["scancel", *jobs]
    listed = ",".join(jobs)
    if order.action != "change":
        return ["scontrol", order.action, listed]
    change = order.change or Change()
    words = ["scontrol", "update", f"jobid={listed}"]
    if change.time_limit is not None:
        words.append(f"timelimit={clock(change.time_limit)}")
    if change.queue is not None:
        words.append(f"partition={_queue(change.queue)}")
    return words


def _queue(name: str) -> str:
    if _QUEUE.fullmatch(name) is None:
        raise InvalidInputError(
            f"'{name[:60]}' is not a valid name of a queue",
            code="unknown_queue",
            hint="see: hpj queues",
            detail={"field": "queue"},
        )
    return name


def _partly_done(output: CommandOutput, tasks: frozenset[int]) -> bool:
    """Whether it was done to those of an array's tasks that it fits, and the others are over or not so far."""
    said = _TASKS.findall(output.err + output.out)
    refused = [(listed, words.lower()) for listed, words in said if words.strip() != "No error"]
    if not refused or not all(any(over in words for over in _OVER) for _, words in refused):
        return False
    others = tasks - {task for listed, _ in refused for task in _numbers(listed)}
    return len(refused) < len(said) or bool(others)


def _explained(
    error: HyperpodError, order: JobOrder, job: str, seen: SlurmJob | None
) -> HyperpodError:
    """Slurm's complaint with what it means for this job."""
    detail = {**error.detail, "job": job}
    if isinstance(error, DeniedError):
        return _denied(error, order, job, seen, detail)
    if isinstance(error, ConflictError):
        message = error.message
        if order.action == "change" and order.change is not None and order.change.queue is not None:
            message = f"job {job} is running or has ended; the queue can be changed only while a job is waiting"
        elif seen is not None and order.action == "requeue" and seen.waiting:
            message = f"job {job} is already waiting; only running jobs can be requeued"
        return ConflictError(message, code=error.code, hint=error.hint, detail=detail)
    error.detail = detail
    return error


def _denied(
    error: DeniedError,
    order: JobOrder,
    job: str,
    seen: SlurmJob | None,
    detail: dict[str, object],
) -> DeniedError:
    if seen is not None and order.change is not None and order.change.time_limit is not None:
        lower = seen.limit is not None and order.change.time_limit <= seen.limit
        if not lower and "invalid user" not in error.message.lower():
            return DeniedError(
                f"job {job}: only an operator of the cluster may set {order.change}; you can lower the limit, and raise it up to the "
                "limit of the queue while the job is waiting",
                code="limit_raised",
                hint="ask your cluster administrator, or submit it again with a longer --time-limit",
                detail=detail,
            )
    if seen is None:
        return DeniedError(error.message, code=error.code, hint=error.hint, detail=detail)
    return DeniedError(
        f"job {job} belongs to {seen.user}; only {seen.user} or an operator of the cluster may {order.action} it",
        detail={**detail, "user": seen.user},
    )


class SlurmActions:
    """Actions on jobs, whether they are runs or not: the concerns `Actions`, `JobActions` and `Adoption`.

    Args:
        client: The cluster's commands.
        queue: Its queue.
        finder: Finds the jobs of runs.
        facts: What is known of the cluster.
    """

    offered: tuple[ActionKind, ...] = ("cancel", "hold", "release", "requeue", "change")
    changes: tuple[ChangeField, ...] = ("time_limit", "queue")
    covers_runs = True

    def __init__(
        self, client: SlurmClient, queue: JobQueue, finder: JobFinder, facts: ClusterFacts
    ) -> None:
        self._client = client
        self._queue = queue
        self._finder = finder
        self._facts = facts

    async def act(
        self, action: ActionKind, bundle: BundleReader, change: Change | None = None
    ) -> None:
        """Do it to the run's job, wherever it is."""
        await asyncio.to_thread(bundle.check_own, action)
        job = await self._job_of(bundle)
        # It is looked at for the tasks of an array, and for the words of an error; a cancel must not hang on that.
        queue = self._queue.of_user
        snapshot = queue.last if action == "cancel" else await queue.get(1.0)
        try:
            order = JobOrder(action, change)
            await give_to(self._client, order, job, snapshot.jobs if snapshot else ())
        finally:
            self._queue.changed()

    async def act_on_jobs(
        self, action: ActionKind, jobs: Sequence[str], change: Change | None = None
    ) -> list[JobResult]:
        """Do it to jobs of the queue, whoever sent them."""
        snapshot = await self._queue.of_all.get(1.0)
        try:
            return await give_all(self._client, JobOrder(action, change), jobs, snapshot.jobs)
        finally:
            self._queue.changed()

    async def foreign_job(self, job: str) -> ExternalJob:
        """A job that was sent with sbatch itself."""
        return await look_up(self._client, (await self._facts.look()).user, job)

    async def adopted(self, bundle: BundleReader) -> None:
        """Write the run's id into the job's comment."""
        await mark(self._client, await self._job_of(bundle), bundle.run_id)
        self._queue.changed()

    async def _job_of(self, bundle: BundleReader) -> str:
        """The id of a run's job as Slurm's commands take it.

        Raises:
            NotFoundError: The scheduler does not have it.
        """
        records = await asyncio.to_thread(bundle.read)
        known = scheduler_id(records, bundle.index)
        if known is not None:
            return known
        taken = await self._finder.find(bundle)
        if taken is None:
            raise NotFoundError(
                f"job of {bundle.run_id} not found in the scheduler",
                code="no_such_job",
                hint="submit it again",
            )
        sent = taken.scheduler_id
        return sent if bundle.index is None else f"{sent}_{bundle.index}"


# --------------------------------------------------------------------------------------------------
# What Slurm is told to do to nodes: no new jobs, or jobs again.


class SlurmNodeOrders:
    """Drains and resumes nodes.

    Args:
        client: The commands.
        watch: The looks at the nodes.
    """

    def __init__(self, client: SlurmClient, watch: CachedQuery[dict[str, SlurmNode]]) -> None:
        self._client = client
        self._watch = watch

    async def act_on_nodes(
        self, action: DrainKind, nodes: Sequence[str], reason: str | None = None
    ) -> dict[str, HyperpodError | None]:
        """Drain or resume nodes, all in one command: calls are rationed.

        Of several nodes Slurm (seen on 22.05 and 24.11) changes those that it can, complains once, and names none; which those are is read back.
        """
        try:
            problem = await _told(self._client, action, nodes, reason)
            if problem is None or isinstance(problem, DeniedError) or len(nodes) == 1:
                return dict.fromkeys(nodes, problem)
            found = await self._watch.get(0.0)
        finally:
            self._watch.forget()
        done = {name for name in nodes if name in found and _is_done(action, found[name])}
        return {name: None if name in done else problem for name in nodes}


def _is_done(action: DrainKind, node: SlurmNode) -> bool:
    if action == "drain":
        return "drain" in node.flags
    return not node.flags & {"drain", "fail"} and node.base != "down"


async def _told(
    client: SlurmClient, action: DrainKind, nodes: Sequence[str], reason: str | None
) -> HyperpodError | None:
    words = ["scontrol", "update", f"nodename={','.join(nodes)}", f"state={action}"]
    if action == "drain":
        words.append(f"reason={reason}")
    output = await client.run(words)
    if output.code == 0:
        return None
    error = complaint("scontrol", output)
    if isinstance(error, UnreachableError):
        raise error
    if not isinstance(error, DeniedError):
        return error
    return DeniedError(
        f"you do not have the permission to {action} nodes: only Slurm administrators may do this",
        code="missing_right",
        hint=f"ask an administrator to run: scontrol update nodename={','.join(nodes)[:200]} state={action}"
        + (" reason=..." if action == "drain" else ""),
        detail={**error.detail, "right": {"admin_level": "Administrator"}, "said": error.message},
    )
