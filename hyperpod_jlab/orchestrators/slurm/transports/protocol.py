"""How Slurm's commands are run: what every transport can do, and what it gives back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

TIME_FORMAT = {"SLURM_TIME_FORMAT": "%s", "SLURM_BITSTR_LEN": "0"}
"""Makes every command print times as Unix seconds, whatever time zone it runs in, and an array's tasks in full (man squeue)."""

KEPT = frozenset({"SLURM_CONF", "SLURM_JWT", "SLURM_CONF_SERVER", "SLURM_CLUSTERS"})
"""Variables of the environment that say which cluster is meant, and stay."""

PREFIXES = ("SLURM_", "SBATCH_", "SQUEUE_", "SINFO_", "SACCT_", "SCANCEL_", "SCONTROL_", "SRUN_")
"""Beginnings of variables that would change what the commands do, as inside of a job; all others of them go."""

ANSWER_LOST = "answer_lost"
"""Code of the `UnreachableError` of a command that may have been run although its answer never came."""

COMMAND_TIMEOUT = 75.0
"""Seconds after which a command counts as hanging. Slurm's own patience with a controller is shorter (MessageTimeout, 10 s, some times over)."""


@dataclass(frozen=True)
class Output:
    """What a command gave: its exit code (128 + n for signal n), and what it wrote."""

    code: int
    out: str
    err: str


class Transport(Protocol):
    """A way to run Slurm's commands."""

    async def run(
        self, argv: Sequence[str], *, stdin: bytes = b"", timeout: float = COMMAND_TIMEOUT
    ) -> Output:
        """Run one command to its end; the words reach it as they are, whatever is in them.

        Raises:
            UnreachableError: It cannot be run: no such command, no login node, no answer in time; with the code `ANSWER_LOST`, it may have been run.
        """
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know of the way, such as that another login node has taken over; newest last."""
        ...

    async def close(self) -> None:
        """Give back connections."""
        ...
