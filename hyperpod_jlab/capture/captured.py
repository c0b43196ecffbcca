"""The result of capture: the bundle's code, the project's files, the ranks' command, and findings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from hyperpod_jlab.core.finding import Finding

CommandItem = str | dict[str, Any]
"""One item of the command in ``launch.json``: literal text, ``{"bundle": PATH}`` or ``{"python": true}``."""


@dataclass(frozen=True)
class CodeFile:
    """One file that capture created or read.

    Attributes:
        path: Path in the bundle: ``code/...`` or ``work/...``.
        data: The file's bytes.
        executable: Whether the file is executable.
    """

    path: str
    data: bytes
    executable: bool = False


@dataclass(frozen=True)
class ProjectFile:
    """One project file to include, not read yet.

    Attributes:
        path: Path relative to ``work/``.
        location: Path of the file on this machine; a link's target when the path is a link. A text, since thousands of `Path` objects are slow to unpickle.
        size: Size in bytes when it was listed.
        executable: Whether the owner may execute it.
        digest: The SHA-256 that its bytes must have, if an earlier submit fixed it.
    """

    path: str
    location: str
    size: int
    executable: bool = False
    digest: str | None = None

    @property
    def source(self) -> Path:
        """The file on this machine."""
        return Path(self.location)


@dataclass(frozen=True)
class PreviewPart:
    """One part of the preview.

    Attributes:
        title: Such as ``Cell 3``.
        language: For syntax colours: ``python``, ``bash``, ``yaml`` or ``text``.
        text: The code as it will run.
        notes: Remarks about it.
    """

    title: str
    language: str
    text: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Captured:
    """A source prepared for a bundle.

    Attributes:
        name: The display name: the spec's, else derived from the source.
        files: Files that capture created or read.
        project: The project files to include.
        command: The ranks' command; empty for a native source.
        findings: Findings to show before the submit; one of level ``error`` prevents it.
        parts: The preview.
        cwd: The working folder in the bundle.
        pip_lines: Arguments of the lines of cells that call pip.
    """

    name: str
    files: tuple[CodeFile, ...]
    project: tuple[ProjectFile, ...] = ()
    command: tuple[CommandItem, ...] = ()
    findings: tuple[Finding, ...] = ()
    parts: tuple[PreviewPart, ...] = ()
    cwd: str = "work"
    pip_lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class FunctionCall:
    """A function and its arguments, for a function source."""

    function: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)


# --------------------------------------------------------------------------------------------------
# The program on the nodes as data: files of ``runtime/`` that are copied into each bundle and never
# imported here.

PACKAGE = "code/hyperpod_runtime"
"""The runner's path in the bundle."""

MAIN = "code/main.py"
"""The program that each rank starts."""

_COMMON = ("__init__", "failure", "records", "sources", "ending", "stacks")
_MODULES = {
    "notebook": (
        *_COMMON,
        "cell_text",
        "cells",
        "commands",
        "notebook",
        "once",
        "recorder",
        "replay",
        "shell",
        "unpacking",
        "values",
    ),
    "function": (*_COMMON, "definitions", "function", "outcome"),
}


@cache
def runtime_files(kind: Literal["notebook", "function"]) -> tuple[CodeFile, ...]:
    """The runner for cells or for a function."""
    folder = resources.files("hyperpod_jlab.capture") / "runtime"
    main = CodeFile(MAIN, (folder / f"{kind}_main.py").read_bytes())
    modules = (CodeFile(f"{PACKAGE}/{name}.py", (folder / f"{name}.py").read_bytes()) for name in _MODULES[kind])
    return (main, *modules)
