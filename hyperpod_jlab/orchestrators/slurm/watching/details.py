"""What only a few jobs are asked for: how often they were requeued, how they ended, and where they write."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hyperpod_jlab.model.errors import NotFoundError
from hyperpod_jlab.orchestrators.slurm.client import SlurmClient
from hyperpod_jlab.orchestrators.slurm.job import to_time
from hyperpod_jlab.orchestrators.slurm.rows import Fields, long_format, new_mark, parse_long
from hyperpod_jlab.orchestrators.slurm.tables.hostlist import expand
from hyperpod_jlab.orchestrators.slurm.watching.job_files import JobFiles, Place

_FIELDS = Fields(
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

_AT_ONCE = 200


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
    def place(self) -> Place:
        """What patterns in paths stand for."""
        host = self.nodes[0] if self.nodes else ""
        return Place(self.job_id, self.array_job_id, self.task, host)


async def ask_details(client: SlurmClient, jobs: Iterable[str]) -> list[Details]:
    """Details of those of these jobs that the controller remembers: an array's id stands for all its tasks."""
    wanted = list(dict.fromkeys(jobs))
    found: list[Details] = []
    for begin in range(0, len(wanted), _AT_ONCE):
        mark = new_mark()
        listed = ",".join(wanted[begin : begin + _AT_ONCE])
        argv = ["squeue", "--noheader", "--all", "--states=all", f"--jobs={listed}"]
        try:
            text = await client.ask([*argv, f"--Format={long_format(mark, _FIELDS)}"])
        except NotFoundError:  # of a single one that is gone; among several they are left out
            continue
        found += [_details(row) for row in parse_long(text, mark, _FIELDS)]
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
        restarts=_number(row["restarts"]),
        nodes=expand(row["nodes"]),
        batch=row["batch"] == "1",
        partition=row["partition"],
        node_count=max(1, _number(row["node_count"].partition("-")[0])),
        submitted=to_time(row["submitted"]),
        comment="" if row["comment"] == "(null)" else row["comment"],
        files=files,
    )


def exit_of(text: str) -> tuple[int, int]:
    """Exit code and signal as squeue writes them: ``7:0``, or in 22.05 the status of wait(2), 1792."""
    code, colon, signal = text.partition(":")
    if colon:
        return _number(code), _number(signal)
    status = _number(code) & 0xFFFF
    return status >> 8, status & 0x7F


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0
