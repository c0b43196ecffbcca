"""The far side's program as data: files of ``runtime/`` that are copied into each bundle, never imported here."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Literal

from hyperpod_jlab.capture.captured import CodeFile

PACKAGE = "code/hyperpod_runtime"
"""Where the runner's modules lie in the bundle."""

MAIN = "code/main.py"
"""The program that a rank starts."""

_COMMON = ("__init__", "failure", "once", "records", "sources", "ending")
_MODULES = {
    "notebook": (
        *_COMMON,
        "compiling",
        "display",
        "expansion",
        "notebook",
        "output",
        "replay",
        "service",
        "values",
    ),
    "function": (*_COMMON, "definitions", "function", "outcome"),
}


@cache
def runtime_files(kind: Literal["notebook", "function"]) -> tuple[CodeFile, ...]:
    """The runner for cells or for a function."""
    folder = resources.files("hyperpod_jlab.capture") / "runtime"
    main = CodeFile(MAIN, (folder / f"{kind}_main.py").read_bytes())
    modules = (
        CodeFile(f"{PACKAGE}/{name}.py", (folder / f"{name}.py").read_bytes())
        for name in _MODULES[kind]
    )
    return (main, *modules)
