"""How Slurm's commands run: the interface, and the way for a machine that has them itself."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from hyperpod_jlab.core.child_process import end_child, start_child
from hyperpod_jlab.core.errors import UnreachableError

TIME_FORMAT = {"SLURM_TIME_FORMAT": "%s", "SLURM_BITSTR_LEN": "0"}
"""Makes every command print times as Unix seconds, in any time zone, and an array's tasks in full (man squeue)."""

KEPT_VARIABLES = frozenset({"SLURM_CONF", "SLURM_JWT", "SLURM_CONF_SERVER", "SLURM_CLUSTERS"})
"""Environment variables that select the cluster, and are kept."""

PREFIXES = ("SLURM_", "SBATCH_", "SQUEUE_", "SINFO_", "SACCT_", "SCANCEL_", "SCONTROL_", "SRUN_")
"""Prefixes of variables that would change the commands' behaviour, for example inside of a job; all others with them are removed."""

ANSWER_LOST = "answer_lost"
"""Code of the `UnreachableError` of a command that may have run although its response was lost."""

COMMAND_TIMEOUT = 75.0
"""Command timeout in seconds. Slurm's own timeout for a controller is shorter (MessageTimeout, 10 s, several times)."""

_JUPYTERS = ("JPY_", "JUPYTER")
"""Prefixes of variables with this server's own keys: a script that is submitted unchanged inherits the environment, as with sbatch."""


@dataclass(frozen=True)
class CommandOutput:
    """A command's result: its exit code (128 + n for signal n), stdout and stderr."""

    code: int
    out: str
    err: str


class Transport(Protocol):
    """Runs Slurm's commands."""

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout: float = COMMAND_TIMEOUT) -> CommandOutput:
        """Run one command to its end; the arguments are passed unchanged, whatever they contain.

        Raises:
            UnreachableError: The command cannot run: not found, no login node, or timed out; with
                the code `ANSWER_LOST`, it may have run.
        """
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user must know of it, such as that another login node is used; newest last."""
        ...

    async def close(self) -> None:
        """Close connections."""
        ...


def no_answer_error(program: str, timeout: float, **detail: str) -> UnreachableError:
    """The error for a command that timed out."""
    return UnreachableError(
        f"the Slurm command {program} timed out after {timeout:g} s",
        code="no_answer",
        hint="try again; check the controller with: scontrol ping",
        detail={"command": program, **detail},
    )


class LocalTransport:
    """Runs the commands on this machine: a login node, or a Studio space with Slurm's client.

    Args:
        commands: Folder of Slurm's commands, or None for those on PATH.
        slurm_conf: Slurm's configuration file, or None for the environment's.
    """

    notes: tuple[str, ...] = ()

    def __init__(self, commands: str | None = None, slurm_conf: str | None = None) -> None:
        self._commands = commands
        self._slurm_conf = {"SLURM_CONF": slurm_conf} if slurm_conf is not None else {}

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout: float = COMMAND_TIMEOUT) -> CommandOutput:
        """Run one command to its end (see `Transport.run`)."""
        program = self._program(argv)
        try:
            process = await start_child(program, *argv[1:], env=self._environment())
        except (FileNotFoundError, PermissionError, NotADirectoryError) as error:
            raise UnreachableError(
                f"the Slurm command {argv[0]} is not on this machine",
                code="no_slurm_client",
                hint='install the Slurm client, set commands to its folder, or set transport = "ssh"',
                detail={"command": program},
            ) from error
        try:
            out, err = await asyncio.wait_for(process.communicate(stdin), timeout)
        except TimeoutError:
            raise no_answer_error(argv[0], timeout) from None
        finally:
            await end_child(process)
        code = process.returncode or 0
        return CommandOutput(
            128 - code if code < 0 else code, out.decode("utf-8", "replace"), err.decode("utf-8", "replace")
        )

    async def shell_line(self, argv: Sequence[str]) -> str:
        """The line with which a user runs a command in a terminal of this machine, quoted for a shell."""
        conf = [f"{name}={value}" for name, value in self._slurm_conf.items()]
        return shlex.join([*(["env", *conf] if conf else []), self._program(argv), *argv[1:]])

    async def close(self) -> None:
        """There is nothing to close."""

    def _program(self, argv: Sequence[str]) -> str:
        return str(Path(self._commands) / argv[0]) if self._commands else argv[0]

    def _environment(self) -> dict[str, str]:
        """This process's environment without the variables that would change the commands' behaviour, for example inside of a job."""
        environment = {
            name: value
            for name, value in os.environ.items()
            if name in KEPT_VARIABLES or not name.startswith((*PREFIXES, *_JUPYTERS))
        }
        return environment | self._slurm_conf | TIME_FORMAT
