"""Sources that are used unchanged: a script, a command, a file in the scheduler's own format."""

from __future__ import annotations

import re
import shlex
import unicodedata
from pathlib import Path, PurePosixPath

from hyperpod_jlab.capture.captured import Captured, CodeFile, CommandItem, PreviewPart
from hyperpod_jlab.capture.notebook import read_file
from hyperpod_jlab.capture.project import Project, collect_project
from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.core.finding import Finding
from hyperpod_jlab.core.spec import CommandSource, JobSpec, NativeSource, ScriptSource

# --------------------------------------------------------------------------------------------------
# A run's display name, derived from its source when the spec has none.

_MAX_NAME = 63
_MAX_PROPOSED = 1000


def run_name(explicit: str | None, proposed: str) -> str:
    """The given name, or the proposed one without invalid characters."""
    if explicit:
        return explicit
    # Normalizing takes time by the square of the length, if all are accents.
    ascii_name = unicodedata.normalize("NFKD", proposed[:_MAX_PROPOSED]).encode("ascii", "ignore").decode()
    name = re.sub(r"[^A-Za-z0-9._ -]+", "-", ascii_name).lstrip("._ -")[:_MAX_NAME].rstrip("._ -")
    return name or "run"


# --------------------------------------------------------------------------------------------------
# The location of a source's file on this machine.

_MAX_NAME_BYTES = 200  # bytes; the bundle's folders and files are named after it


def source_path(base: Path, text: str) -> Path:
    """The file that a source names, relative to `base`; ``~`` is the user's home folder.

    Raises:
        InvalidInputError: Not a valid file name.
    """
    try:
        path = base / Path(text).expanduser()
    except RuntimeError as error:
        raise _file_error(text, "the user does not exist") from error
    if path.name in {"", ".", ".."}:
        raise _file_error(text, "it is a folder")
    try:
        size = len(path.name.encode())
    except UnicodeEncodeError as error:
        raise _file_error(text, "its name is not UTF-8") from error
    if size > _MAX_NAME_BYTES:
        raise _file_error(text, f"its name is longer than {_MAX_NAME_BYTES} bytes")
    return path


def _file_error(text: str, reason: str) -> InvalidInputError:
    shown_text = text[:80].encode("utf-8", "backslashreplace").decode()
    return InvalidInputError(
        f"'{shown_text}' cannot be copied into the run: {reason}", code="no_such_file", detail={"field": "source.path"}
    )


COMMAND_ZERO = "hpj"
"""The command's ``$0``."""

_LANGUAGES = {".sbatch": "bash", ".sh": "bash", ".slurm": "bash", ".yaml": "yaml", ".yml": "yaml"}


def capture_script(spec: JobSpec, source: ScriptSource, base: Path) -> Captured:
    """Capture a Python file: its exact bytes, at its path in the project.

    Raises:
        InvalidInputError: The file does not exist, or Python cannot run it.
    """
    path = source_path(base, source.path)
    data = read_file(path, "script")
    if path.suffix == ".ipynb":
        raise InvalidInputError(
            f"{path.name} is a notebook, not a script", code="not_a_script", detail={"field": "source.path"}
        )
    project = collect_project(spec.files, path.parent, base)
    relative = project.relative_to_root(path)
    findings = list(project.findings)
    if relative is None:
        relative = PurePosixPath(path.name)
        message = f"{path.name} is outside the project root {project.root}; it is copied to the top of it"
        findings.append(Finding(level="warning", code="outside_root", message=message, field="files.root"))
    script = f"work/{relative}"
    command: tuple[CommandItem, ...] = ({"python": True}, "-u", {"bundle": script}, *spec.args)
    return Captured(
        name=run_name(spec.name, path.stem),
        files=(CodeFile(script, data),),
        project=project.exclude([str(relative)]),
        command=command,
        findings=tuple(findings),
        parts=(PreviewPart(str(relative), "python", data.decode("utf-8", "replace")),),
    )


def capture_command(spec: JobSpec, source: CommandSource, base: Path) -> Captured:
    """Capture a shell command: its text stays one argument, and its arguments become the shell's ``$1``, ``$2`` ..."""
    project = collect_project(spec.files, base, base)
    try:
        source.command.encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError(
            "the command contains an invalid character (a lone surrogate)",
            code="lone_surrogate",
            detail={"field": "source.command"},
        ) from error
    command = ("/bin/bash", "-c", source.command, COMMAND_ZERO, *spec.args)
    return Captured(
        name=run_name(spec.name, _first_word(source.command)),
        files=(),
        project=project.files,
        command=command,
        findings=project.findings,
        parts=(PreviewPart("Command", "bash", source.command),),
    )


def capture_native(spec: JobSpec, source: NativeSource, base: Path) -> Captured:
    """Capture a file that is submitted to the scheduler unchanged.

    Raises:
        InvalidInputError: The file does not exist.
    """
    path = source_path(base, source.path)
    data = read_file(path, "file")
    project = collect_project(spec.files, path.parent, base)
    return Captured(
        name=run_name(spec.name, path.stem),
        files=(CodeFile(f"code/{path.name}", data),),
        project=project.files,
        findings=project.findings,
        cwd=_relative_folder(project, base, path.parent),
        parts=(PreviewPart(path.name, _LANGUAGES.get(path.suffix, "text"), data.decode("utf-8", "replace")),),
    )


def _relative_folder(project: Project, base: Path, folder: Path) -> str:
    """The working folder of a native file: the copy of the user's current folder, as if the user had submitted it; else that of the file."""
    for relative in (project.relative_to_root(base), project.relative_to_root(folder)):
        # A folder without included files does not exist in the bundle.
        if relative is not None and any(PurePosixPath(file.path).is_relative_to(relative) for file in project.files):
            return str("work" / relative)
    return "work"


def _first_word(command: str) -> str:
    """The program's name, for the run's name."""
    command = command[:_MAX_PROPOSED]
    try:
        argv = shlex.split(command, comments=True)
    except ValueError:
        argv = command.split()
    program = next((argument for argument in argv if "=" not in argument), "command")
    return PurePosixPath(program).name
