"""What became of jobs that left the queue: Slurm's accounting, asked once for each job."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hyperpod_jlab.model.errors import HyperpodError, NotFoundError, RefusedError
from hyperpod_jlab.orchestrators.slurm.client import SlurmClient
from hyperpod_jlab.orchestrators.slurm.job import to_time
from hyperpod_jlab.orchestrators.slurm.rows import FIELD

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


class History:
    """Executions of jobs by scheduler id, oldest first, remembered once they are over.

    Args:
        client: The cluster's commands.
    """

    def __init__(self, client: SlurmClient) -> None:
        self._client = client
        self._known: dict[str, tuple[float, tuple[Execution, ...]]] = {}
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
        return {job: self._known[job][1] for job in wanted if self._known.get(job, (0, ()))[1]}

    def _must_ask(self, job: str, executions: int) -> bool:
        asked, known = self._known.get(job, (0.0, ()))
        enough = sum(execution.over for execution in known) >= executions
        return not enough and time.monotonic() - asked > (_SILENT if asked else 0.0)

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
            now = time.monotonic()
            for job in part:
                self._known[job] = (now, tuple(found.get(job, ())))


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
