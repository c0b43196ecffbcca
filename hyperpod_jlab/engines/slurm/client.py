"""Slurm's commands as functions: what they are given, and their answers as data."""

from __future__ import annotations

import asyncio
import re
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from hyperpod_jlab.core.bulk import without_collections
from hyperpod_jlab.core.errors import (
    ConflictError,
    DeniedError,
    HyperpodError,
    NotFoundError,
    RefusedError,
    UnreachableError,
)
from hyperpod_jlab.engines.slurm.jobs import FIELDS, SlurmJob, to_job
from hyperpod_jlab.engines.slurm.rows import long_format, new_mark, row_values, split_long
from hyperpod_jlab.engines.slurm.transport import COMMAND_TIMEOUT, CommandOutput, Transport

# --------------------------------------------------------------------------------------------------
# A token bucket: so many scheduler calls a second at the most, below Slurm's own limiter (RPC rate limiting, 2 a second and user by default).

_WINDOW = 60.0


class Bucket:
    """Lets `rate` calls a second through on average and `burst` at once; counts them.

    Args:
        rate: Calls a second.
        burst: Calls at once after a quiet while.
    """

    def __init__(self, rate: float = 1.0, burst: int = 20) -> None:
        self._rate = rate
        self._burst = float(burst)
        self._tokens = float(burst)
        self._at = time.monotonic()
        self._calls: deque[float] = deque(maxlen=1000)

    async def take(self) -> None:
        """Wait until a call may go out."""
        while True:
            now = time.monotonic()
            self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate)
            self._at = now
            if self._tokens >= 1:
                self._tokens -= 1
                self._calls.append(now)
                return
            await asyncio.sleep((1 - self._tokens) / self._rate)

    @property
    def last_minute(self) -> int:
        """Calls in the last minute."""
        begin = time.monotonic() - _WINDOW
        return sum(call >= begin for call in self._calls)


# --------------------------------------------------------------------------------------------------
# What Slurm's commands complain about, as errors of ours: whether nobody answered, somebody may not, or something is wrong.
#
# The texts are those of slurm_strerror (src/common/slurm_errno.c), the same from 22.05 to 25.11 unless several are listed.


@dataclass(frozen=True)
class Complaint:
    """A text of Slurm's, in lower case, and what it means here."""

    text: str
    kind: type[HyperpodError]
    code: str
    hint: str | None


_SAID: tuple[Complaint, ...] = (
    # First, for below it stands that the connection to slurmdbd was refused.
    Complaint("persistinit msg", UnreachableError, "accounting_down", None),
    Complaint("problem talking to the database", UnreachableError, "accounting_down", None),
    Complaint(
        "munge",
        UnreachableError,
        "munge_down",
        "the service munge on this machine (or the login node) must run with the cluster's key",
    ),
    Complaint(
        "protocol authentication error",
        UnreachableError,
        "munge_down",
        "the keys or clocks of this machine and the controller differ: munge -n | unmunge",
    ),
    Complaint(
        "invalid authentication credential",
        UnreachableError,
        "munge_down",
        "the keys of this machine and the controller differ",
    ),
    Complaint("unable to contact slurm controller", UnreachableError, "controller_down", None),
    Complaint("unable to contact slurmctld", UnreachableError, "controller_down", None),
    Complaint("socket timed out", UnreachableError, "controller_slow", None),
    Complaint("zero bytes were transmitted", UnreachableError, "controller_down", None),
    Complaint("connection refused", UnreachableError, "controller_down", None),
    Complaint("connection timed out", UnreachableError, "controller_down", None),
    Complaint("unexpected message received", UnreachableError, "controller_down", None),
    Complaint("slurm backup controller in standby", UnreachableError, "controller_down", None),
    Complaint(
        "could not establish a configuration source", UnreachableError, "no_slurm_conf", None
    ),
    Complaint("unable to process configuration", UnreachableError, "no_slurm_conf", None),
    Complaint("slurm accounting storage is disabled", UnreachableError, "no_accounting", None),
    Complaint("access/permission denied", DeniedError, "denied", None),
    Complaint("invalid user id", DeniedError, "denied", "the job belongs to another user"),
    Complaint(
        "user id is missing", DeniedError, "denied", "your user does not exist on the cluster"
    ),
    Complaint("invalid job id", NotFoundError, "no_such_job", None),
    Complaint("job has already finished", ConflictError, "wrong_state", None),
    Complaint("already completing or completed", ConflictError, "wrong_state", None),
    Complaint("job is no longer pending execution", ConflictError, "wrong_state", None),
    Complaint("job is pending execution", ConflictError, "wrong_state", None),
    Complaint(
        "requested operation is presently disabled",
        ConflictError,
        "not_requeueable",
        "it was submitted with --no-requeue, or the cluster does not allow requeue; submit it again instead",
    ),
    Complaint(
        "invalid account or account/partition",
        RefusedError,
        "no_association",
        "use --account with one of your accounts (sacctmgr show assoc user=$USER), or ask your cluster administrator for one",
    ),
    Complaint(
        "invalid qos", RefusedError, "invalid_qos", "see: sacctmgr show assoc user=$USER format=qos"
    ),
    Complaint("invalid partition", RefusedError, "unknown_queue", "see: hpj queues"),
    Complaint("requested time limit is invalid", RefusedError, "time_limit", "see: hpj queues"),
    Complaint("job dependency problem", RefusedError, "dependency", None),
    Complaint(
        "job violates accounting/qos policy",
        RefusedError,
        "qos_limit",
        "request less, wait until your other jobs end, or use another --qos",
    ),
    Complaint(
        "requested node configuration is not available",
        RefusedError,
        "no_such_nodes",
        "request fewer GPUs or CPUs or less memory on each node; see: hpj nodes",
    ),
    Complaint("more processors requested than permitted", RefusedError, "too_many_cpus", None),
    Complaint(
        "node count specification invalid", RefusedError, "too_many_nodes", "see: hpj queues"
    ),
    Complaint("invalid node state", ConflictError, "wrong_state", "see: hpj nodes"),
    Complaint("invalid node name", RefusedError, "unknown_node", "see: hpj nodes"),
    Complaint("invalid preferred feature", RefusedError, "invalid_feature", None),
    Complaint("invalid license", RefusedError, "invalid_license", "see: scontrol show licenses"),
    Complaint(
        "reservation is invalid",
        RefusedError,
        "invalid_reservation",
        "see: scontrol show reservations",
    ),
    Complaint("access denied to requested reservation", DeniedError, "reservation_denied", None),
    Complaint("invalid time-min", RefusedError, "invalid_time_min", None),
    Complaint(
        "group not permitted",
        DeniedError,
        "queue_denied",
        "use another queue with --queue; see: hpj queues",
    ),
    Complaint(
        "required partition not available",
        RefusedError,
        "queue_closed",
        "use another queue with --queue; see: hpj queues",
    ),
    Complaint(
        "invalid job array specification",
        RefusedError,
        "array_too_large",
        "the largest index is MaxArraySize - 1; see: scontrol show config",
    ),
    Complaint("invalid generic resource", RefusedError, "invalid_gres", "see: hpj nodes"),
    Complaint("invalid feature specification", RefusedError, "invalid_feature", None),
)

_NOISE = re.compile(
    r"^(sbatch|squeue|scancel|scontrol|sinfo|sacct|sacctmgr|slurm_\w+): (error|fatal): ",
    re.MULTILINE,
)


def complaint(program: str, output: CommandOutput) -> HyperpodError:
    """The error for a command that failed."""
    text = _NOISE.sub("", output.err or output.out).strip()
    lower = text.lower()
    shown = " ".join(text.split())[:400] or f"it ended with exit code {output.code}"
    for known in _SAID:
        if known.text in lower:
            # Of several lines the one that says it; the others are what Slurm tried meanwhile.
            said = next((line for line in text.splitlines() if known.text in line.lower()), shown)
            return known.kind(
                f"Slurm: {' '.join(said.split())[:400]}",
                code=known.code,
                hint=known.hint or _HINTS.get(known.code),
                detail={"command": program, "exit_code": output.code},
            )
    return RefusedError(f"Slurm: {shown}", detail={"command": program, "exit_code": output.code})


_HINTS = {
    "accounting_down": "the accounting (slurmdbd) does not answer; jobs still run",
    "controller_down": "try again later; see: scontrol ping",
    "controller_slow": "the controller is busy; try again later",
    "no_slurm_conf": "set slurm_conf to the Slurm configuration, or set SLURM_CONF",
}

_JOB_ID = re.compile(r"^([0-9]+)(;\S*)?$", re.MULTILINE)


class SlurmClient:
    """The commands of one cluster.

    All methods raise `UnreachableError` when the controller does not answer, `DeniedError` and `RefusedError` when it says no.
    """

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self._bucket = Bucket()
        self._before: dict[tuple[str, ...], Kept] = {}

    @property
    def calls_last_minute(self) -> int:
        """Commands that were run in the last minute."""
        return self._bucket.last_minute

    async def ask(self, argv: Sequence[str], *, stdin: bytes = b"") -> str:
        """Run a command; what it printed."""
        output = await self.run(argv, stdin=stdin)
        if output.code != 0:
            raise complaint(argv[0], output)
        return output.out

    async def run(
        self, argv: Sequence[str], *, stdin: bytes = b"", timeout: float = COMMAND_TIMEOUT
    ) -> CommandOutput:
        """Run a command whose failure says something too."""
        await self._bucket.take()
        return await self.transport.run(argv, stdin=stdin, timeout=timeout)

    async def sbatch(self, script: bytes, options: Sequence[str] = ()) -> str:
        """Send a script; the job's id.

        Raises:
            UnreachableError: Nobody answered, so that the job may be there or not.
        """
        return await self._send(["sbatch", "--parsable", *options], script)

    async def sbatch_file(self, path: str, args: Sequence[str], options: Sequence[str]) -> str:
        """Send a script that lies where the commands run, with its arguments; the job's id (see `sbatch`)."""
        return await self._send(["sbatch", "--parsable", *options, path, *args])

    async def _send(self, argv: Sequence[str], script: bytes = b"") -> str:
        out = await self.ask(argv, stdin=script)
        found = _JOB_ID.search(out)
        if found is None:
            raise UnreachableError(
                "sbatch printed no job id",
                code="no_job_id",
                hint="check whether the job exists: hpj jobs",
                detail={"output": out[:200]},
            )
        return found[1]

    async def squeue(self, options: Sequence[str] = ()) -> list[SlurmJob]:
        """The queue, jobs that ended a while ago included as long as the controller remembers them (MinJobAge)."""
        mark = new_mark()
        argv = [
            "squeue",
            "--noheader",
            "--all",
            "--states=all",
            f"--Format={long_format(mark, FIELDS)}",
        ]
        text = await self.ask([*argv, *options])
        before = self._before.setdefault(tuple(options), {})
        return await asyncio.to_thread(parse_queue, text, mark, before)

    async def scancel(self, job_id: str, *options: str) -> None:
        """End a job, or one task of an array. One that has ended already is no fault."""
        await self.ask(["scancel", *options, job_id])

    async def scontrol(self, *words: str) -> str:
        """A command of scontrol; what it printed."""
        return await self.ask(["scontrol", *words])


Kept = dict[tuple[str, ...], SlurmJob]
"""Jobs by the row that said them."""


@without_collections()
def parse_queue(text: str, mark: str, before: Kept | None = None) -> list[SlurmJob]:
    """What `SlurmClient.squeue` was answered.

    Args:
        text: The answer.
        mark: Its mark.
        before: The jobs of the look before by their rows, which is brought up to date. In a long queue nearly all rows are as they were, and a job that is
            the same object costs neither time nor memory.
    """
    found: Kept = {}
    known = {} if before is None else before
    for row in split_long(text, mark, FIELDS):
        job = known.get(row)
        if job is None and (values := row_values(row, FIELDS)) is not None:
            job = to_job(values)
        if job is not None:
            found[row] = job
    if before is not None:
        before.clear()
        before.update(found)
    return list(found.values())
