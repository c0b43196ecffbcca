"""Slurm queue jobs as data, and the fields requested from squeue."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice

from hyperpod_jlab.core.records import RunRecords
from hyperpod_jlab.core.run_id import RUN_ID
from hyperpod_jlab.engines.slurm.rows import Fields, Gres, parse_tres, times

# --------------------------------------------------------------------------------------------------
# Array tasks as squeue lists them.


def parse_tasks(task_list: str | None, limit: int | None = None) -> tuple[int, ...]:
    """Parse squeue's task list (``-O ArrayTaskID``): ``3``, ``0-9%2`` or, for regular lists, ``0-9:3``.

    Returns the first `limit` indices; empty without a list.

    Raises:
        ValueError: The text is not a task list.
    """
    return tuple(islice(chain.from_iterable(_ranges(task_list)), limit))


def has_task(task_list: str | None, index: int) -> bool:
    """Whether a squeue task list contains an index, without expanding the list.

    Raises:
        ValueError: The text is not a task list.
    """
    return any(index in span for span in _ranges(task_list))


def _ranges(task_list: str | None) -> Iterator[range]:
    if task_list is None:
        return
    for part in task_list.partition("%")[0].strip("[]").split(","):
        span, _, step = part.partition(":")
        first, _, last = span.partition("-")
        yield range(int(first), int(last or first) + 1, int(step or 1))


COMMENT = "hyperpod:"
"""Prefix of the comment of a run's job; the run id follows."""

FIELDS = Fields(
    fixed=(
        ("job_id", "JobID"),
        ("array_job_id", "ArrayJobID"),
        ("array_task", "ArrayTaskID"),
        ("state", "State"),
        ("reason", "Reason"),
        ("user", "UserName"),
        ("partition", "Partition"),
        ("submitted", "SubmitTime"),
        ("started", "StartTime"),
        ("ends", "EndTime"),
        ("limit", "TimeLimit"),
        ("node_count", "NumNodes"),
        ("node_list", "NodeList"),
        ("cpus", "NumCPUs"),
        ("tasks", "NumTasks"),
        ("tres", "tres-alloc"),
        ("tres_job", "tres-per-job"),
        ("tres_node", "tres-per-node"),
        ("tres_task", "tres-per-task"),
        ("priority", "PriorityLong"),
        ("qos", "QOS"),
        ("account", "Account"),
        ("dependency", "Dependency"),
    ),
    free=(("comment", "Comment"), ("folder", "WorkDir"), ("name", "Name")),
)
"""The fields requested from squeue for each job (man squeue, ``-O``)."""

ENDED_STATES = frozenset(
    {
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "DEADLINE",
        "FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PREEMPTED",
        "REVOKED",
        "TIMEOUT",
    }
)
"""Final states (man squeue, JOB STATE CODES)."""

WAITING = frozenset(
    {"PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT", "SUSPENDED"}
)
"""States in which a job has no working processes."""

HELD_REASONS = frozenset(
    {"JobHeldAdmin", "JobHeldUser", "JobHoldMaxRequeue", "REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT"}
)
"""Reasons and states of held jobs, which wait until a user or admin releases them (man squeue)."""

_RUN = re.compile(re.escape(COMMENT) + r"(\S+)")


@dataclass(frozen=True, slots=True)
class SlurmJob:
    """One row of squeue. Times are Unix seconds; `limit` is in seconds, None without a limit."""

    job_id: str
    array_job_id: str
    array_task: str | None
    state: str
    reason: str
    user: str
    partition: str
    submitted: float | None
    started_at: float | None
    ends_at: float | None
    limit: float | None
    node_count: int
    node_list: str
    cpus: int
    gres: tuple[Gres, ...]
    priority: int
    qos: str
    account: str
    dependency: str | None
    run_id: str | None
    folder: str
    name: str

    @property
    def scheduler_id(self) -> str:
        """The id as users write it: ``12`` or, for an array task, ``12_3``."""
        return self.job_id if self.array_task is None else f"{self.array_job_id}_{self.array_task}"

    def first_tasks(self, limit: int) -> tuple[int, ...]:
        """The first `limit` array tasks of this row: one, or all pending ones."""
        try:
            return parse_tasks(self.array_task, limit)
        except ValueError:
            return ()

    def has_task(self, index: int) -> bool:
        """Whether the row covers an array task."""
        try:
            return has_task(self.array_task, index)
        except ValueError:
            return False

    @property
    def is_ended(self) -> bool:
        """Whether the job has ended."""
        return self.state in ENDED_STATES

    @property
    def is_waiting(self) -> bool:
        """Whether the job has no working processes yet."""
        return self.state in WAITING

    @property
    def is_held(self) -> bool:
        """Whether the job is held."""
        return self.is_waiting and (self.reason in HELD_REASONS or self.state in HELD_REASONS)


def to_job(row: dict[str, str]) -> SlurmJob:
    """Parse a row of squeue.

    Raises:
        ValueError: A number is invalid.
    """
    task = row["array_task"]
    return SlurmJob(
        job_id=row["job_id"],
        array_job_id=row["array_job_id"],
        array_task=None if task in {"N/A", ""} else task,
        state=row["state"],
        reason=row["reason"],
        user=row["user"],
        partition=row["partition"],
        submitted=parse_time(row["submitted"]),
        started_at=parse_time(row["started"]),
        ends_at=parse_time(row["ends"]),
        limit=parse_limit(row["limit"]),
        node_count=_count(row["node_count"]),
        node_list=row["node_list"],
        cpus=_count(row["cpus"]),
        gres=_gres(row["tres"], row["tres_job"], row["tres_node"], row["tres_task"], row["node_count"], row["tasks"]),
        priority=_count(row["priority"]),
        qos=row["qos"],
        account=row["account"],
        dependency=None if row["dependency"] in {"(null)", ""} else row["dependency"],
        run_id=parse_run_id(row["comment"]),
        folder=row["folder"],
        name=row["name"],
    )


@lru_cache(maxsize=4096)
def _gres(tres: str, per_job: str, per_node: str, per_task: str, nodes: str, tasks: str) -> tuple[Gres, ...]:
    """What a job has, or requests, on all nodes together. Cached, because thousands of jobs request the same.

    The allocation lists generic resources only if the accounting counts them
    (AccountingStorageTRES); otherwise the request is used.
    """
    totals = parse_tres(tres)
    if totals:
        return totals
    return (
        *parse_tres(per_job),
        *times(parse_tres(per_node), _count(nodes)),
        *times(parse_tres(per_task), _count(tasks)),
    )


def parse_run_id(comment: str) -> str | None:
    """The run id in a job's comment, or None."""
    match = _RUN.match(comment)
    return match[1] if match and RUN_ID.fullmatch(match[1]) else None


def parse_time(text: str) -> float | None:
    """Parse a time as Unix seconds; None for N/A, NONE, Unknown and the like."""
    return float(text) if text.isdecimal() else None


@lru_cache(maxsize=4096)
def parse_limit(text: str) -> float | None:
    """Parse a duration of squeue or sinfo, ``[days-]hours:minutes:seconds`` or ``minutes:seconds``, to seconds; None without a limit."""
    days, dash, clock = text.rpartition("-")
    parts = clock.split(":")
    if not all(part.isdecimal() for part in parts) or (dash and not days.isdecimal()):
        return None
    if dash:  # with days, the clock starts at the hours
        parts += ["0"] * (3 - len(parts))
    seconds = 0
    for part in parts:
        seconds = seconds * 60 + int(part)
    if len(parts) == 1:
        seconds *= 60
    return float(seconds + int(days or 0) * 86_400)


_UNITS = {"K": 10**3, "M": 10**6, "G": 10**9}


def _count(text: str) -> int:
    """Parse a count of squeue; large ones have a unit."""
    if text.isdecimal():
        return int(text)
    unit = _UNITS.get(text[-1:].upper(), 0)
    return int(float(text[:-1]) * unit) if unit else 0


# --------------------------------------------------------------------------------------------------
# Mapping runs to jobs.


def scheduler_id(records: RunRecords, index: int | None) -> str | None:
    """The id of a run's job, or of an array child's (``12_3``), in the form that Slurm's commands accept; None while unknown.

    The claim names the job that executes; the submit's id may belong to a duplicate.

    Args:
        records: The run's records.
        index: The child's index, or None.
    """
    if records.claim is not None:
        return records.claim.scheduler_id
    if records.submission is None:
        return None
    sent = records.submission.scheduler_id
    return sent if index is None else f"{sent}_{index}"
