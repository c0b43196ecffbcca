"""What became of jobs that left the queue: Slurm's accounting, asked once for each job."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hyperpod_jlab.core.cache import Cache
from hyperpod_jlab.core.errors import HyperpodError, NotFoundError, RefusedError
from hyperpod_jlab.core.records import RunRecords
from hyperpod_jlab.core.usage import Usage
from hyperpod_jlab.engines.repairs import journal_usage
from hyperpod_jlab.engines.slurm.client import SlurmClient, complaint
from hyperpod_jlab.engines.slurm.job_files import JobFiles, PatternValues
from hyperpod_jlab.engines.slurm.jobs import scheduler_id, to_time
from hyperpod_jlab.engines.slurm.rows import (
    ACCELERATORS,
    FIELD,
    Fields,
    expand,
    long_format,
    new_mark,
    parse_long,
    parse_tres,
)
from hyperpod_jlab.storage.records import BundleReader

_FIELDS = ("JobID", "JobIDRaw", "State", "ExitCode", "Start", "End", "NodeList")

_SILENT = 30.0
"""Seconds after which a job that the accounting does not know (yet) is asked for again."""
_WITHOUT = 600.0
"""Seconds after which a cluster that keeps no accounting is asked again whether it does."""
_AT_ONCE = 200


@dataclass(frozen=True)
class Execution:
    """One execution of a job: a requeue ends one and begins the next. Times are Unix seconds.

    Attributes:
        scheduler_id: ``12`` or, of an array's task, ``12_3``.
        state: Slurm's state, such as REQUEUED or NODE_FAIL.
        exit_code: What the batch script ended with.
        signal: What ended it, or 0.
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
    def over(self) -> bool:
        """Whether it has ended."""
        return self.end is not None and self.state not in {"PENDING", "RUNNING", "SUSPENDED"}


class AccountingHistory:
    """Executions of jobs by scheduler id, oldest first, remembered once they are over.

    Args:
        client: The cluster's commands.
    """

    def __init__(self, client: SlurmClient) -> None:
        self._client = client
        self._known: Cache[str, tuple[Execution, ...]] = Cache(_SILENT)
        self._without_since: float | None = None
        self._failed_at = float("-inf")
        self.silent: HyperpodError | None = None
        """Why the accounting did not answer when it was asked last; None when it did, or is not kept."""

    @property
    def kept(self) -> bool:
        """Whether the cluster keeps accounting, as far as is known."""
        return self._without_since is None

    async def of(
        self, scheduler_ids: Iterable[str], *, executions: int = 1
    ) -> dict[str, tuple[Execution, ...]]:
        """The executions of these jobs; those that nothing is known of are left out.

        Args:
            scheduler_ids: The jobs.
            executions: How many that are over are expected at least: what is remembered may be older.
        """
        wanted = list(dict.fromkeys(scheduler_ids))
        ask = [job for job in wanted if self._must_ask(job, executions)]
        if ask and self._may_ask():
            await self._ask(ask)
        return {job: known for job in wanted if (known := self._executions(job))}

    def _executions(self, job: str) -> tuple[Execution, ...]:
        known = self._known.last(job)
        return known.value if known is not None else ()

    def _must_ask(self, job: str, executions: int) -> bool:
        enough = sum(execution.over for execution in self._executions(job)) >= executions
        return not enough and not self._known.is_fresh(job)

    def _may_ask(self) -> bool:
        now = time.monotonic()
        if self.silent is not None and now - self._failed_at < _SILENT:
            return False
        return self._without_since is None or now - self._without_since > _WITHOUT

    async def _ask(self, jobs: Sequence[str]) -> None:
        for begin in range(0, len(jobs), _AT_ONCE):
            part = jobs[begin : begin + _AT_ONCE]
            try:
                found = await sacct(self._client, part)
            except (RefusedError, NotFoundError):
                found = {}
            except HyperpodError as error:
                self._failed_at = time.monotonic()
                if error.code == "no_accounting":
                    self._without_since = self._failed_at
                self.silent = None if error.code == "no_accounting" else error
                return
            self._without_since = self.silent = None
            for job in part:
                self._known.put(job, tuple(found.get(job, ())))


async def find_by_folder(
    client: SlurmClient, folder: str, since: float, uid: int | None
) -> str | None:
    """The newest job of this user with this working folder, which the accounting always keeps; None also where there is none.

    Args:
        client: The cluster's commands.
        folder: The folder as the nodes see it.
        since: Unix seconds before which it was not sent; a day is taken off for clocks that differ.
        uid: This user's number there; None where it cannot be known. Without it root is shown the jobs of all users.
    """
    day = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(since - 86_400))
    try:
        text = await client.ask(
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
    found = [job for job, where in rows if where == folder and job.isdecimal()]
    return max(found, key=int, default=None)


async def sacct(client: SlurmClient, jobs: Sequence[str]) -> dict[str, list[Execution]]:
    """All executions of jobs, requeued ones included, oldest first."""
    text = await client.ask(
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
    """What `sacct` printed, by scheduler id."""
    found: dict[str, list[Execution]] = {}
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
            start=to_time(row["Start"]),
            end=to_time(row["End"]),
            nodes="" if row["NodeList"] == "None assigned" else row["NodeList"],
        )
        found.setdefault(execution.scheduler_id, []).append(execution)
    for executions in found.values():
        executions.sort(key=lambda one: one.start or one.end or float("inf"))
    return found


# --------------------------------------------------------------------------------------------------
# What ended runs used, as Slurm's accounting says: asked once for each run.

_USAGE_FIELDS = (
    *("JobID", "State", "ExitCode", "Submit", "ElapsedRaw", "TotalCPU"),
    *("MaxRSS", "AllocNodes", "AllocTRES"),
)

_TIMEOUT = 5.0
"""Seconds for which the accounting is waited for: somebody looks at a page."""
_USAGE_SILENT = 30.0
"""Seconds after which a run is asked for again that the accounting did not know to have ended."""
_SETTLED = 600.0
"""Seconds after a run's end after which the accounting is not going to say more."""
_DAY = 86_400.0

_RUNNING = frozenset({"PENDING", "RUNNING", "SUSPENDED", "RESIZING"})
_CPU_TIME = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+(?:\.\d+)?)")


@dataclass(frozen=True)
class Accounted:
    """What the accounting says of all executions of a job, in the units of `Usage`."""

    over: bool
    elapsed: float
    nodes: int
    cpu_seconds: float
    accelerator_seconds: float | None
    max_memory: int | None
    exit_code: int | None
    signal: int | None


class Accounting:
    """Asks for what runs used.

    Args:
        client: The cluster's commands.
        history: What is known of the cluster's accounting.
    """

    def __init__(self, client: SlurmClient, history: AccountingHistory) -> None:
        self._client = client
        self._history = history
        self._asked: dict[str, float] = {}

    async def usage(self, bundle: BundleReader) -> Usage | None:
        """What an ended run, or an array's child, used; None when the accounting may say it later."""
        own, job, records = await asyncio.to_thread(_read, bundle)
        if job is None or not self._history.kept:
            return own
        now = time.monotonic()
        if now - self._asked.get(bundle.run_id, float("-inf")) < _USAGE_SILENT:
            return None
        self._asked[bundle.run_id] = now
        settled = time.time() - _last_word(records) > _SETTLED
        try:
            found = await ask_usage(self._client, job, since=_sent(records) - _DAY)
        except (RefusedError, NotFoundError):
            return own
        except HyperpodError as error:
            return own if error.code == "no_accounting" else None
        if found is None or not found.over:
            return own if settled else None
        return merged(found, own)


def merged(said: Accounted, own: Usage) -> Usage:
    """What the accounting says, with what it leaves out from the records.

    Where devices are no part of its TRES (AccountingStorageTRES) it does not count them; memory it samples, so that short peaks escape it.
    """
    accelerators = said.accelerator_seconds
    if accelerators is None:
        accelerators = own.accelerator_seconds
    return Usage(
        source="accounting",
        attempts=own.attempts,
        elapsed=said.elapsed,
        nodes=said.nodes or own.nodes,
        cpu_seconds=max(said.cpu_seconds, own.cpu_seconds or 0.0),
        accelerator_seconds=accelerators,
        accelerator_kind=own.accelerator_kind,
        max_memory=max(said.max_memory or 0, own.max_memory or 0) or None,
        exit_code=said.exit_code,
        signal=said.signal,
    )


async def ask_usage(client: SlurmClient, job: str, *, since: float) -> Accounted | None:
    """What the accounting says of a job, its steps and its executions before a requeue included; None when it does not know it.

    Args:
        client: The cluster's commands.
        job: The job's id, or ``12_3`` of an array's task.
        since: Unix seconds; what was sent before is another job that had the id.
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
        raise complaint("sacct", output)
    return parse_usage(output.out, since)


def parse_usage(text: str, since: float = 0.0) -> Accounted | None:
    """What `sacct` printed, summed up."""
    rows = []
    for line in text.splitlines():
        values = line.split(FIELD)
        if len(values) == len(_USAGE_FIELDS):
            row = dict(zip(_USAGE_FIELDS, values, strict=True))
            if (to_time(row["Submit"]) or 0.0) >= since:
                rows.append(row)
    jobs = [row for row in rows if "." not in row["JobID"]]
    if not jobs:
        return None
    counted = [_accelerators(row["AllocTRES"]) for row in jobs]
    exit_code, signal = _end(jobs[-1])
    return Accounted(
        over=not any(row["State"].split(" ")[0] in _RUNNING for row in jobs),
        elapsed=float(sum(_number(row["ElapsedRaw"]) for row in jobs)),
        nodes=max(_number(row["AllocNodes"]) for row in jobs),
        cpu_seconds=sum(cpu_seconds(row["TotalCPU"]) for row in jobs),
        accelerator_seconds=None
        if not any(counted)
        else float(
            sum(
                count * _number(row["ElapsedRaw"]) for count, row in zip(counted, jobs, strict=True)
            )
        ),
        max_memory=max((_number(row["MaxRSS"]) for row in rows), default=0) or None,
        exit_code=exit_code,
        signal=signal,
    )


def cpu_seconds(text: str) -> float:
    """``[days-][hours:]minutes:seconds`` in seconds (man sacct, TotalCPU); 0 for what is none."""
    found = _CPU_TIME.fullmatch(text)
    if found is None:
        return 0.0
    days, hours, minutes, seconds = found.groups(default="0")
    return int(days) * _DAY + int(hours) * 3600 + int(minutes) * 60 + float(seconds)


def _end(job: dict[str, str]) -> tuple[int | None, int | None]:
    """Exit code in the shell's manner, and signal. Of what it ended itself Slurm says 0, which is no success."""
    code, _, signal = (int(part) if part.isdecimal() else 0 for part in _parts(job["ExitCode"]))
    if signal:
        return 128 + signal, signal
    return code if code or job["State"] == "COMPLETED" else None, None


def _parts(text: str) -> tuple[str, str, str]:
    return text.partition(":")


def _accelerators(tres: str) -> int:
    return sum(one.count for one in parse_tres(tres) if one.name in ACCELERATORS)


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0


def _read(bundle: BundleReader) -> tuple[Usage, str | None, RunRecords]:
    records = bundle.read()
    return journal_usage(bundle), scheduler_id(records, bundle.index), records


def _sent(records: RunRecords) -> float:
    sent = records.head.created_at  # an adopted job was sent before its bundle was made
    return min(sent, records.submission.submitted_at) if records.submission else sent


def _last_word(records: RunRecords) -> float:
    nodes = [node for attempt in records.attempts for node in attempt.nodes]
    ends = [node.ended_at for node in nodes if node.ended_at is not None]
    return max([*ends, *(seen.time for seen in records.observations), records.head.created_at])


# --------------------------------------------------------------------------------------------------
# What only a few jobs are asked for: how often they were requeued, how they ended, and where they write.

_DETAILS_FIELDS = Fields(
    plain=(
        ("job_id", "JobID"),
        ("array_job_id", "ArrayJobID"),
        ("array_task", "ArrayTaskID"),
        ("state", "State"),
        ("user", "UserName"),
        ("started", "StartTime"),
        ("ended", "EndTime"),
        ("exit_code", "exit_code"),
        ("restarts", "restartcnt"),
        ("nodes", "NodeList"),
        ("batch", "BatchFlag"),
        ("partition", "Partition"),
        ("node_count", "NumNodes"),
        ("submitted", "SubmitTime"),
    ),
    free=(
        ("stdout", "STDOUT"),
        ("stderr", "STDERR"),
        ("folder", "WorkDir"),
        ("comment", "Comment"),
        ("name", "Name"),
    ),
)

_DETAILS_AT_ONCE = 200


@dataclass(frozen=True)
class Details:
    """One job, or the tasks of an array that have not begun. Times are Unix seconds.

    Attributes:
        job_id: The job's own number.
        array_job_id: The array's number; the job's own where there is none.
        tasks: The tasks as squeue lists them, or None.
        exit_code: What the script ended with; 128 + n for signal n.
        signal: The signal that ended it, or None.
        restarts: How often it was requeued after it had begun.
        nodes: Its nodes, the first one runs the script.
        batch: Whether it has a script: what srun and salloc start has none.
    """

    job_id: str
    array_job_id: str
    tasks: str | None
    state: str
    user: str
    started: float | None
    ended: float | None
    exit_code: int
    signal: int | None
    restarts: int
    nodes: tuple[str, ...]
    batch: bool
    partition: str
    node_count: int
    submitted: float | None
    comment: str
    files: JobFiles

    @property
    def task(self) -> int | None:
        """The task's index, when it is one."""
        return int(self.tasks) if self.tasks is not None and self.tasks.isdecimal() else None

    @property
    def scheduler_id(self) -> str:
        """The id as people write it."""
        return self.job_id if self.task is None else f"{self.array_job_id}_{self.task}"

    @property
    def place(self) -> PatternValues:
        """What patterns in paths stand for."""
        host = self.nodes[0] if self.nodes else ""
        return PatternValues(self.job_id, self.array_job_id, self.task, host)


async def ask_details(client: SlurmClient, jobs: Iterable[str]) -> list[Details]:
    """Details of those of these jobs that the controller remembers: an array's id stands for all its tasks."""
    wanted = list(dict.fromkeys(jobs))
    found: list[Details] = []
    for begin in range(0, len(wanted), _DETAILS_AT_ONCE):
        mark = new_mark()
        listed = ",".join(wanted[begin : begin + _DETAILS_AT_ONCE])
        argv = ["squeue", "--noheader", "--all", "--states=all", f"--jobs={listed}"]
        try:
            text = await client.ask([*argv, f"--Format={long_format(mark, _DETAILS_FIELDS)}"])
        except NotFoundError:  # of a single one that is gone; among several they are left out
            continue
        found += [_details(row) for row in parse_long(text, mark, _DETAILS_FIELDS)]
    return found


def _details(row: dict[str, str]) -> Details:
    code, signal = exit_of(row["exit_code"])
    files = JobFiles(row["stdout"], row["stderr"], row["folder"], row["name"], row["user"])
    return Details(
        job_id=row["job_id"],
        array_job_id=row["array_job_id"],
        tasks=None if row["array_task"] in {"N/A", ""} else row["array_task"],
        state=row["state"],
        user=row["user"],
        started=to_time(row["started"]),
        ended=to_time(row["ended"]),
        exit_code=128 + signal if signal else code,
        signal=signal or None,
        restarts=_details_number(row["restarts"]),
        nodes=expand(row["nodes"]),
        batch=row["batch"] == "1",
        partition=row["partition"],
        node_count=max(1, _details_number(row["node_count"].partition("-")[0])),
        submitted=to_time(row["submitted"]),
        comment="" if row["comment"] == "(null)" else row["comment"],
        files=files,
    )


def exit_of(text: str) -> tuple[int, int]:
    """Exit code and signal as squeue writes them: ``7:0``, or in 22.05 the status of wait(2), 1792."""
    code, colon, signal = text.partition(":")
    if colon:
        return _details_number(code), _details_number(signal)
    status = _details_number(code) & 0xFFFF
    return status >> 8, status & 0x7F


def _details_number(text: str) -> int:
    return int(text) if text.isdecimal() else 0
