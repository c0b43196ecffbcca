"""Capture: turns a spec's source into a bundle's files and command.

The code to run is fixed at the moment of the submit: cells keep their exact bytes, functions are
pickled by value. IPython runs the cells in the job, and reads their magics there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hyperpod_jlab.capture.captured import Captured, CodeFile, CommandItem, FunctionCall, PreviewPart, ProjectFile
from hyperpod_jlab.capture.secrets import credential_findings, secret_name_findings
from hyperpod_jlab.core.finding import Finding
from hyperpod_jlab.core.spec import CommandSource, FunctionSource, JobSpec, NotebookSource, ScriptSource

__all__ = ["Captured", "CodeFile", "CommandItem", "FunctionCall", "PreviewPart", "ProjectFile", "capture"]


def capture(
    spec: JobSpec,
    *,
    base: Path,
    notebook: Mapping[str, Any] | None = None,
    call: FunctionCall | None = None,
    interpreter: str | None = None,
) -> Captured:
    """Prepare a spec's source for a bundle. Writes nothing; of the project's files it reads only the lists of packages.

    Args:
        spec: The spec.
        base: The base folder for its relative paths.
        notebook: The notebook's JSON as the caller shows it; None to read its file.
        call: The function with its arguments, for a function source.
        interpreter: The Python whose packages ``environment.capture`` means; None for this one.

    Raises:
        InvalidInputError: The source, the selection or the project's root is invalid;
            ``detail.field`` names it.
    """
    captured = _capture_source(spec, base, notebook, call)
    if spec.environment.capture is not None and spec.source.kind != "native":
        from hyperpod_jlab.capture.environment import with_environment

        captured = with_environment(captured, spec, base, interpreter)
        in_files: tuple[Finding, ...] = ()
    else:
        in_files = credential_findings(captured.project)
    warnings = (*in_files, *secret_name_findings(spec.environment.variables))
    return dataclasses.replace(captured, findings=(*captured.findings, *warnings))


def _capture_source(
    spec: JobSpec, base: Path, notebook: Mapping[str, Any] | None, call: FunctionCall | None
) -> Captured:
    source = spec.source
    if isinstance(source, NotebookSource):
        from hyperpod_jlab.capture.cells import capture_notebook

        return capture_notebook(spec, source, base, notebook)
    if isinstance(source, FunctionSource):
        from hyperpod_jlab.capture.function import capture_function

        return capture_function(spec, source, base, call)
    from hyperpod_jlab.capture.files import capture_command, capture_native, capture_script

    if isinstance(source, ScriptSource):
        return capture_script(spec, source, base)
    if isinstance(source, CommandSource):
        return capture_command(spec, source, base)
    return capture_native(spec, source, base)
