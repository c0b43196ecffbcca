"""Starting a supervisor so that it outlives whatever starts it.

A Jupyter kernel ends all its descendants when it shuts down, so the supervisor must not be one: a small process in between starts a session of its own,
forks and ends, and its child (now a child of init) becomes the supervisor. No descriptor of ours is passed on.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from hyperpod_jlab.model.errors import InternalError

_DETACH = """
import os, sys
os.setsid()
if os.fork() == 0:
    os.chdir("/")
    os.execv(sys.argv[1], sys.argv[1:])
os._exit(0)
"""


def spawn_supervisor(
    root: Path, run_id: str, *, folder: Path, slots: int, shared: bool, log: Path
) -> None:
    """Start the supervisor of a run; one that is there already makes this one end by itself.

    Raises:
        InternalError: No process could be started.
    """
    python = sys.executable
    command = [python, "-P", "-m", "hyperpod_jlab.orchestrators.local.supervisor"]
    command += [str(root), run_id, f"--folder={folder}", f"--slots={slots}"]
    command += ["--shared"] if shared else []
    log.parent.mkdir(parents=True, exist_ok=True)
    try:
        with log.open("ab") as errors:
            subprocess.run(  # noqa: S603 - an argument list, no shell
                [python, "-I", "-S", "-c", _DETACH, *command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env=_environment(),
                check=True,
                timeout=60,
            )
    except (OSError, subprocess.SubprocessError) as error:
        raise InternalError(
            "the run's supervisor could not be started",
            code="no_supervisor",
            hint=f"see {log}",
            detail={"error": str(error)},
        ) from error


def _environment() -> dict[str, str]:
    """What the supervisor needs of this process's environment; runs inherit none of it."""
    kept = ("HOME", "PATH", "LANG", "TMPDIR", "PYTHONPATH", "XDG_STATE_HOME", "XDG_CACHE_HOME")
    return {name: os.environ[name] for name in kept if name in os.environ}
