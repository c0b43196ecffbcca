"""A user's own sbatch script: submitted unchanged, with our settings as sbatch options, which override its ``#SBATCH`` lines.

The bundle's ``native.json`` records what was submitted; the file also marks the run's nodes as
having no launcher of ours.
"""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from pydantic_core import from_json

from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.core.finding import Finding
from hyperpod_jlab.core.quantities import format_ranges, parse_ranges
from hyperpod_jlab.core.spec import JobSpec, Resources
from hyperpod_jlab.core.validation import NAME
from hyperpod_jlab.engines.protocol import NativeFacts, NativeFile, Rendered, RenderInput
from hyperpod_jlab.engines.slurm.jobs import COMMENT, parse_limit
from hyperpod_jlab.engines.slurm.render import check_flags, clock
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.records import BundleReader

# --------------------------------------------------------------------------------------------------
# The ``#SBATCH`` lines of a user's own script, parsed as far as we depend on them.

_SHORT_OPTIONS = {
    "A": "account",
    "a": "array",
    "D": "chdir",
    "e": "error",
    "G": "gpus",
    "J": "job-name",
    "N": "nodes",
    "o": "output",
    "p": "partition",
    "q": "qos",
    "t": "time",
}
"""Short options that matter here (man sbatch)."""

_SENDS_NOTHING = frozenset({"test-only", "help", "usage", "version"})


def directives(script: bytes) -> dict[str, str]:
    """The options by long name, without dashes; a switch has an empty value. If an option is given twice, the last one wins.

    Like sbatch, this stops at the first line that is neither blank nor a comment (man sbatch).

    Raises:
        InvalidInputError: The job is heterogeneous, which means several of everything, or sbatch
            would reject one of its lines.
    """
    options: dict[str, str] = {}
    for line in _lines(script):
        args = _split_line(line)
        if args[:1] in (["hetjob"], ["packjob"]):
            raise InvalidInputError(
                "heterogeneous jobs are not supported",
                code="unsupported",
                hint="submit it with sbatch, or split it into several scripts",
                detail={"field": "source"},
            )
        options.update(_options(args))
    sends_nothing = _SENDS_NOTHING & options.keys()
    if sends_nothing:
        raise InvalidInputError(
            f"the script has --{min(sends_nothing)}, with which sbatch submits nothing",
            code="sends_nothing",
            hint="remove the line; --dry-run shows what would be submitted",
            detail={"field": "source"},
        )
    return options


def _lines(script: bytes) -> Iterator[str]:
    for number, raw in enumerate(script.decode("utf-8", "surrogateescape").split("\n")):
        line = raw.rstrip("\r")
        if line.startswith("#SBATCH") and line[7:8].isspace():
            yield line[8:]
        elif number > 0 and line.strip() and not line.startswith("#"):
            return


def _split_line(line: str) -> list[str]:
    try:
        return shlex.split(line, comments=True)
    except ValueError:  # an unterminated quote; sbatch reports it itself
        return line.split()


def _options(args: list[str]) -> Iterator[tuple[str, str]]:
    remaining = list(args)
    while remaining:
        arg = remaining.pop(0)
        if arg.startswith("--"):
            name, equals, value = arg[2:].partition("=")
        elif arg.startswith("-") and len(arg) > 1:
            name, value = _SHORT_OPTIONS.get(arg[1], arg[1]), arg[2:]
            equals = value
        else:
            continue
        if not equals and remaining and not remaining[0].startswith("-"):
            value = remaining.pop(0)
        yield name, value


FILENAME = "native.json"
_MAX_BYTES = 1 << 20

_SUFFIXES = frozenset({".sbatch", ".slurm", ".sh"})
_QUEUE_OPTIONS = {"queue": "partition", "account": "account", "qos": "qos", "priority": "priority"}
_MAX_TASKS = 100_000
_STEP = re.compile(r"([0-9]{1,9})-([0-9]{1,9}):([1-9][0-9]{0,8})")


@dataclass(frozen=True)
class Sending:
    """The input for sbatch.

    Attributes:
        script: The script's path in the bundle.
        options: The sbatch options.
        args: The script's arguments.
    """

    script: str
    options: tuple[str, ...] = ()
    args: tuple[str, ...] = ()

    @property
    def folder(self) -> str | None:
        """The job's working folder as the nodes see it; None if the script sets one itself."""
        chdir_options = (option for option in self.options if option.startswith("--chdir="))
        return next(chdir_options, "").removeprefix("--chdir=") or None

    def to_json(self) -> str:
        """The text of ``native.json``."""
        data: dict[str, Any] = {
            "format": 1,
            "script": self.script,
            "options": list(self.options),
            "args": list(self.args),
        }
        return json.dumps(data, ensure_ascii=False, indent=1) + "\n"

    @staticmethod
    def from_json(text: str | bytes) -> Sending:
        """Parse the text of ``native.json``.

        Raises:
            ValueError: The text is invalid.
        """
        data = from_json(text)
        try:
            return Sending(str(data["script"]), tuple(data["options"]), tuple(data["args"]))
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(str(error)) from error


def read_sending(bundle: BundleReader) -> Sending | None:
    """The submit input of a native run; None for a run with our launcher. Blocking."""
    try:
        return Sending.from_json(descent.read(bundle.folder / FILENAME, _MAX_BYTES))
    except (OSError, ValueError):
        return None


def render_native(render_input: RenderInput, file: NativeFile) -> Rendered:
    """Render the submit input for a user's script.

    Raises:
        InvalidInputError: Not an sbatch script, or one of our options conflicts with it.
    """
    if PurePosixPath(file.path).suffix.lower() not in _SUFFIXES:
        raise InvalidInputError(
            f"{PurePosixPath(file.path).name} is not an sbatch script",
            code="invalid_source",
            hint="use a .sbatch, .slurm or .sh file with #SBATCH lines",
            detail={"field": "source"},
        )
    if not file.data.startswith(b"#!"):
        raise InvalidInputError(
            f"{PurePosixPath(file.path).name} does not start with #! and an interpreter, which Slurm requires",
            code="invalid_source",
            hint="start it with the line: #!/bin/bash",
            detail={"field": "source"},
        )
    lines = directives(file.data)
    added = list(_native_options(render_input, file, lines))
    options = tuple(f"--{name}" if value is None else f"--{name}={value}" for name, value in added)
    sending = Sending(file.path, options, tuple(render_input.spec.args))
    facts = _facts(render_input.spec, lines, {**lines, **dict(added)})
    return Rendered(FILENAME, sending.to_json(), "json", facts)


def native_findings(spec: JobSpec) -> list[Finding]:
    """The spec fields that a script submitted unchanged cannot support."""
    resources, environment = spec.resources, spec.environment
    unsupported = {
        "resources.processes_per_node": resources.processes_per_node,
        "resources.cpus": resources.cpus,
        "launcher": spec.launcher,
        "environment.python": environment.python,
        "environment.image": environment.image,
        "environment.capture": environment.capture,
        "environment.setup": environment.setup,
        "environment.secrets": environment.secrets or None,
        "max_restarts": spec.max_restarts or None,
        "auto_resume": spec.auto_resume,
    }
    findings = [
        Finding(
            level="error",
            code="not_for_native",
            message=f"a script is submitted unchanged, so {field} cannot be used",
            hint="set it in the script, or leave it out",
            field=field,
        )
        for field, value in unsupported.items()
        if value is not None
    ]
    if "," in "".join(environment.variables.values()) or any(
        letter in value for value in environment.variables.values() for letter in "'\"\\\n\r"
    ):
        findings.append(
            Finding(
                level="error",
                code="not_for_native",
                message="sbatch cannot pass variables with commas, quotes, backslashes or line breaks",
                hint="export them in the script",
                field="environment.variables",
            )
        )
    return findings


def _native_options(
    render_input: RenderInput, file: NativeFile, lines: dict[str, str]
) -> Iterator[tuple[str, str | None]]:
    spec = render_input.spec
    comment = lines.get("comment", "")
    yield "comment", _check_one_line("comment", f"{COMMENT}{render_input.run_id} {comment}".strip())
    if "chdir" not in lines:
        yield "chdir", str(render_input.paths.remote / render_input.bundle / file.cwd)
    if spec.name is not None:
        yield "job-name", spec.name
    if spec.resources.nodes != Resources().nodes:
        yield "nodes", str(spec.resources.nodes)
    flags = check_flags(spec.slurm.flags)
    yield from _requested_options(spec, flags)
    if spec.time_limit is not None:
        yield "time", clock(spec.time_limit)
    if render_input.after:
        yield "dependency", ",".join(f"afterok:{job}" for job in render_input.after)
        yield "kill-on-invalid-dep", "yes"
    if spec.array is not None:
        yield "array", spec.array
    if spec.environment.variables:
        yield "export", _export(spec.environment.variables, lines)
    yield from _flag_options(flags)


def _requested_options(spec: JobSpec, flags: Mapping[str, str | int | bool]) -> Iterator[tuple[str, str | None]]:
    if spec.resources.memory is not None:
        yield "mem", f"{math.ceil(spec.resources.memory / 1024**2)}M"
    accelerator = spec.resources.accelerator
    if accelerator.count and "gres" not in flags:
        parts = [accelerator.kind, accelerator.type, str(accelerator.count)]
        yield "gres", ":".join(arg for arg in parts if arg is not None)
    for field, option in _QUEUE_OPTIONS.items():
        value = getattr(spec, field)
        if value is not None:
            yield option, value


def _flag_options(flags: Mapping[str, str | int | bool]) -> Iterator[tuple[str, str | None]]:
    for name, value in flags.items():
        if value is not False:
            yield name, None if value is True else _check_one_line(name, str(value))
        elif name == "requeue":
            yield "no-requeue", None


def _export(variables: dict[str, str], lines: dict[str, str]) -> str:
    if "export" in lines:
        raise InvalidInputError(
            "the script has its own --export line, which --env would override",
            code="not_for_native",
            hint="add the variables to that line",
            detail={"field": "environment.variables"},
        )
    return ",".join(["ALL", *(f"{name}={value}" for name, value in variables.items())])


def _check_one_line(name: str, value: str) -> str:
    if any(ord(character) < 32 or ord(character) == 127 for character in value):
        raise InvalidInputError(
            f"the value of --{name} contains a line break or another control character",
            code="control_character",
            hint="write it on one line",
            detail={"field": f"slurm.flags.{name}"},
        )
    return value


def _facts(spec: JobSpec, lines: Mapping[str, str], options: Mapping[str, str | None]) -> NativeFacts:
    """What a script says about its run.

    Args:
        spec: The spec.
        lines: The script's own options.
        options: The options that sbatch gets: the script's, and ours over them.
    """
    limit = parse_limit(options.get("time") or "")
    name = lines.get("job-name", "")
    nodes = spec.resources.nodes
    if nodes == Resources().nodes:
        nodes = parse_min_nodes(lines.get("nodes", ""))
    return NativeFacts(
        name=name if re.fullmatch(NAME, name) else None,
        queue=spec.queue or lines.get("partition") or None,
        nodes=nodes,
        array=spec.array or parse_array_option(lines.get("array", "")),
        gpus_per_node=parse_gpus(options, nodes),
        time_limit=int(limit) if limit else None,
    )


def parse_gpus(options: Mapping[str, str | None], nodes: int) -> int | None:
    """GPUs on each node by ``--gpus-per-node``, ``--gpus`` or ``--gres`` (man sbatch); None if other options tell."""
    if {"gpus-per-task", "gpus-per-socket", "tres-per-task"} & options.keys():
        return None
    if per_node := options.get("gpus-per-node"):
        return _count_gpus(per_node)
    if total := options.get("gpus"):
        return math.ceil(_count_gpus(total) / nodes)
    devices = (options.get("gres") or "").split(",")
    return sum(_count_gpus(one.partition(":")[2]) for one in devices if re.match(r"gpu\b", one))


def _count_gpus(text: str) -> int:
    """GPUs in ``8``, ``h100:8`` or ``h100:4,a100:4``; 1 without a number."""
    numbers = [one.rpartition(":")[2] for one in text.split(",")]
    return sum(int(number) if number.isdecimal() else 1 for number in numbers)


def parse_min_nodes(text: str) -> int:
    """The minimum number of nodes in ``--nodes``: ``2``, ``2-4``, ``2-4:2``, ``1k``; 1 without a value."""
    match = re.match(r"([0-9]{1,7})([kKmM]?)", text)
    if match is None:
        return 1
    return max(1, int(match[1]) * {"": 1, "k": 1024, "m": 1024**2}[match[2].lower()])


def parse_array_option(text: str) -> str | None:
    """Convert Slurm's ``0-15:4%2`` to our array format, ``0,4,8,12``; None when it is not an array.

    Raises:
        InvalidInputError: Not a list of indices.
    """
    if not text:
        return None
    task_list, _, throttle = text.partition("%")
    indices: set[int] = set()
    try:
        for part in task_list.split(","):
            step = _STEP.fullmatch(part.strip())
            indices.update(
                range(int(step[1]), int(step[2]) + 1, int(step[3])) if step is not None else parse_ranges(part)
            )
            if len(indices) > _MAX_TASKS:
                raise ValueError(f"an array has at most {_MAX_TASKS} children")
    except ValueError as error:
        raise InvalidInputError(
            f"--array={text[:60]} in the script is not a list of indices: {error}",
            code="invalid_source",
            detail={"field": "source"},
        ) from error
    return format_ranges(indices) + (f"%{throttle}" if throttle.isdecimal() else "")
