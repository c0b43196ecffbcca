"""Slurm's commands as functions: what they are given, and their answers as data."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence

from hyperpod_jlab.model.bulk import without_collections
from hyperpod_jlab.model.errors import UnreachableError
from hyperpod_jlab.orchestrators.slurm.bucket import Bucket
from hyperpod_jlab.orchestrators.slurm.complaints import complaint
from hyperpod_jlab.orchestrators.slurm.job import FIELDS, SlurmJob, to_job
from hyperpod_jlab.orchestrators.slurm.rows import long_format, new_mark, row_values, split_long
from hyperpod_jlab.orchestrators.slurm.transports.protocol import COMMAND_TIMEOUT, Output, Transport

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
    ) -> Output:
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
                "sbatch said no job's id",
                code="no_job_id",
                hint="see whether the job is there: hpj jobs",
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
