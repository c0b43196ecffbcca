"""What ended runs used, as Slurm's accounting says: asked once for each run."""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import dataclass

from hyperpod_jlab.model.errors import HyperpodError, NotFoundError, RefusedError
from hyperpod_jlab.model.records import RunRecords
from hyperpod_jlab.model.usage import Usage
from hyperpod_jlab.orchestrators.slurm.client import SlurmClient
from hyperpod_jlab.orchestrators.slurm.complaints import complaint
from hyperpod_jlab.orchestrators.slurm.identity import scheduler_id
from hyperpod_jlab.orchestrators.slurm.job import to_time
from hyperpod_jlab.orchestrators.slurm.rows import FIELD
from hyperpod_jlab.orchestrators.slurm.tables.gres import ACCELERATORS, parse_tres
from hyperpod_jlab.orchestrators.usage import journal_usage
from hyperpod_jlab.storage.records import BundleReader

_FIELDS = (
    *("JobID", "State", "ExitCode", "Submit", "ElapsedRaw", "TotalCPU"),
    *("MaxRSS", "AllocNodes", "AllocTRES"),
)

_PATIENCE = 5.0
"""Seconds for which the accounting is waited for: somebody looks at a page."""
_SILENT = 30.0
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
    """

    def __init__(self, client: SlurmClient) -> None:
        self._client = client
        self._asked: dict[str, float] = {}

    async def usage(self, bundle: BundleReader, *, kept: bool) -> Usage | None:
        """What an ended run used; None when the accounting may say it later.

        Args:
            bundle: The run's, or that of an array's child.
            kept: Whether the cluster keeps accounting, as far as is known.
        """
        own, job, records = await asyncio.to_thread(_read, bundle)
        if job is None or not kept:
            return own
        now = time.monotonic()
        if now - self._asked.get(bundle.run_id, float("-inf")) < _SILENT:
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
            f"--format={','.join(_FIELDS)}",
            f"--jobs={job}",
        ],
        timeout=_PATIENCE,
    )
    if output.code != 0:
        raise complaint("sacct", output)
    return parse_usage(output.out, since)


def parse_usage(text: str, since: float = 0.0) -> Accounted | None:
    """What `sacct` printed, summed up."""
    rows = []
    for line in text.splitlines():
        values = line.split(FIELD)
        if len(values) == len(_FIELDS):
            row = dict(zip(_FIELDS, values, strict=True))
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
