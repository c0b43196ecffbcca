"""How Slurm's commands are run: what every transport can do, and what it gives back."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from hyperpod_jlab.core.errors import UnreachableError

TIME_FORMAT = {"SLURM_TIME_FORMAT": "%s", "SLURM_BITSTR_LEN": "0"}
"""Makes every command print times as Unix seconds, whatever time zone it runs in, and an array's tasks in full (man squeue)."""

KEPT_VARIABLES = frozenset({"SLURM_CONF", "SLURM_JWT", "SLURM_CONF_SERVER", "SLURM_CLUSTERS"})
"""Variables of the environment that say which cluster is meant, and stay."""

PREFIXES = ("SLURM_", "SBATCH_", "SQUEUE_", "SINFO_", "SACCT_", "SCANCEL_", "SCONTROL_", "SRUN_")
"""Beginnings of variables that would change what the commands do, as inside of a job; all others of them go."""

ANSWER_LOST = "answer_lost"
"""Code of the `UnreachableError` of a command that may have been run although its answer never came."""

COMMAND_TIMEOUT = 75.0
"""Seconds after which a command counts as hanging. Slurm's own patience with a controller is shorter (MessageTimeout, 10 s, some times over)."""


@dataclass(frozen=True)
class CommandOutput:
    """What a command gave: its exit code (128 + n for signal n), and what it wrote."""

    code: int
    out: str
    err: str


class Transport(Protocol):
    """A way to run Slurm's commands."""

    async def run(
        self, argv: Sequence[str], *, stdin: bytes = b"", timeout: float = COMMAND_TIMEOUT
    ) -> CommandOutput:
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


# --------------------------------------------------------------------------------------------------
# Slurm's commands on this machine: a login node, or a Studio space with Slurm's client in it.

_JUPYTERS = ("JPY_", "JUPYTER")
"""Beginnings of variables with this server's own keys: a script that is sent as written takes the environment along, as with sbatch."""


class LocalTransport:
    """Runs the commands as child processes.

    Args:
        commands: Folder of Slurm's commands, or None for those on PATH.
        slurm_conf: Slurm's configuration file, or None for the environment's.
    """

    notes: tuple[str, ...] = ()

    def __init__(self, commands: str | None = None, slurm_conf: str | None = None) -> None:
        self._commands = commands
        self._slurm_conf = slurm_conf

    async def run(
        self, argv: Sequence[str], *, stdin: bytes = b"", timeout: float = COMMAND_TIMEOUT
    ) -> CommandOutput:
        """Run one command to its end (see `Transport.run`)."""
        program = str(Path(self._commands) / argv[0]) if self._commands else argv[0]
        try:
            process = await asyncio.create_subprocess_exec(
                program,
                *argv[1:],
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=self._environment(),
                start_new_session=True,  # Ctrl-C in a terminal is for us, not for a command half-way
            )
        except (FileNotFoundError, PermissionError, NotADirectoryError) as error:
            raise UnreachableError(
                f"the Slurm command {argv[0]} is not on this machine",
                code="no_slurm_client",
                hint='install the Slurm client, set commands to its folder, or set transport = "ssh"',
                detail={"command": program},
            ) from error
        try:
            async with asyncio.timeout(timeout):
                out, err = await process.communicate(stdin)
        except TimeoutError:
            raise UnreachableError(
                f"the Slurm command {argv[0]} timed out after {timeout:g} s",
                code="no_answer",
                hint="try again; check the controller with: scontrol ping",
                detail={"command": argv[0]},
            ) from None
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        code = process.returncode or 0
        return CommandOutput(
            128 - code if code < 0 else code,
            out.decode("utf-8", "replace"),
            err.decode("utf-8", "replace"),
        )

    async def close(self) -> None:
        """Nothing is held open."""

    def _environment(self) -> dict[str, str]:
        """This process's environment without what would change the commands' meaning, as inside of a job."""
        environment = {
            name: value
            for name, value in os.environ.items()
            if name in KEPT_VARIABLES or not name.startswith((*PREFIXES, *_JUPYTERS))
        }
        if self._slurm_conf is not None:
            environment["SLURM_CONF"] = self._slurm_conf
        return environment | TIME_FORMAT
