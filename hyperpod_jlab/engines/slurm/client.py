"""Slurm's commands as functions with typed arguments and results."""

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
from hyperpod_jlab.engines.slurm.rows import long_format, new_delimiter, row_values, split_long
from hyperpod_jlab.engines.slurm.transport import COMMAND_TIMEOUT, CommandOutput, Transport

# --------------------------------------------------------------------------------------------------
# A token bucket for scheduler calls that stays below Slurm's own limiter (RPC rate limiting, 2 a
# second and user by default).

_WINDOW_S = 60.0


class Bucket:
    """Allows `rate` calls a second on average and `burst` at once, and counts them.

    Args:
        rate: Calls a second.
        burst: Calls at once after an idle period.
    """

    def __init__(self, rate: float = 1.0, burst: int = 20) -> None:
        self._rate = rate
        self._burst = float(burst)
        self._tokens = float(burst)
        self._updated_at = time.monotonic()
        self._calls: deque[float] = deque(maxlen=1000)

    async def acquire(self) -> None:
        """Wait until a call may go out."""
        while True:
            now = time.monotonic()
            self._tokens = min(self._burst, self._tokens + (now - self._updated_at) * self._rate)
            self._updated_at = now
            if self._tokens >= 1:
                self._tokens -= 1
                self._calls.append(now)
                return
            await asyncio.sleep((1 - self._tokens) / self._rate)

    @property
    def last_minute(self) -> int:
        window_start = time.monotonic() - _WINDOW_S
        return sum(call >= window_start for call in self._calls)


# --------------------------------------------------------------------------------------------------
# Slurm's error messages mapped to our errors: unreachable, permission denied, or refused.
#
# The texts are those of slurm_strerror (src/common/slurm_errno.c), unchanged from 22.05 to 25.11
# unless several are listed.


@dataclass(frozen=True)
class ErrorPattern:
    """A Slurm error text in lower case, and the error that it maps to."""

    text: str
    kind: type[HyperpodError]
    code: str
    hint: str | None


_ERROR_PATTERNS: tuple[ErrorPattern, ...] = (
    # Must come first: the same output also says that the connection to slurmdbd was refused.
    ErrorPattern("persistinit msg", UnreachableError, "accounting_down", None),
    ErrorPattern("problem talking to the database", UnreachableError, "accounting_down", None),
    ErrorPattern(
        "munge",
        UnreachableError,
        "munge_down",
        "the service munge on this machine (or the login node) must run with the cluster's key",
    ),
    ErrorPattern(
        "protocol authentication error",
        UnreachableError,
        "munge_down",
        "the keys or clocks of this machine and the controller differ: munge -n | unmunge",
    ),
    ErrorPattern(
        "invalid authentication credential",
        UnreachableError,
        "munge_down",
        "the keys of this machine and the controller differ",
    ),
    ErrorPattern("unable to contact slurm controller", UnreachableError, "controller_down", None),
    ErrorPattern("unable to contact slurmctld", UnreachableError, "controller_down", None),
    ErrorPattern("socket timed out", UnreachableError, "controller_slow", None),
    ErrorPattern("zero bytes were transmitted", UnreachableError, "controller_down", None),
    ErrorPattern("connection refused", UnreachableError, "controller_down", None),
    ErrorPattern("connection timed out", UnreachableError, "controller_down", None),
    ErrorPattern("unexpected message received", UnreachableError, "controller_down", None),
    ErrorPattern("slurm backup controller in standby", UnreachableError, "controller_down", None),
    ErrorPattern("could not establish a configuration source", UnreachableError, "no_slurm_conf", None),
    ErrorPattern("unable to process configuration", UnreachableError, "no_slurm_conf", None),
    ErrorPattern("slurm accounting storage is disabled", UnreachableError, "no_accounting", None),
    ErrorPattern("access/permission denied", DeniedError, "denied", None),
    ErrorPattern("invalid user id", DeniedError, "denied", "the job belongs to another user"),
    ErrorPattern("user id is missing", DeniedError, "denied", "your user does not exist on the cluster"),
    ErrorPattern("invalid job id", NotFoundError, "no_such_job", None),
    ErrorPattern("job has already finished", ConflictError, "wrong_state", None),
    ErrorPattern("already completing or completed", ConflictError, "wrong_state", None),
    ErrorPattern("job is no longer pending execution", ConflictError, "wrong_state", None),
    ErrorPattern("job is pending execution", ConflictError, "wrong_state", None),
    ErrorPattern(
        "requested operation is presently disabled",
        ConflictError,
        "not_requeueable",
        "it was submitted with --no-requeue, or the cluster does not allow requeue; submit it again instead",
    ),
    ErrorPattern(
        "invalid account or account/partition",
        RefusedError,
        "no_association",
        "use --account with one of your accounts (sacctmgr show assoc user=$USER), or ask your cluster administrator for one",
    ),
    ErrorPattern("invalid qos", RefusedError, "invalid_qos", "see: sacctmgr show assoc user=$USER format=qos"),
    ErrorPattern("invalid partition", RefusedError, "unknown_queue", "list queues with: hpj queues"),
    ErrorPattern("requested time limit is invalid", RefusedError, "time_limit", "list queues with: hpj queues"),
    ErrorPattern("job dependency problem", RefusedError, "dependency", None),
    ErrorPattern(
        "job violates accounting/qos policy",
        RefusedError,
        "qos_limit",
        "request less, wait until your other jobs end, or use another --qos",
    ),
    ErrorPattern(
        "requested node configuration is not available",
        RefusedError,
        "no_such_nodes",
        "request fewer GPUs or CPUs or less memory on each node; list nodes with: hpj nodes",
    ),
    ErrorPattern("more processors requested than permitted", RefusedError, "too_many_cpus", None),
    ErrorPattern("node count specification invalid", RefusedError, "too_many_nodes", "list queues with: hpj queues"),
    ErrorPattern("invalid node state", ConflictError, "wrong_state", "list nodes with: hpj nodes"),
    ErrorPattern("invalid node name", RefusedError, "unknown_node", "list nodes with: hpj nodes"),
    ErrorPattern("invalid preferred feature", RefusedError, "invalid_feature", None),
    ErrorPattern("invalid license", RefusedError, "invalid_license", "see: scontrol show licenses"),
    ErrorPattern("reservation is invalid", RefusedError, "invalid_reservation", "see: scontrol show reservations"),
    ErrorPattern("access denied to requested reservation", DeniedError, "reservation_denied", None),
    ErrorPattern("invalid time-min", RefusedError, "invalid_time_min", None),
    ErrorPattern(
        "group not permitted",
        DeniedError,
        "queue_denied",
        "use another queue with --queue; list queues with: hpj queues",
    ),
    ErrorPattern(
        "required partition not available",
        RefusedError,
        "queue_closed",
        "use another queue with --queue; list queues with: hpj queues",
    ),
    ErrorPattern(
        "invalid job array specification",
        RefusedError,
        "array_too_large",
        "the largest index is MaxArraySize - 1; see: scontrol show config",
    ),
    ErrorPattern("invalid generic resource", RefusedError, "invalid_gres", "list nodes with: hpj nodes"),
    ErrorPattern("invalid feature specification", RefusedError, "invalid_feature", None),
)

_NOISE = re.compile(
    r"^(sbatch|squeue|scancel|scontrol|sinfo|sacct|sacctmgr|srun|slurm_\w+): (error|fatal): ", re.MULTILINE
)


def parse_error(program: str, output: CommandOutput) -> HyperpodError:
    """The error for a failed command."""
    text = _NOISE.sub("", output.err or output.out).strip()
    lower = text.lower()
    summary = " ".join(text.split())[:400] or f"it ended with exit code {output.code}"
    for pattern in _ERROR_PATTERNS:
        if pattern.text in lower:
            # Use the line with the actual error; the other lines report earlier attempts.
            line_text = next((line for line in text.splitlines() if pattern.text in line.lower()), summary)
            return pattern.kind(
                f"Slurm: {' '.join(line_text.split())[:400]}",
                code=pattern.code,
                hint=pattern.hint or _HINTS.get(pattern.code),
                detail={"command": program, "exit_code": output.code},
            )
    return RefusedError(f"Slurm: {summary}", detail={"command": program, "exit_code": output.code})


_HINTS = {
    "accounting_down": "the accounting (slurmdbd) does not answer; jobs still run",
    "controller_down": "try again later; see: scontrol ping",
    "controller_slow": "the controller is busy; try again later",
    "no_slurm_conf": "set slurm_conf to the Slurm configuration, or set SLURM_CONF",
}

_JOB_ID = re.compile(r"^([0-9]+)(;\S*)?$", re.MULTILINE)


class SlurmClient:
    """The commands of one cluster.

    All methods raise `UnreachableError` when the controller does not answer, `DeniedError` and
    `RefusedError` when it refuses.
    """

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self._bucket = Bucket()
        self._row_caches: dict[tuple[str, ...], RowCache] = {}

    @property
    def calls_last_minute(self) -> int:
        """Commands run in the last minute."""
        return self._bucket.last_minute

    async def query(self, argv: Sequence[str], *, stdin: bytes = b"", timeout: float = COMMAND_TIMEOUT) -> str:
        """Run a command and return its output."""
        output = await self.run(argv, stdin=stdin, timeout=timeout)
        if output.code != 0:
            raise parse_error(argv[0], output)
        return output.out

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout: float = COMMAND_TIMEOUT) -> CommandOutput:
        """Run a command whose failure is meaningful to the caller."""
        await self._bucket.acquire()
        return await self.transport.run(argv, stdin=stdin, timeout=timeout)

    async def sbatch(self, script: bytes, options: Sequence[str] = ()) -> str:
        """Submit a script and return the job's id.

        Raises:
            UnreachableError: The controller did not answer; the job may exist.
        """
        return await self._send(["sbatch", "--parsable", *options], script)

    async def sbatch_file(self, path: str, args: Sequence[str], options: Sequence[str]) -> str:
        """Submit a script file on the machine that runs the commands, with arguments; returns the job's id (see `sbatch`)."""
        return await self._send(["sbatch", "--parsable", *options, path, *args])

    async def _send(self, argv: Sequence[str], script: bytes = b"") -> str:
        stdout = await self.query(argv, stdin=script)
        match = _JOB_ID.search(stdout)
        if match is None:
            raise UnreachableError(
                "sbatch printed no job id",
                code="no_job_id",
                hint="check whether the job exists: hpj jobs",
                detail={"output": stdout[:200]},
            )
        return match[1]

    async def squeue(self, options: Sequence[str] = ()) -> list[SlurmJob]:
        """The queue, including ended jobs while the controller still knows them (MinJobAge)."""
        delimiter = new_delimiter()
        argv = ["squeue", "--noheader", "--all", "--states=all", f"--Format={long_format(delimiter, FIELDS)}"]
        text = await self.query([*argv, *options])
        row_cache = self._row_caches.setdefault(tuple(options), {})
        return await asyncio.to_thread(parse_queue, text, delimiter, row_cache)

    async def scancel(self, job_id: str, *options: str) -> None:
        """Cancel a job or one array task. Cancelling an ended job is not an error."""
        await self.query(["scancel", *options, job_id])

    async def scontrol(self, *args: str) -> str:
        """Run a scontrol command and return its output."""
        return await self.query(["scontrol", *args])


RowCache = dict[tuple[str, ...], SlurmJob]
"""Jobs by the row that they were parsed from."""


@without_collections()
def parse_queue(text: str, delimiter: str, row_cache: RowCache | None = None) -> list[SlurmJob]:
    """Parse the response to `SlurmClient.squeue`.

    Args:
        text: The response.
        delimiter: Its row delimiter.
        row_cache: Jobs of the previous poll by row, updated in place. In a long queue nearly all
            rows are unchanged, and reusing their objects saves time and memory.
    """
    fresh_rows: RowCache = {}
    cached_rows = {} if row_cache is None else row_cache
    for row in split_long(text, delimiter, FIELDS):
        job = cached_rows.get(row)
        if job is None and (values := row_values(row, FIELDS)) is not None:
            job = to_job(values)
        if job is not None:
            fresh_rows[row] = job
    if row_cache is not None:
        row_cache.clear()
        row_cache.update(fresh_rows)
    return list(fresh_rows.values())
