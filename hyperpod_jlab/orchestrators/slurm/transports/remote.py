"""A command for a login node as one line that any login shell passes on as it is, and its answer without what others print around it.

The login shell (bash, zsh, csh, fish) only sees harmless letters between single quotes and starts ``/bin/sh``, which undoes the encoding and runs the command: no
word is ever read as shell. What start-up files print stands before a mark that is made for this one call. The exit code comes after the output, so that 255
of a command is not 255 of ssh, and an answer that was cut off is known.

A command that must not run twice waits at the login node until it has been told to go: its whole input must have come, the mark at its end. A
connection that breaks, or a node that hangs, before that was sent has surely run nothing.
"""

from __future__ import annotations

import re
import secrets
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from hyperpod_jlab.model.errors import InvalidInputError
from hyperpod_jlab.orchestrators.slurm.transports.protocol import (
    KEPT,
    PREFIXES,
    TIME_FORMAT,
    Output,
)

_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _./:,@=+-")
_LONGEST = 120_000
"""Bytes of one word that Linux starts a program with (MAX_ARG_STRLEN is 131,072)."""

_USUAL = "/opt/slurm/bin:/usr/local/slurm/bin"
"""Folders of Slurm's commands that HyperPod and others put on PATH in profiles, which ssh does not read for a command."""

_READ_ONLY = frozenset({"squeue", "sinfo", "sacct", "sdiag", "sprio", "sshare", "sstat", "sreport"})
_READING_WORDS = {
    "scontrol": frozenset({"show", "ping", "version", "listpids"}),
    "sacctmgr": frozenset({"show", "list", "version"}),
}


def repeatable(argv: Sequence[str]) -> bool:
    """Whether running a command twice does what running it once does: it only reads, or ends what has ended."""
    program, words = PurePosixPath(argv[0]).name, argv[1:]
    if program in _READ_ONLY:
        return True
    if program == "sbatch":
        return "--test-only" in words
    if program == "scancel":
        return not any(word.startswith(("-s", "--signal")) for word in words)
    first = next((word for word in words if not word.startswith("-")), "")
    return first in _READING_WORDS.get(program, ())


@dataclass(frozen=True)
class Remote:
    """One call of a command.

    Args:
        argv: Its words, as they shall reach it.
        commands: Folder of the command, or None for PATH.
        slurm_conf: What SLURM_CONF shall be, or None for the login node's.
        waits: Whether it waits until its whole input has come (see the module).
    """

    argv: Sequence[str]
    commands: str | None = None
    slurm_conf: str | None = None
    waits: bool = False
    mark: str = field(default_factory=lambda: secrets.token_hex(12))

    @property
    def line(self) -> str:
        """What ssh is given as the command.

        Raises:
            InvalidInputError: A word holds a NUL, or there is too much of them.
        """
        script = self._script().encode("utf-8", "surrogateescape")
        if b"\0" in script:
            raise InvalidInputError("a word of a command cannot hold a NUL character")
        coded = "".join(chr(byte) if byte in _PLAIN else f"\\0{byte:03o}" for byte in script)
        if len(coded) > _LONGEST:
            raise InvalidInputError(
                f"the words of {self.argv[0]} are too long to be sent in one command",
                code="command_too_long",
                detail={"bytes": len(coded), "most": _LONGEST},
            )
        return f"""exec /bin/sh -c 'eval "$(printf %b "$1")"' hyperpod '{coded}'"""

    def input(self, stdin: bytes) -> bytes:
        """What is written to the command's input."""
        return stdin + self.mark.encode() if self.waits else stdin

    def has_begun(self, out: bytes) -> bool:
        """Whether the login node's shell is there, by what came so far."""
        return self._begin in out

    def output(self, out: bytes, err: bytes) -> Output | None:
        """The command's own answer, or None if it is not whole."""
        _, begun, rest = out.partition(self._begin)
        found = re.search(rf"\n{self.mark}=([0-9]+)\n".encode(), rest) if begun else None
        if found is None:
            return None
        said = err.partition(self._begin)[2].partition(f"\n{self.mark}=".encode())[0]
        return Output(
            int(found[1]),
            rest[: found.start()].decode("utf-8", "replace"),
            said.decode("utf-8", "replace"),
        )

    def is_missing(self, out: bytes) -> bool:
        """Whether the login node has no such command."""
        return f"\n{self.mark}!\n".encode() in out

    @property
    def program(self) -> str:
        """The command, with its folder when that is known."""
        return str(PurePosixPath(self.commands or "", self.argv[0]))

    @property
    def _begin(self) -> bytes:
        return f"\n{self.mark}+\n".encode()

    def _script(self) -> str:
        words = shlex.join([self.program, *self.argv[1:]])
        run = f'printf %s "$hpj" | {words}' if self.waits else words
        return "\n".join([self._start(), *self._environment(), self._look(), *self._wait(), run, self._end()])  # fmt: skip

    def _start(self) -> str:
        return rf"printf '\n%s+\n' {self.mark}; printf '\n%s+\n' {self.mark} >&2"

    def _end(self) -> str:
        return (
            rf"""hpj=$?; printf '\n%s=%d\n' {self.mark} "$hpj"; printf '\n%s=\n' {self.mark} >&2"""
        )

    def _environment(self) -> list[str]:
        beginnings = "|".join(name.removesuffix("_") for name in PREFIXES)
        kept = "|".join(sorted(KEPT))
        path = f"{shlex.quote(self.commands)}:$PATH" if self.commands else f"$PATH:{_USUAL}"
        named = TIME_FORMAT | ({"SLURM_CONF": self.slurm_conf} if self.slurm_conf else {})
        return [
            f"for hpj in $(env | grep -Eo '^({beginnings})_[A-Za-z0-9_]*='); do",
            f'case ${{hpj%=}} in {kept}) ;; *) unset "${{hpj%=}}" ;; esac; done',
            f"PATH={path}; export PATH",
            *(f"{name}={shlex.quote(value)}; export {name}" for name, value in named.items()),
        ]

    def _look(self) -> str:
        return rf"command -v {shlex.quote(self.program)} >/dev/null || {{ printf '\n%s!\n' {self.mark}; exit 127; }}"

    def _wait(self) -> list[str]:
        if not self.waits:
            return []
        return ["hpj=$(cat)", f"case $hpj in *{self.mark}) hpj=${{hpj%{self.mark}}} ;; *) exit 1 ;; esac"]  # fmt: skip
