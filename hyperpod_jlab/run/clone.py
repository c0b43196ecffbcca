"""The code of an earlier run, in the form in which capture returns it, for a new run with the same code."""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hyperpod_jlab.capture.captured import Captured, CodeFile, PreviewPart, ProjectFile
from hyperpod_jlab.core.errors import ConflictError
from hyperpod_jlab.core.spec import CommandSource, JobSpec
from hyperpod_jlab.run.files import find_sent_paths
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.content import digest_of
from hyperpod_jlab.storage.partition import Partition
from hyperpod_jlab.storage.records import BundleReader

_CODE, _WORK = "code/", "work/"


def recapture(partition: Partition, run_id: str, spec: JobSpec) -> Captured:
    """The code of a run as it was submitted, even if the run has changed its files since.

    Args:
        partition: The storage partition.
        run_id: The earlier run.
        spec: The new run's spec; its arguments replace the old ones.

    Raises:
        NotFoundError: The run does not exist.
        DamagedBundleError: Its bundle cannot be read.
        ConflictError: One of its files is missing.
    """
    bundle = BundleReader(partition, run_id)
    head = bundle.head()
    # Every submit adds the launcher of this version.
    entries = [entry for entry in bundle.files() if entry["path"].startswith((_CODE, _WORK))]
    files, project = [], []
    for entry in entries:
        file = _find(bundle, entry)
        if entry["path"].startswith(_WORK):
            name = entry["path"].removeprefix(_WORK)
            size = descent.state(file).st_size
            project.append(ProjectFile(name, str(file), size, entry["executable"], digest=entry["digest"]))
        else:
            files.append(CodeFile(entry["path"], _bytes_of(bundle, file, entry), entry["executable"]))
    return Captured(
        name=spec.name or head.name,
        files=tuple(files),
        project=tuple(project),
        command=_command(bundle, spec),
        parts=_parts(run_id, spec, files, project),
        cwd=str(bundle.plan().get("cwd") or "work"),
    )


_CELL = re.compile(r"/cell-(\d+)\.py")
_MAX_PART_BYTES = 256 << 10


def _parts(
    run_id: str, spec: JobSpec, files: Sequence[CodeFile], project: Sequence[ProjectFile]
) -> tuple[PreviewPart, ...]:
    """The user's own code: the cells, the script or the command; the names of the files where it is none of these."""
    cells = [(int(found[1]), file) for file in files if (found := _CELL.search(file.path))]
    if cells:
        return tuple(
            PreviewPart(f"Cell {number}", "python", _shown(file.data))
            for number, file in sorted(cells, key=lambda cell: cell[0])
        )
    if isinstance(spec.source, CommandSource):
        return (PreviewPart("Command", "bash", spec.source.command),)
    path = getattr(spec.source, "path", None)
    name = Path(path).name if path is not None else None
    for file in project:
        if name is not None and Path(file.path).name == name:
            with contextlib.suppress(OSError):
                data = descent.read(file.source, _MAX_PART_BYTES)
                return (PreviewPart(name, "python", _shown(data)),)
    names = sorted({*(file.path for file in files), *(f"work/{file.path}" for file in project)})
    return (PreviewPart(f"The code of {run_id}", "text", "\n".join(names)),)


def _shown(data: bytes) -> str:
    return data[:_MAX_PART_BYTES].decode("utf-8", "replace")


def find_notebook(partition: Partition, run_id: str) -> str | None:
    """The notebook that an earlier run came from."""
    return BundleReader(partition, run_id).head().notebook


def _find(bundle: BundleReader, entry: dict[str, Any]) -> Path:
    """The file with the submitted bytes: in the content store, else in the bundle."""
    for path in find_sent_paths(bundle, entry):
        with contextlib.suppress(OSError):
            if digest_of(path) == entry["digest"]:
                return path
    raise _code_missing_error(bundle, entry)


def _bytes_of(bundle: BundleReader, path: Path, entry: dict[str, Any]) -> bytes:
    """The bytes of a code file, verified against the submitted ones."""
    with contextlib.suppress(OSError):
        data = descent.read(path)
        if hashlib.sha256(data).hexdigest() == entry["digest"]:
            return data
    raise _code_missing_error(bundle, entry)


def _code_missing_error(bundle: BundleReader, entry: dict[str, Any]) -> ConflictError:
    return ConflictError(
        f"{bundle.run_id} cannot be cloned: {entry['path']} was changed or removed by the run",
        code="code_gone",
        hint="submit it again from its source",
        detail={"run_id": bundle.run_id, "path": entry["path"]},
    )


def _command(bundle: BundleReader, spec: JobSpec) -> tuple[Any, ...]:
    """The old command with the new arguments, which always come last."""
    command = bundle.command()
    old_args = bundle.spec().args
    return (*command[: len(command) - len(old_args)], *(spec.args if command else ()))
