"""Slurm's accounting as the history of all users' jobs.

What is counted agrees with ``sreport`` to the second, because its source is the same: slurmdbd adds up the
time between start and end of each execution, times what it was given, within each hour
(as_mysql_rollup.c). Two things differ. While a job is suspended, sreport does not count its CPUs, only its
nodes and GPUs; here CPUs count too. And sreport adds the idle time of a reservation to the accounts that
may use it; here it is not counted.
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from hyperpod_jlab.core.bulk import without_collections
from hyperpod_jlab.core.cluster import JOB_ENDED, Job, Rows
from hyperpod_jlab.core.cost import Execution
from hyperpod_jlab.core.errors import DeniedError, HyperpodError, NotFoundError, RefusedError, UnreachableError
from hyperpod_jlab.core.run_id import RUN_ID
from hyperpod_jlab.engines.slurm.accounting import AccountingHistory
from hyperpod_jlab.engines.slurm.client import SlurmClient
from hyperpod_jlab.engines.slurm.facts import ClusterFacts
from hyperpod_jlab.engines.slurm.job_queue import JobQueue
from hyperpod_jlab.engines.slurm.jobs import parse_run_id, parse_time, scheduler_id
from hyperpod_jlab.engines.slurm.queue import SHARED_TTL_S, controller_query
from hyperpod_jlab.engines.slurm.reasons import RUNNING, cached_message
from hyperpod_jlab.engines.slurm.rows import ACCELERATORS, SHARES, Gres, expand, new_delimiter, parse_tres
from hyperpod_jlab.engines.slurm.tables import (
    END_STATES,
    FAILED,
    NAMES_TTL_S,
    SlurmNode,
    SlurmTables,
    accelerators_of,
    job_rows,
    resources_of,
    value_or_none,
)
from hyperpod_jlab.engines.slurm.transport import COMMAND_TIMEOUT
from hyperpod_jlab.storage.records import BundleReader

_FIELDS = (
    *("JobID", "JobIDRaw", "State", "ExitCode", "User", "Account", "QOS", "Partition"),
    *("Priority", "TimelimitRaw", "NNodes", "NodeList", "AllocCPUS", "AllocTRES"),
    *("Submit", "Start", "Comment", "WorkDir", "JobName", "End"),
)
"""Free text is not the last field, so that a newline in it does not end the row."""

_ENDED = "BF,CA,CD,DL,F,NF,OOM,PR,RQ,RS,RV,TO"
"""The states of executions that ended (man sacct, ``--state``). With them, sacct lists what ended in a period; without, what was in the queue in it."""

ROWS_PER_CALL = 20_000
"""How many rows one answer of sacct may have, as far as that is known before. They and their jobs take 1.3 kB each."""
ROWS_PER_PART = 5_000
"""How many rows are handed on at once."""
_FIRST_SPAN_S = 3_600
_GROWTH = 8
_DAY_S = 86_400
_EPOCH = 1_000_000_000
"""Slurm is younger; sacct refuses times near 0."""

_TIMEOUT_S = 300.0
"""Timeout of one sacct in seconds: a busy database needs long for many rows."""

_RUN_FOLDER = re.compile(rf"/runs/[^/]+/({RUN_ID.pattern})(?=/|$)")
"""A run's folder in the working folder of its job."""

_CODES = {"TIMEOUT": "TimeLimit", "OUT_OF_MEMORY": "OutOfMemory"}


class SlurmHistory:
    """The executions of all users' jobs, see `engines.protocol.History`.

    Args:
        client: The cluster's commands.
        queue: Its queue.
        facts: Cached facts about it.
        accounting: Knows whether it keeps accounting.
        tables: Its nodes.
    """

    def __init__(
        self,
        client: SlurmClient,
        queue: JobQueue,
        facts: ClusterFacts,
        accounting: AccountingHistory,
        tables: SlurmTables,
    ) -> None:
        self._client = client
        self._queue = queue
        self._facts = facts
        self._accounting = accounting
        self._tables = tables
        self._notes = controller_query(self._load_notes)

    async def jobs_between(self, begin: float, end: float, user: str | None = None) -> AsyncIterator[list[Job]]:
        """All executions in a period, first those that had not ended at its end, then the latest end first.

        Each part is a `Rows`. Its notes say what is hidden from the caller, or that `user` does not exist.

        Raises:
            UnreachableError: The accounting does not answer, or the cluster keeps none (``no_accounting``).
            DeniedError: This user may not ask it.
        """
        own = await self._queue.user_name()
        notes = await self._notes.get(NAMES_TTL_S)
        newest = math.floor(min(end, time.time() + _DAY_S))
        oldest = max(math.floor(begin) + 1, _EPOCH)
        users = "--allusers" if user is None else f"--user={user}"
        try:
            alive = await self._alive(newest, own, users)
        except (DeniedError, RefusedError) as error:
            if user is None or "invalid user" not in error.message.lower():
                raise
            yield Rows([], (f"The cluster does not know the user {user}.",))
            return
        try:
            suspended = await self._suspended(own)
            alive += [job for job in suspended if user in {None, job.user}]
        except UnreachableError:
            notes += ("Jobs that are suspended now are missing: the controller does not answer.",)
        # A job may be suspended after it was read as running, and it may end.
        seen = {_key(job): job for job in alive if (job.started_at or math.inf) < end}
        for part in _parts(sorted(seen.values(), key=_latest_end_first)) or [[]]:
            yield Rows(part, notes)
        async for jobs in self._ended(oldest, newest, own, users):
            fresh = [job for job in jobs if (job.started_at is None or job.started_at < end) and _key(job) not in seen]
            for part in _parts(fresh):
                yield Rows(part, notes)

    async def executions(self, bundle: BundleReader) -> list[Execution] | None:
        """All executions of a run, oldest first; of an array's child only its own. None if the accounting does not know it (yet)."""
        records = await asyncio.to_thread(bundle.read)
        job = scheduler_id(records, bundle.index)
        if job is None or not self._accounting.is_available:
            return None
        try:
            jobs = await self._sacct("", "--allusers", f"--jobs={job}", timeout=COMMAND_TIMEOUT)
        except (RefusedError, NotFoundError):
            return None
        except UnreachableError as error:
            if error.code == "no_accounting":
                return None
            raise
        since = records.head.created_at - _DAY_S  # an older job is another one with the same id
        jobs = [job for job in jobs if (job.submitted_at or 0.0) >= since]
        if not jobs:
            return None
        has_shares = any(not row.accelerators and _shares(row) for row in jobs)
        nodes = await self._tables.nodes_query.get(NAMES_TTL_S) if has_shares else {}
        return to_executions(jobs, nodes)

    async def _alive(self, moment: int, own: str, users: str) -> list[Job]:
        """The executions that ran at a moment and did not end in it."""
        jobs = await self._sacct(own, users, "--state=R", *_period(moment, moment + 1))
        return [job for job in jobs if job.state not in JOB_ENDED or (job.ends_at or 0) > moment]

    async def _suspended(self, own: str) -> list[Job]:
        """The suspended jobs, from the queue: sacct reads its whole database for them."""
        snapshot = await self._queue.all_queue.get(SHARED_TTL_S)
        jobs = [job for job in snapshot.jobs if job.state == "SUSPENDED"]
        rows = job_rows(jobs, frozenset({own}))
        return [replace(row, started_at=job.started_at) for row, job in zip(rows, jobs, strict=True)]

    async def _ended(self, oldest: int, newest: int, own: str, users: str) -> AsyncIterator[list[Job]]:
        """The executions that ended from one second to another, in windows over time, the latest first.

        A window has so many seconds that one answer has a quarter of `ROWS_PER_CALL` rows to all of them. Of the first window, and of a
        wider one than the last, the rows are counted before.
        """
        span = _FIRST_SPAN_S + max(0, newest - int(time.time()))
        is_unknown, count = True, 0
        which = (users, f"--state={_ENDED}")
        while newest >= oldest:
            span = min(span, newest - oldest + 1)
            period = _period(newest - span + 1, newest)
            if is_unknown:
                text = await self._ask("JobIDRaw", new_delimiter(), *which, *period)
                count = text.count("\n")
                if count > ROWS_PER_CALL and span > 1:
                    span = _narrower(span, count)
                    continue
            if not is_unknown or count:
                jobs = await self._sacct(own, *which, *period)
                count = len(jobs)
                yield sorted(jobs, key=_latest_end_first)
                del jobs
            newest -= span
            is_unknown = count <= ROWS_PER_CALL // 4
            if is_unknown:
                span *= _GROWTH
            elif count > ROWS_PER_CALL:
                span = _narrower(span, count)

    async def _sacct(self, own: str, *options: str, timeout: float = _TIMEOUT_S) -> list[Job]:
        delimiter = new_delimiter()
        text = await self._ask(",".join(_FIELDS), delimiter, *options, timeout=timeout)
        return await asyncio.to_thread(parse_history, text, delimiter, own)

    async def _ask(self, fields: str, delimiter: str, *options: str, timeout: float = _TIMEOUT_S) -> str:
        argv = ["sacct", "--allocations", "--duplicates", "--noheader"]
        argv += ["--parsable2", f"--delimiter={delimiter}", f"--format={fields}", *options]
        try:
            return await self._client.query(argv, timeout=timeout)
        except UnreachableError as error:
            if error.code == "no_accounting":
                self._accounting.mark_missing()
            raise

    async def _load_notes(self) -> tuple[str, ...]:
        try:
            hides = await self._queue.hides_jobs() or await self._database_hides_jobs()
            counted = (await self._facts.settings()).counted
            groups = [group for queue in (await self._facts.limits()).values() for group in queue.groups]
        except UnreachableError:  # the accounting answers without the controller
            return ()
        notes = []
        if hides:
            notes.append("Slurm hides other users' jobs from all but operators and coordinators (PrivateData=jobs).")
        has_devices = any(gres.name in ACCELERATORS for group in groups for gres in group.gres)
        if has_devices and not any(_counts_accelerators(name) for name in counted):
            notes.append("The accounting does not count GPUs: AccountingStorageTRES has no gres/gpu.")
        return tuple(notes)

    async def _database_hides_jobs(self) -> bool:
        """The same of slurmdbd's own configuration, which is what sacct follows."""
        argv = ["sacctmgr", "--readonly", "show", "configuration"]
        try:
            text = await self._client.query(argv)
        except HyperpodError:
            return False
        values = re.findall(r"^PrivateData\s*=\s*(\S+)", text, re.MULTILINE)
        return any("jobs" in value.split(",") for value in values)


def _narrower(span: int, count: int) -> int:
    """The seconds that have three quarters of `ROWS_PER_CALL` rows, where so many seconds have this count."""
    return max(1, span * ROWS_PER_CALL * 3 // 4 // count)


def _counts_accelerators(name: str) -> bool:
    return name.startswith("gres/") and re.split("[:/]", name)[1] in ACCELERATORS


def _period(first: int, last: int) -> tuple[str, str]:
    """The options for a period. Times of the form ``uts1795719000`` are Unix seconds in any time zone (parse_time.c)."""
    return f"--starttime=uts{first}", f"--endtime=uts{last}"


def _key(job: Job) -> tuple[str, float | None, float | None]:
    """What tells an execution from all others: slurmdbd has one of a job for each time at which it was submitted or requeued."""
    return job.scheduler_id, job.submitted_at, job.started_at


def _latest_end_first(job: Job) -> float:
    return -(job.ends_at or 0.0) if job.state in JOB_ENDED else -math.inf


def _parts(jobs: list[Job]) -> list[list[Job]]:
    return [jobs[start : start + ROWS_PER_PART] for start in range(0, len(jobs), ROWS_PER_PART)]


@without_collections()
def parse_history(text: str, delimiter: str, own: str = "") -> list[Job]:
    """Parse sacct's rows; those of executions that have not started are left out, unless they ended so.

    Args:
        text: The output.
        delimiter: Its delimiter.
        own: This user's name on the cluster.

    Raises:
        UnreachableError: The output was cut off.
    """
    jobs = (_job(dict(zip(_FIELDS, row, strict=True)), own) for row in _rows(text, delimiter))
    return [job for job in jobs if job.started_at is not None or job.state in JOB_ENDED]


def _rows(text: str, delimiter: str) -> Iterator[list[str]]:
    """The values of each row, found one by one: to split the whole text takes more memory than the jobs."""
    start = 0
    while start < len(text):
        values = []
        for separator in (*(delimiter,) * (len(_FIELDS) - 1), "\n"):
            stop = text.find(separator, start)
            if stop < 0:
                raise UnreachableError("sacct's answer was cut off", code="incomplete_answer", hint="try again")
            values.append(text[start:stop])
            start = stop + len(separator)
        yield values


def _job(row: Mapping[str, str], own: str) -> Job:
    slurm_state = row["State"].partition(" ")[0].rstrip("+")  # "CANCELLED by 1000"
    end = parse_time(row["End"])
    start = parse_time(row["Start"])
    nodes = () if row["NodeList"] == "None assigned" else expand(row["NodeList"])
    if not nodes or slurm_state == "PENDING":
        # It never started, and sacct shows its end as start; or it started just now, and slurmdbd knows a step of it but not yet what it was given.
        start = None
    state = _state(slurm_state, has_ended=end is not None)
    reason, code = _reason(slurm_state, row["ExitCode"])
    gres = parse_tres(row["AllocTRES"])
    limit = int(row["TimelimitRaw"]) * 60 if row["TimelimitRaw"].isdecimal() else None
    if end is None and start is not None and limit is not None:
        end = start + limit
    array_id, in_array, task = row["JobID"].partition("_")
    tasks = task.strip("[]")
    is_own = row["User"] == own != ""
    return Job(
        # As in the queue, a part of a heterogeneous job ("12+1") has the id of its own.
        scheduler_id=f"{array_id}_{tasks}" if in_array else row["JobIDRaw"],
        name=row["JobName"],
        user=row["User"],
        state=state,
        mine=is_own,
        queue=row["Partition"] or None,
        reason=reason,
        reason_code=code,
        nodes=nodes,
        node_count=_count(row["NNodes"]),
        cpus=_count(row["AllocCPUS"]),
        accelerators=accelerators_of(gres),
        resources=resources_of(gres),
        array=tasks if in_array else None,
        account=value_or_none(row["Account"]),
        qos=value_or_none(row["QOS"]),
        priority=_count(row["Priority"]),
        time_limit=limit,
        run_id=_run_id(row) if is_own else None,
        submitted_at=parse_time(row["Submit"]),
        started_at=start,
        ends_at=end,
    )


def _state(slurm_state: str, *, has_ended: bool) -> str:
    """One of `hyperpod_jlab.core.cluster.JOB_STATES`."""
    if not has_ended:
        return {"PENDING": "waiting", "SUSPENDED": "suspended"}.get(slurm_state, "running")
    if slurm_state == "REQUEUED":
        return "cancelled"
    if slurm_state == "RESIZING":
        return "succeeded"
    return END_STATES.get(slurm_state, "failed")


def _reason(slurm_state: str, exit_text: str) -> tuple[str | None, str | None]:
    """Why it ended so, as a sentence and as a code. Slurm's own reason in the accounting is the one for which a job waited."""
    if slurm_state == "REQUEUED":
        return "it was requeued", "requeued"
    if slurm_state == "RESIZING":
        return "it was resized and went on", "resized"
    if slurm_state == "FAILED":
        code = "NonZeroExitCode" if exit_text.endswith(":0") else "RaisedSignal"
        return cached_message(code), code
    return FAILED.get(slurm_state) or RUNNING.get(slurm_state), _CODES.get(slurm_state)


def _run_id(row: Mapping[str, str]) -> str | None:
    """The run of a job: by its comment, which the accounting has only with AccountingStoreFlags=job_comment, else by its working folder."""
    match = _RUN_FOLDER.search(row["WorkDir"])
    return parse_run_id(row["Comment"]) or (match[1] if match else None)


def _count(text: str) -> int | None:
    return int(text) or None if text.isdecimal() else None


# --------------------------------------------------------------------------------------------------
# Executions, as costs are computed from.


def to_executions(jobs: Iterable[Job], nodes: Mapping[str, SlurmNode]) -> list[Execution]:
    """The executions of rows of the history that have started, oldest first.

    The accounting does not say whether a job had its nodes for itself. One that had was given all of their CPUs, so it pays for the whole node
    anyway.

    Args:
        jobs: The rows.
        nodes: The cluster's nodes by name, to convert shares of GPUs; those of a job without a known node count as 0.
    """
    started = [(job.started_at, job) for job in jobs if job.started_at is not None]
    started.sort(key=lambda item: item[0])
    last = {job.scheduler_id: start for start, job in started}
    return [
        Execution(
            started_at=start,
            ended_at=job.ends_at if job.state in JOB_ENDED else None,
            nodes=job.nodes,
            node_count=job.node_count or max(1, len(job.nodes)),
            accelerators=job.accelerators or _from_shares(job, nodes),
            cpus=job.cpus,
            repeated=start < last[job.scheduler_id] and job.reason_code != "resized",
        )
        for start, job in started
    ]


def _shares(job: Job) -> int:
    return sum(resource.total for resource in job.resources if resource.name in SHARES)


def _from_shares(job: Job, nodes: Mapping[str, SlurmNode]) -> float:
    """The GPUs that shares of GPUs amount to: shares times GPUs per share, as its first known node has them."""
    gres = next((nodes[name].gres for name in job.nodes if name in nodes), ())
    gpus = _sum(gres, "gpu")
    return sum(
        resource.total * gpus / all_shares
        for resource in job.resources
        if resource.name in SHARES and (all_shares := _sum(gres, resource.name))
    )


def _sum(gres: Sequence[Gres], name: str) -> int:
    return sum(one.count for one in gres if one.name == name)
