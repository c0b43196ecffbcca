"""What jupyter-scheduler starts for each job, in a process of its own: it submits the run, and ends."""

from __future__ import annotations

import ast
import asyncio
import json
import os
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import nbformat
from jupyter_scheduler.executors import DefaultExecutionManager

from hyperpod_jlab.capture.files import run_name
from hyperpod_jlab.cli.spec_options import OPTIONS, long_flag, options_to_data, parse_spec
from hyperpod_jlab.core.errors import InvalidInputError, UnsupportedError, nearest_hint
from hyperpod_jlab.core.nested import merge
from hyperpod_jlab.run.services import Hyperpod
from hyperpod_jlab.run.submit import Request
from hyperpod_jlab.server.notebook_jobs.environments import cluster_of
from hyperpod_jlab.storage import descent

MAX_FILE_BYTES, MAX_TOTAL_BYTES = 100 << 20, 1 << 30
"""What a run writes beyond these stays in the run's folder."""


class HyperPodExecutionManager(DefaultExecutionManager):
    """Submits the notebook to the cluster that the job names; a job of another environment runs as ever.

    The run's id is the job's id, so submitting a job again continues the same run. The run is not waited for here: `HyperPodTaskRunner` follows it.
    """

    def execute(self) -> None:
        """Submit the run, or execute the notebook on this machine."""
        cluster = cluster_of(self.model.runtime_environment_name)
        if cluster is None:
            super().execute()
        else:
            asyncio.run(_submit(self._request(cluster)))

    def on_complete(self) -> None:
        """A submitted job is in progress until its run has ended."""
        if cluster_of(self.model.runtime_environment_name) is None:
            super().on_complete()

    def write_outputs(self, notebook: Mapping[str, Any], work: Path) -> None:
        """Write the job's output files to the staging folder, where its page offers them for download. May block.

        Args:
            notebook: The executed notebook.
            work: The ranks' working folder.
        """
        # Read as a file would be: nbconvert takes no texts that are lists of lines.
        node = nbformat.reads(json.dumps(notebook), as_version=4)  # type: ignore[no-untyped-call]
        self.create_output_files(self.model, node)
        if self.model.package_input_folder:
            staging = Path(self.staging_paths["input"]).parent
            _copy_new_files(work, staging)
            self.add_side_effects_files(str(staging))

    def _request(self, cluster: str) -> Request:
        """The run as it is submitted.

        Raises:
            InvalidInputError: An option or a parameter is invalid.
            UnsupportedError: It would be an array.
        """
        job = self.model
        given = job.parameters or {}
        options = {
            **(job.runtime_environment_parameters or {}),
            **{name: text for name, text in given.items() if name.startswith("--")},
        }
        data, names = options_to_data(dict(_option(*item) for item in options.items()))
        parameters = {name: _value(text) for name, text in given.items() if name not in options}
        source: dict[str, Any] = {"kind": "notebook", "path": self.staging_paths["input"]}
        if parameters:
            source["parameters"] = parameters
        name = run_name(None, job.name)
        spec = parse_spec(merge({"name": name, "source": source}, data), names)
        if spec.array:
            raise UnsupportedError(
                "a notebook job has one notebook, so it cannot be an array",
                hint="use: hpj submit --array",
                detail={"field": "array"},
            )
        secrets = {
            name: os.environ[name]
            for name, reference in spec.environment.secrets.items()
            if not reference and name in os.environ
        }
        return Request(spec, cluster=cluster, run_id=job.job_id, secrets=secrets)


async def _submit(request: Request) -> None:
    hyperpod = Hyperpod(isolate=True)  # for its limits
    try:
        await hyperpod.submitter.submit(request)
    finally:
        await hyperpod.close()


def _option(name: str, value: object) -> tuple[str, object]:
    """A spec option by its name in Python and its value, from its name with or without dashes and its text."""
    key = name.removeprefix("--").replace("-", "_")
    if key not in OPTIONS:
        raise InvalidInputError(
            f"unknown option '{name[:60]}'",
            code="unknown_option",
            hint=nearest_hint(name, [long_flag(entry) for entry in OPTIONS.values()]),
            detail={"field": name},
        )
    return key, shlex.split(str(value)) if OPTIONS[key].option.repeat else value


def _value(text: str) -> object:
    """A parameter's value: a literal of Python or a word of JSON, or else the text itself."""
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return {"true": True, "false": False, "null": None}.get(text, text)


def _copy_new_files(work: Path, staging: Path) -> None:
    """Copy the files that the run wrote or changed."""
    left = MAX_TOTAL_BYTES
    for path in _files(work):
        size = descent.state(work / path).st_size
        if size > min(MAX_FILE_BYTES, left):
            continue
        data, target = descent.read(work / path, MAX_FILE_BYTES), staging / path
        if not (target.is_file() and target.read_bytes() == data):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
            left -= size


def _files(work: Path, folder: str = "") -> Iterator[str]:
    """Paths of the files in a run's working folder, relative to it; none if the folder is not on this partition."""
    if not descent.is_folder(work / folder):
        return
    for name in sorted(descent.list_names(work / folder)):
        path = f"{folder}{name}"
        if descent.is_file(work / path):
            yield path
        elif name not in {".git", "__pycache__"}:
            yield from _files(work, f"{path}/")
