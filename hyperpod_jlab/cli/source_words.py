"""From the words of the command line to the spec's source: a notebook, a script, a command, or a native file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hyperpod_jlab.model.errors import InvalidInputError
from hyperpod_jlab.storage import descent

_KINDS = {
    ".ipynb": "notebook",
    ".py": "script",
    ".sbatch": "native",
    ".slurm": "native",
    ".yaml": "native",
    ".yml": "native",
}
_ACCEPTED = "a notebook (.ipynb), a Python file (.py), an sbatch script (.sbatch) or a manifest (.yaml); or a command with -c"


def source_data(path: str | None, command: str | None) -> dict[str, Any] | None:
    """The source's data, or None when neither is given.

    Raises:
        InvalidInputError: Both are given, the command is empty, or nothing of ours runs such a file.
    """
    if path is not None and command is not None:
        raise _refused(
            "give a file or a command with -c, not both",
            f"arguments for the command come after --, as in: hpj submit -c '{command[:40]}' -- {path[:40]}",
        )
    if command is not None:
        if not command.strip():
            raise _refused("the command given with -c is empty", "such as: -c 'python train.py'")
        return {"kind": "command", "command": command}
    if path is None:
        return None
    return {"kind": _kind(path), "path": path}


def no_source() -> InvalidInputError:
    """The error when there is nothing to run."""
    return _refused("nothing to run is given", f"give {_ACCEPTED}")


def _kind(path: str) -> str:
    suffix = Path(path).suffix.lower()
    if suffix in _KINDS:
        return _KINDS[suffix]
    if suffix == ".sh" and _is_sbatch(path):
        return "native"
    if Path(path).is_dir():
        raise _refused(f"{path[:200]} is a folder", f"give {_ACCEPTED}")
    if suffix == ".sh":
        raise _refused(
            f"{path[:200]} is a shell script without #SBATCH lines",
            f"run it as a command: -c 'bash {path[:80]}'",
        )
    raise _refused(f"'{path[:200]}' is nothing that can be sent", f"give {_ACCEPTED}")


def _is_sbatch(path: str) -> bool:
    try:
        return b"\n#SBATCH" in descent.read_named(Path(path))
    except OSError as error:
        raise _refused(f"{path[:200]} cannot be read: {error.strerror}", None) from error


def _refused(message: str, hint: str | None) -> InvalidInputError:
    return InvalidInputError(message, code="invalid_source", hint=hint, detail={"field": "source"})
