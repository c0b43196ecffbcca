"""Final states of jobs that left the queue, from Slurm's accounting; each job is queried once."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from hyperpod_jlab.core.cache import Cache
from hyperpod_jlab.core.errors import HyperpodError, NotFoundError, RefusedError
from hyperpod_jlab.core.records import RunRecords
from hyperpod_jlab.core.usage import Usage
from hyperpod_jlab.engines.repairs import journal_usage
from hyperpod_jlab.engines.slurm.client import SlurmClient, parse_error
from hyperpod_jlab.engines.slurm.jobs import parse_time, scheduler_id
from hyperpod_jlab.engines.slurm.rows import ACCELERATORS, FIELD, parse_tres
from hyperpod_jlab.storage.records import BundleReader

_FIELDS = ("JobID", "JobIDRaw", "State", "ExitCode", "Start", "End", "NodeList")

_TTL_S = 30.0
"""Seconds before a job that the accounting does not know (yet) is queried again."""
_NO_ACCOUNTING_TTL_S = 600.0
"""Seconds before a cluster without accounting is checked again for accounting."""
_MAX_JOBS_PER_CALL = 200


@dataclass(frozen=True)
class Execution:
    """One execution of a job: a requeue ends one and begins the next. Times are Unix seconds.

    Attributes:
        scheduler_id: ``12`` or, for an array task, ``12_3``.
        state: Slurm's state, such as REQUEUED or NODE_FAIL.
        exit_code: The batch script's exit code.
        signal: The signal that ended it, or 0.
        nodes: The host list.
    """

    scheduler_id: str
    state: str
    exit_code: int
    signal: int
    start: float | None
    end: float | None
    nodes: str

    @property
    def has_ended(self) -> bool:
        return self.end is not None and self.state not in {"PENDING", "RUNNING", "SUSPENDED"}

    @property
    def is_final(self) -> bool:
        """Whether it has ended and no other follows."""
        return self.has_ended and self.state != "REQUEUED"

    @property
    def task(self) -> int | None:
        """The index of an array task; None outside an array, and for a range of tasks that never started (``12_[3-5]``)."""
        task = self.scheduler_id.partition("_")[2]
        return int(task) if task.isdecimal() else None


def last_executions(executions: Iterable[Execution]) -> list[Execution]:
    """The last execution of a job, or of each task of an array."""
    return list({execution.scheduler_id: execution for execution in executions}.values())


def find_last(executions: Sequence[Execution]) -> Execution | None:
    """The execution with which a job ended; None without one.

    An array has not ended while one of its tasks has not. After that, it ends like the tasks that never
    started, because children without records end with the array; else like the first unsuccessful task.
    """
    last = last_executions(executions)
    return next(
        chain(
            (item for item in last if not item.is_final),
            (item for item in last if item.task is None),
            (item for item in last if item.state != "COMPLETED"),
            last,
        ),
        None,
    )


class AccountingHistory:
    """Executions of jobs by scheduler id, oldest first; ended ones are cached. An array's id stands for all its tasks.

    Args:
        client: The cluster's commands.
    """

    def __init__(self, client: SlurmClient) -> None:
        self._client = client
        self._cache: Cache[str, tuple[Execution, ...]] = Cache(_TTL_S)
        self._missing_since: float | None = None
        self._failed_at = float("-inf")
        self.last_error: HyperpodError | None = None
        """Why the last accounting query failed; None when it succeeded, or when the cluster keeps no accounting."""

    @property
    def is_available(self) -> bool:
        """Whether the cluster keeps accounting, as far as is known."""
        return self._missing_since is None

    def mark_missing(self) -> None:
        """Note that the cluster keeps no accounting."""
        self._missing_since = time.monotonic()

    async def get(self, scheduler_ids: Iterable[str], *, executions: int = 1) -> dict[str, tuple[Execution, ...]]:
        """The executions of these jobs; unknown jobs are left out.

        Args:
            scheduler_ids: The jobs.
            executions: How many ended executions each job must have; with fewer in the cache, the
                job is queried again.
        """
        unique_ids = list(dict.fromkeys(scheduler_ids))
        missing_ids = [job for job in unique_ids if self._needs_query(job, executions)]
        if missing_ids and self._may_query():
            await self._query(missing_ids)
        return {job: executions_of_job for job in unique_ids if (executions_of_job := self._executions(job))}

    def _executions(self, job: str) -> tuple[Execution, ...]:
        cached = self._cache.last(job)
        return cached.value if cached is not None else ()

    def _needs_query(self, job: str, executions: int) -> bool:
        known = self._executions(job)
        ended_count = sum(execution.has_ended for execution in known)
        is_final = all(execution.is_final for execution in last_executions(known))
        return not (ended_count >= executions and is_final) and not self._cache.is_fresh(job)

    def _may_query(self) -> bool:
        now = time.monotonic()
        if self.last_error is not None and now - self._failed_at < _TTL_S:
            return False
        return self._missing_since is None or now - self._missing_since > _NO_ACCOUNTING_TTL_S

    async def _query(self, jobs: Sequence[str]) -> None:
        for start in range(0, len(jobs), _MAX_JOBS_PER_CALL):
            part = jobs[start : start + _MAX_JOBS_PER_CALL]
            try:
                executions = await sacct(self._client, part)
            except (RefusedError, NotFoundError):
                executions = {}
            except HyperpodError as error:
                self._failed_at = time.monotonic()
                if error.code == "no_accounting":
                    self.mark_missing()
                self.last_error = None if error.code == "no_accounting" else error
                return
            self._missing_since = self.last_error = None
            for job, executions_of_job in _with_arrays(executions, part).items():
                self._cache.put(job, tuple(executions_of_job))


def _with_arrays(executions: Mapping[str, Sequence[Execution]], jobs: Iterable[str]) -> dict[str, list[Execution]]:
    """All executions by scheduler id, and those of these jobs, empty for unknown ones; an array has those of all its tasks."""
    by_id = {job: [*executions.get(job, ())] for job in {*jobs, *executions}}
    for job, executions_of_task in executions.items():
        array_id, separator, _ = job.partition("_")
        if separator and array_id in by_id:
            by_id[array_id] += executions_of_task
    return by_id


async def find_by_folder(client: SlurmClient, folder: str, since: float, uid: int | None) -> str | None:
    """This user's newest job with this working folder, which the accounting always records; None when there is none.

    Args:
        client: The cluster's commands.
        folder: The folder as the nodes see it.
        since: Earliest submit time in Unix seconds; the query starts a day earlier because clocks
            may differ.
        uid: This user's uid on the cluster, None when unknown. Without it root sees the jobs of all
            users.
    """
    day = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(since - 86_400))
    try:
        text = await client.query(
            [
                "sacct",
                "--allocations",
                "--noheader",
                "--parsable2",
                f"--delimiter={FIELD}",
                "--format=JobIDRaw,WorkDir",
                f"--starttime={day}",
                *([] if uid is None else [f"--user={uid}"]),
            ]
        )
    except (RefusedError, NotFoundError):
        return None
    except HyperpodError as error:
        if error.code == "no_accounting":
            return None
        raise
    rows = (line.split(FIELD, 1) for line in text.splitlines() if FIELD in line)
    matches = [job for job, workdir in rows if workdir == folder and job.isdecimal()]
    return max(matches, key=int, default=None)


async def sacct(client: SlurmClient, jobs: Sequence[str]) -> dict[str, list[Execution]]:
    """All executions of jobs, oldest first, including requeued ones."""
    text = await client.query(
        [
            "sacct",
            "--allocations",
            "--duplicates",
            "--allusers",
            "--noheader",
            "--parsable2",
            f"--delimiter={FIELD}",
            f"--format={','.join(_FIELDS)}",
            f"--jobs={','.join(jobs)}",
        ]
    )
    return parse_sacct(text)


def parse_sacct(text: str) -> dict[str, list[Execution]]:
    """Parse `sacct` output by scheduler id."""
    executions_by_job: dict[str, list[Execution]] = {}
    for line in text.splitlines():
        values = line.split(FIELD)
        if len(values) != len(_FIELDS):
            continue
        row = dict(zip(_FIELDS, values, strict=True))
        code, _, signal = row["ExitCode"].partition(":")
        execution = Execution(
            scheduler_id=row["JobID"],
            state=row["State"].split(" ")[0].rstrip("+"),  # "CANCELLED by 1000"
            exit_code=int(code) if code.isdecimal() else 0,
            signal=int(signal) if signal.isdecimal() else 0,
            start=parse_time(row["Start"]),
            end=parse_time(row["End"]),
            nodes="" if row["NodeList"] == "None assigned" else row["NodeList"],
        )
        executions_by_job.setdefault(execution.scheduler_id, []).append(execution)
    for executions in executions_by_job.values():
        executions.sort(key=lambda item: item.start or item.end or float("inf"))
    return executions_by_job


# --------------------------------------------------------------------------------------------------
# Resource usage of ended runs from Slurm's accounting; each run is queried once.

_USAGE_FIELDS = (
    *("JobID", "State", "ExitCode", "Submit", "ElapsedRaw", "TotalCPU"),
    *("MaxRSS", "AllocNodes", "AllocTRES"),
)

_TIMEOUT = 5.0
"""Timeout in seconds for the accounting, short because a user waits for the page."""
_USAGE_TTL_S = 30.0
"""Seconds before a run is queried again when the accounting does not know yet that it ended."""
_FINAL_AFTER_S = 600.0
"""Seconds after a run's end after which the accounting is final."""
_DAY = 86_400.0

_RUNNING = frozenset({"PENDING", "RUNNING", "SUSPENDED", "RESIZING"})
_CPU_TIME = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+(?:\.\d+)?)")


@dataclass(frozen=True)
class Accounted:
    """Accounting totals over all executions of a job, in the units of `Usage`."""

    has_ended: bool
    elapsed: float
    nodes: int
    cpu_seconds: float
    accelerator_seconds: float | None
    max_memory: int | None
    exit_code: int | None
    signal: int | None


class Accounting:
    """Queries the usage of runs.

    Args:
        client: The cluster's commands.
        history: The cluster's accounting history.
    """

    def __init__(self, client: SlurmClient, history: AccountingHistory) -> None:
        self._client = client
        self._history = history
        self._queried_at: dict[str, float] = {}

    async def usage(self, bundle: BundleReader) -> Usage | None:
        """Usage of an ended run or array child; None while the accounting may still change."""
        own_usage, job, records = await asyncio.to_thread(_read, bundle)
        if job is None or not self._history.is_available:
            return own_usage
        now = time.monotonic()
        if now - self._queried_at.get(bundle.run_id, float("-inf")) < _USAGE_TTL_S:
            return None
        self._queried_at[bundle.run_id] = now
        is_final = time.time() - _last_record_time(records) > _FINAL_AFTER_S
        try:
            usage = await query_usage(self._client, job, since=records.head.created_at - _DAY)
        except (RefusedError, NotFoundError):
            return own_usage
        except HyperpodError as error:
            return own_usage if error.code == "no_accounting" else None
        if usage is None or not usage.has_ended:
            return own_usage if is_final else None
        return merge_usage(usage, own_usage)


def merge_usage(accounted: Accounted, own_usage: Usage) -> Usage:
    """Accounting data, completed from the records.

    The accounting counts devices only when its TRES include them (AccountingStorageTRES), and it
    samples memory, so it misses short peaks.
    """
    accelerators = accounted.accelerator_seconds
    if accelerators is None:
        accelerators = own_usage.accelerator_seconds
    return Usage(
        source="accounting",
        attempts=own_usage.attempts,
        elapsed=accounted.elapsed,
        nodes=accounted.nodes or own_usage.nodes,
        cpu_seconds=max(accounted.cpu_seconds, own_usage.cpu_seconds or 0.0),
        accelerator_seconds=accelerators,
        accelerator_kind=own_usage.accelerator_kind,
        max_memory=max(accounted.max_memory or 0, own_usage.max_memory or 0) or None,
        exit_code=accounted.exit_code,
        signal=accounted.signal,
    )


async def query_usage(client: SlurmClient, job: str, *, since: float) -> Accounted | None:
    """Accounting totals of a job over its steps and all executions, requeued ones included; None when the accounting does not know the job.

    Args:
        client: The cluster's commands.
        job: The job's id, or ``12_3`` for an array task.
        since: Unix seconds; a job submitted earlier is another job with the same id.
    """
    output = await client.run(
        [
            "sacct",
            "--duplicates",
            "--allusers",
            "--noheader",
            "--noconvert",
            "--parsable2",
            f"--delimiter={FIELD}",
            f"--format={','.join(_USAGE_FIELDS)}",
            f"--jobs={job}",
        ],
        timeout=_TIMEOUT,
    )
    if output.code != 0:
        raise parse_error("sacct", output)
    return parse_usage(output.out, since)


def parse_usage(text: str, since: float = 0.0) -> Accounted | None:
    """Sum up `sacct` output."""
    rows = []
    for line in text.splitlines():
        values = line.split(FIELD)
        if len(values) == len(_USAGE_FIELDS):
            row = dict(zip(_USAGE_FIELDS, values, strict=True))
            if (parse_time(row["Submit"]) or 0.0) >= since:
                rows.append(row)
    jobs = [row for row in rows if "." not in row["JobID"]]
    if not jobs:
        return None
    counted = [_accelerators(row["AllocTRES"]) for row in jobs]
    exit_code, signal = _exit_status(jobs[-1])
    return Accounted(
        has_ended=not any(row["State"].split(" ")[0] in _RUNNING for row in jobs),
        elapsed=float(sum(_parse_int(row["ElapsedRaw"]) for row in jobs)),
        nodes=max(_parse_int(row["AllocNodes"]) for row in jobs),
        cpu_seconds=sum(cpu_seconds(row["TotalCPU"]) for row in jobs),
        accelerator_seconds=None
        if not any(counted)
        else float(sum(count * _parse_int(row["ElapsedRaw"]) for count, row in zip(counted, jobs, strict=True))),
        max_memory=max((_parse_int(row["MaxRSS"]) for row in rows), default=0) or None,
        exit_code=exit_code,
        signal=signal,
    )


def cpu_seconds(text: str) -> float:
    """Convert ``[days-][hours:]minutes:seconds`` to seconds (man sacct, TotalCPU); 0 when it does not parse."""
    match = _CPU_TIME.fullmatch(text)
    if match is None:
        return 0.0
    days, hours, minutes, seconds = match.groups(default="0")
    return int(days) * _DAY + int(hours) * 3600 + int(minutes) * 60 + float(seconds)


def _exit_status(job: dict[str, str]) -> tuple[int | None, int | None]:
    """Shell-style exit code, and the signal. Slurm reports 0 for jobs that it ended itself, which is not a success."""
    code, _, signal = (int(part) if part.isdecimal() else 0 for part in _parts(job["ExitCode"]))
    if signal:
        return 128 + signal, signal
    return code if code or job["State"] == "COMPLETED" else None, None


def _parts(text: str) -> tuple[str, str, str]:
    return text.partition(":")


def _accelerators(tres: str) -> int:
    return sum(gres.count for gres in parse_tres(tres) if gres.name in ACCELERATORS)


def _parse_int(text: str) -> int:
    return int(text) if text.isdecimal() else 0


def _read(bundle: BundleReader) -> tuple[Usage, str | None, RunRecords]:
    records = bundle.read()
    return journal_usage(bundle), scheduler_id(records, bundle.index), records


def _last_record_time(records: RunRecords) -> float:
    nodes = [node for attempt in records.attempts for node in attempt.nodes]
    ends = [node.ended_at for node in nodes if node.ended_at is not None]
    return max([*ends, *(observation.time for observation in records.observations), records.head.created_at])
