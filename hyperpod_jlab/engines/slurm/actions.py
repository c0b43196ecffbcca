"""Actions on runs and jobs of a Slurm cluster."""

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
from hyperpod_jlab.engines.slurm.client import SlurmClient, parse_error
from hyperpod_jlab.engines.slurm.facts import ClusterFacts
from hyperpod_jlab.engines.slurm.job_queue import JobFinder, JobQueue
from hyperpod_jlab.engines.slurm.jobs import SlurmJob, parse_tasks, scheduler_id
from hyperpod_jlab.engines.slurm.render import clock
from hyperpod_jlab.engines.slurm.tables import SlurmNode
from hyperpod_jlab.engines.slurm.transport import CommandOutput
from hyperpod_jlab.storage.records import BundleReader

# --------------------------------------------------------------------------------------------------
# Job commands: act on one job or several, and return a result for each.
#
# The responses were observed on 22.05 and 24.11 (src/common/slurm_errno.c). scontrol writes a line
# for each job that it does not change. For an array whose tasks differ, it writes a line for each
# list of tasks; 22.05 also writes one for those that it did change, with ``No error``.

_JOB = re.compile(r"([0-9]{1,10})(?:_([0-9]{1,10}))?")
_ROW = re.compile(r"([0-9]{1,10})_\[?([0-9][0-9,:-]*(?:%[0-9]+)?)\]?")
_QUEUE = re.compile(r"[^\s=,\"'\\-][^\s=,\"'\\]*")
_TASKS = re.compile(r"^[0-9]+_([0-9,:\[\]-]+): (.+)$", re.MULTILINE)
_ENDED_TEXTS = ("already finished", "already completing", "no longer pending", "pending execution")
_JOB_IN_ERROR = re.compile(r"\b(?:for job|on job id) ([0-9]+(?:_[0-9]+)?)\b|^([0-9]+(?:_[0-9]+)?)(?:_[0-9,:\[\]-]+)?: ")


@dataclass(frozen=True)
class JobCommand:
    """An action on jobs; `change` is set only for the action ``change``."""

    action: ActionKind
    change: Change | None = None


async def apply(client: SlurmClient, job_command: JobCommand, job: str, rows: Mapping[str, SlurmJob]) -> None:
    """Apply a command to one job, one array task, or an array.

    Args:
        client: The commands.
        job_command: The command.
        job: The job's id as Slurm's commands take it.
        rows: Queue rows by job id, used for error messages and array tasks.

    Raises:
        DeniedError: The job belongs to another user, or only an operator may do this.
        ConflictError: The job's state does not allow it.
        NotFoundError: The job does not exist.
    """
    output = await client.run(_command_args(job_command, job))
    if output.code != 0 and not _only_ended_failed(output, _known_tasks(job, rows)):
        error = parse_error(_command_args(job_command, job)[0], output)
        raise _explained(error, job_command, job, rows.get(job) or rows.get(job.partition("_")[0]))


async def apply_to_jobs(
    client: SlurmClient, job_command: JobCommand, jobs: Sequence[str], queue: Iterable[SlurmJob]
) -> list[JobResult]:
    """Apply a command to several jobs; returns one result for each, in order.

    One scontrol call covers all jobs, because calls are rate-limited; each Slurm error names its
    job.

    Args:
        client: The commands.
        job_command: The command.
        jobs: Job ids as shown in tables.
        queue: The queue of all users.

    Raises:
        InvalidInputError: The new queue's name is invalid.
    """
    if job_command.change is not None and job_command.change.queue is not None:
        _queue(job_command.change.queue)
    rows = _by_id(queue)
    names: dict[str, str | HyperpodError] = {job: _resolve_job(job, rows, job_command) for job in jobs}
    targets = [name for name in names.values() if isinstance(name, str)]
    output = await client.run(_command_args(job_command, *targets)) if targets else CommandOutput(0, "", "")
    errors = _errors_by_job(output)
    if output.code != 0 and not errors:
        raise parse_error(_command_args(job_command, *targets)[0], output)
    return [_result(job, names[job], job_command, rows, errors) for job in jobs]


def _result(
    job: str,
    name: str | HyperpodError,
    job_command: JobCommand,
    rows: Mapping[str, SlurmJob],
    errors: Mapping[str, list[str]],
) -> JobResult:
    """The result for one job, from Slurm's error lines about it; no line means success."""
    if isinstance(name, HyperpodError):
        return JobResult(job, name)
    array, _, task = name.partition(",")[0].partition("_")
    is_single = task.isdecimal() and "," not in name
    keys = [key for key in errors if key == name or (not is_single and key.partition("_")[0] == array)]
    lines = [line for key in keys for line in errors[key]]
    if not lines:
        return JobResult(job)
    output = CommandOutput(1, "", "\n".join(lines))
    if _only_ended_failed(output, _known_tasks(name, rows)):
        return JobResult(job)
    error = parse_error(_command_args(job_command, name)[0], output)
    return JobResult(job, _explained(error, job_command, job, rows.get(job)))


def _errors_by_job(output: CommandOutput) -> dict[str, list[str]]:
    """Slurm's errors by the job or task that they name; errors about a list of tasks are keyed by the array."""
    errors: dict[str, list[str]] = {}
    for line in output.err.splitlines():
        match = _JOB_IN_ERROR.search(line)
        if match is not None:
            errors.setdefault(match[1] or match[2], []).append(line)
    return errors


async def apply_to_run(client: SlurmClient, job_command: JobCommand, job: str, queue: Iterable[SlurmJob]) -> None:
    """Apply a command to a run's job (see `apply`). For an array, only running tasks are requeued, because Slurm would restart ended ones.

    Args:
        client: The commands.
        job_command: The command.
        job: The job's id as Slurm's commands take it.
        queue: This user's jobs.
    """
    rows = _by_id(queue)
    tasks = _running_tasks(job, rows) if job_command.action == "requeue" else []
    for target in tasks or [job]:
        await apply(client, job_command, target, rows)


def _running_tasks(array: str, rows: Mapping[str, SlurmJob]) -> list[str]:
    """The ids of an array's running tasks."""
    own_rows = (row for row in rows.values() if row.array_job_id == array and row.array_task is not None)
    return list(dict.fromkeys(row.scheduler_id for row in own_rows if not (row.is_ended or row.is_waiting)))


def _by_id(queue: Iterable[SlurmJob]) -> dict[str, SlurmJob]:
    """Queue rows by the ids that tables show; an array's id maps to its first row."""
    rows: dict[str, SlurmJob] = {}
    for job in queue:
        rows.setdefault(job.array_job_id, job)
        rows[job.scheduler_id] = job
    return rows


def _resolve_job(job: str, rows: Mapping[str, SlurmJob], job_command: JobCommand) -> str | HyperpodError:
    """The job's id in the form that Slurm's commands accept, or the error for an invalid id. Nothing else reaches a command line."""
    full_match, row = _JOB.fullmatch(job), _ROW.fullmatch(job)
    if full_match is None and row is None:
        return InvalidInputError(
            f"'{job[:60]}' is not a job id", hint="list jobs with: hpj jobs", detail={"job": job[:60]}
        )
    job_row = rows.get(job)
    if job_row is None and (full_match is None or full_match[2] is None or not _has_task(full_match, rows)):
        return NotFoundError(
            f"job {job} not found on the cluster",
            code="no_such_job",
            hint="list jobs with: hpj jobs",
            detail={"job": job},
        )
    if job_row is not None and job_row.is_ended and job_row.scheduler_id == job:
        return _wrong_state_error(
            job,
            job_row,
            f"has ended ({job_row.state}); {job_command.action} is possible only for waiting or running jobs",
        )
    if job_row is not None and job_row.is_waiting and job_row.scheduler_id == job and job_command.action == "requeue":
        return _wrong_state_error(job, job_row, "is already waiting; only running jobs can be requeued")
    if full_match is not None:
        running = _running_tasks(job, rows) if job_command.action == "requeue" else []
        return ",".join(running) or job
    assert row is not None
    try:
        tasks = parse_tasks(row[2])
    except ValueError:
        return InvalidInputError(f"'{job[:60]}' is not a job id", hint="list jobs with: hpj jobs")
    return f"{row[1]}_[{','.join(map(str, tasks))}]"  # Slurm does not accept steps here


def _wrong_state_error(job: str, job_row: SlurmJob, text: str) -> ConflictError:
    return ConflictError(f"job {job} {text}", code="wrong_state", detail={"job": job, "state": job_row.state})


def _has_task(match: re.Match[str], rows: Mapping[str, SlurmJob]) -> bool:
    """Whether a task is pending and therefore has no row of its own."""
    return any(job.array_job_id == match[1] and int(match[2]) in _parse_tasks(job.array_task) for job in rows.values())


def _parse_tasks(task_list: str | None) -> tuple[int, ...]:
    try:
        return parse_tasks(task_list)
    except ValueError:
        return ()


def _known_tasks(job: str, rows: Mapping[str, SlurmJob]) -> frozenset[int]:
    """The tasks that an id stands for: all of an array, or those of one row."""
    array, _, task_list = job.partition("_")
    if task_list:
        return frozenset(_parse_tasks(task_list))
    own_rows = (row for row in rows.values() if row.array_job_id == array)
    return frozenset(task for row in own_rows for task in _parse_tasks(row.array_task))


def _command_args(job_command: JobCommand, *jobs: str) -> list[str]:
    """The command line. Ids consist of digits, brackets and commas."""
    if job_command.action == "cancel":
        return ["scancel", *jobs]
    task_list = ",".join(jobs)
    if job_command.action != "change":
        return ["scontrol", job_command.action, task_list]
    change = job_command.change or Change()
    args = ["scontrol", "update", f"jobid={task_list}"]
    if change.time_limit is not None:
        args.append(f"timelimit={clock(change.time_limit)}")
    if change.queue is not None:
        args.append(f"partition={_queue(change.queue)}")
    return args


def _queue(name: str) -> str:
    if _QUEUE.fullmatch(name) is None:
        raise InvalidInputError(
            f"'{name[:60]}' is not a valid queue name",
            code="unknown_queue",
            hint="list queues with: hpj queues",
            detail={"field": "queue"},
        )
    return name


def _only_ended_failed(output: CommandOutput, tasks: frozenset[int]) -> bool:
    """Whether the command succeeded for every array task whose state allows it, and failed only for ended or pending ones."""
    failures = _TASKS.findall(output.err + output.out)
    refusals = [(task_list, text.lower()) for task_list, text in failures if text.strip() != "No error"]
    if not refusals or not all(any(ended_text in text for ended_text in _ENDED_TEXTS) for _, text in refusals):
        return False
    remaining = tasks - {task for task_list, _ in refusals for task in _parse_tasks(task_list)}
    return len(refusals) < len(failures) or bool(remaining)


def _explained(error: HyperpodError, job_command: JobCommand, job: str, job_row: SlurmJob | None) -> HyperpodError:
    """Slurm's error, explained for this job."""
    detail = {**error.detail, "job": job}
    if isinstance(error, DeniedError):
        return _denied(error, job_command, job, job_row, detail)
    if isinstance(error, ConflictError):
        message = error.message
        if job_command.action == "change" and job_command.change is not None and job_command.change.queue is not None:
            message = f"job {job} is running or has ended; the queue can be changed only while a job is waiting"
        elif job_row is not None and job_command.action == "requeue" and job_row.is_waiting:
            message = f"job {job} is already waiting; only running jobs can be requeued"
        return ConflictError(message, code=error.code, hint=error.hint, detail=detail)
    error.detail = detail
    return error


def _denied(
    error: DeniedError, job_command: JobCommand, job: str, job_row: SlurmJob | None, detail: dict[str, object]
) -> DeniedError:
    if job_row is not None and job_command.change is not None and job_command.change.time_limit is not None:
        lower = job_row.limit is not None and job_command.change.time_limit <= job_row.limit
        if not lower and "invalid user" not in error.message.lower():
            return DeniedError(
                f"job {job}: only an operator of the cluster may set {job_command.change}; you can lower the limit, and raise it up to the "
                "limit of the queue while the job is waiting",
                code="limit_raised",
                hint="ask your cluster administrator, or submit it again with a longer --time-limit",
                detail=detail,
            )
    if job_row is None:
        return DeniedError(error.message, code=error.code, hint=error.hint, detail=detail)
    return DeniedError(
        f"job {job} belongs to {job_row.user}; only {job_row.user} or an operator of the cluster may {job_command.action} it",
        detail={**detail, "user": job_row.user},
    )


class SlurmActions:
    """Actions on jobs, whether they are runs or not; implements `Actions` and `JobActions`.

    Args:
        client: The cluster's commands.
        queue: The cluster's queue.
        finder: Finds the jobs of runs.
        facts: Cached facts about the cluster.
    """

    supported: tuple[ActionKind, ...] = ("cancel", "hold", "release", "requeue", "change")
    changes: tuple[ChangeField, ...] = ("time_limit", "queue")
    covers_runs = True

    def __init__(self, client: SlurmClient, queue: JobQueue, finder: JobFinder, facts: ClusterFacts) -> None:
        self._client = client
        self._queue = queue
        self._finder = finder
        self._facts = facts

    async def act(self, action: ActionKind, bundle: BundleReader, change: Change | None = None) -> None:
        """Apply the action to the run's job."""
        await asyncio.to_thread(bundle.check_own, action)
        job = await self._find_job_id(bundle)
        # The queue is needed for array tasks and error messages; a cancel must not hang on it.
        queue = self._queue.user_queue
        snapshot = queue.last if action == "cancel" else await queue.get(1.0)
        try:
            job_command = JobCommand(action, change)
            await apply_to_run(self._client, job_command, job, snapshot.jobs if snapshot else ())
        finally:
            self._queue.changed()

    async def act_on_jobs(
        self, action: ActionKind, jobs: Sequence[str], change: Change | None = None
    ) -> list[JobResult]:
        """Apply the action to jobs of the queue, whoever submitted them."""
        snapshot = await self._queue.all_queue.get(1.0)
        try:
            return await apply_to_jobs(self._client, JobCommand(action, change), jobs, snapshot.jobs)
        finally:
            self._queue.changed()

    async def _find_job_id(self, bundle: BundleReader) -> str:
        """The id of a run's job in the form that Slurm's commands accept.

        Raises:
            NotFoundError: The scheduler does not know the job.
        """
        records = await asyncio.to_thread(bundle.read)
        job_id = scheduler_id(records, bundle.index)
        if job_id is not None:
            return job_id
        submitted = await self._finder.find(bundle)
        if submitted is None:
            raise NotFoundError(
                f"job of {bundle.run_id} not found in the scheduler", code="no_such_job", hint="submit it again"
            )
        sent = submitted.scheduler_id
        return sent if bundle.index is None else f"{sent}_{bundle.index}"


# --------------------------------------------------------------------------------------------------
# Node commands: drain and resume.


class SlurmNodeControl:
    """Drains and resumes nodes.

    Args:
        client: The commands.
        nodes_query: The cached node query.
    """

    def __init__(self, client: SlurmClient, nodes_query: CachedQuery[dict[str, SlurmNode]]) -> None:
        self._client = client
        self._nodes_query = nodes_query

    async def act_on_nodes(
        self, action: DrainKind, nodes: Sequence[str], reason: str | None = None
    ) -> dict[str, HyperpodError | None]:
        """Drain or resume nodes, all in one command because calls are rate-limited.

        With several nodes, Slurm (22.05 and 24.11) changes those that it can and prints one error
        that names no node. The nodes are read again to find the failed ones.
        """
        try:
            problem = await _update_nodes(self._client, action, nodes, reason)
            if problem is None or isinstance(problem, DeniedError) or len(nodes) == 1:
                return dict.fromkeys(nodes, problem)
            nodes_by_name = await self._nodes_query.get(0.0)
        finally:
            self._nodes_query.forget()
        unchanged = {name for name in nodes if name in nodes_by_name and _is_done(action, nodes_by_name[name])}
        return {name: None if name in unchanged else problem for name in nodes}


def _is_done(action: DrainKind, node: SlurmNode) -> bool:
    if action == "drain":
        return "drain" in node.flags
    return not node.flags & {"drain", "fail"} and node.base != "down"


async def _update_nodes(
    client: SlurmClient, action: DrainKind, nodes: Sequence[str], reason: str | None
) -> HyperpodError | None:
    args = ["scontrol", "update", f"nodename={','.join(nodes)}", f"state={action}"]
    if action == "drain":
        args.append(f"reason={reason}")
    output = await client.run(args)
    if output.code == 0:
        return None
    error = parse_error("scontrol", output)
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
