"""Asks git about a folder that may be hostile. Everything that runs git goes through `ask`.

A repository's configuration names programs: for the file system monitor, for hooks, for the transport of a missing object. A plain clone can
contain such a configuration, as a buried bare repository. None of them may start, because the folder is only looked at.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
from pathlib import Path
from typing import Literal

MAX_OUTPUT = 64 << 20
"""Bytes of an answer. A hostile index expands to any size."""

_OPTIONS = (
    "--no-pager",
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "protocol.allow=never"),
    *("-c", "safe.bareRepository=explicit"),  # git 2.38
)

# An allowed protocol of the repository's configuration wins over protocol.allow=never, but not over GIT_ALLOW_PROTOCOL.
_VARIABLES = {
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",  # git 2.44
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PROTOCOL_FROM_USER": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
_KEPT_PREFIXES = ("GIT_CONFIG_", "GIT_CEILING_DIRECTORIES", "GIT_ATTR_NOSYSTEM")
"""Variables by which users protect themselves. Others lead git to another repository, program or file."""


class SlowGitError(Exception):
    """Git did not answer in time, or its answer is too large."""


def ask(
    folder: Path, command: Literal["check-ignore", "ls-files", "rev-parse"], *arguments: str, seconds: float
) -> bytes | None:
    """What git prints; None if it fails. These commands use no filter, diff or editor.

    Raises:
        SlowGitError: It takes longer than `seconds`, or prints more than `MAX_OUTPUT` bytes.
    """
    path = os.path.realpath(folder)
    if not _may_have_repository(Path(path)):
        return None
    search_path = _search_path(path)
    program = shutil.which("git", path=search_path)
    if program is None:
        return None
    argv = [program, *_OPTIONS, "-C", path, command, *arguments]
    try:
        process = subprocess.Popen(
            argv,
            cwd="/",
            env={**_environment(), "PATH": search_path},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except (OSError, ValueError):
        return None
    assert process.stdout is not None
    timer = threading.Timer(max(0.1, seconds), process.kill)
    timer.start()
    try:
        output = process.stdout.read(MAX_OUTPUT + 1)
        if len(output) > MAX_OUTPUT:
            raise SlowGitError(f"git lists more than {MAX_OUTPUT >> 20} MiB of names")
        status = process.wait()
    finally:
        timer.cancel()
        process.kill()
        process.stdout.close()
        process.wait()
    if status == -signal.SIGKILL:
        raise SlowGitError(f"git needs more than {seconds:.0f} s to list it")
    return output if status == 0 else None


def _may_have_repository(folder: Path) -> bool:
    """Whether git can find a working tree: one has ``.git`` in the folder or above it. Looking is a hundred times quicker than a start of git."""
    return any(os.path.lexists(above / ".git") for above in (folder, *folder.parents))


def _search_path(folder: str) -> str:
    """Where programs are: never in the folder, nor in the current one."""
    entries = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(
        entry
        for entry in entries
        if Path(entry).is_absolute() and not Path(os.path.realpath(entry)).is_relative_to(folder)
    )


def _environment() -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name.startswith(_KEPT_PREFIXES)
    }
    return {**kept, **_VARIABLES}
