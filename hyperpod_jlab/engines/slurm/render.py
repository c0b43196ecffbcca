"""Render a spec as an sbatch script. Pure: the same input gives the same bytes.

One job, N nodes, one task per node, and our launcher in each. All user input is in quoted
``#SBATCH`` values without line breaks; user code, variables and setup lines are not in the script
but in the launcher's plan.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping

from hyperpod_jlab.core.errors import InvalidInputError, nearest_hint
from hyperpod_jlab.core.spec import Accelerators, JobSpec
from hyperpod_jlab.engines.launch import EXIT_UNTRUSTED, FLAGS, guard_source
from hyperpod_jlab.engines.protocol import Rendered, RenderInput
from hyperpod_jlab.engines.slurm.jobs import COMMENT
from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.files import storage_errors
from hyperpod_jlab.storage.records import BundleReader

# --------------------------------------------------------------------------------------------------
# Extra sbatch options that a user may set (``slurm.flags``): the valid names, and those reserved
# for us.

PROTECTED: Mapping[str, str] = {
    "array": "use array of the spec",
    "auto-resume": "use auto_resume of the spec (--auto-resume)",
    "autocomplete": "it submits nothing",
    "chdir": "the working folder is the bundle of the run",
    "clusters": "use --cluster",
    "comment": "it contains the run id",
    "container": "use image of the spec (--image)",
    "container-id": "use image of the spec (--image)",
    "container-image": "use image of the spec (--image)",
    "container-mounts": "the storage partition is mounted in the image of the run (--image)",
    "dependency": "use after of the spec (--after)",
    "error": "logs are written to the bundle of the run",
    "export": "use --env",
    "export-file": "use --env",
    "get-user-env": "use --env",
    "help": "it submits nothing",
    "input": "ranks have no input",
    "job-name": "use name of the spec (--name)",
    "nodes": "use nodes of the spec (--nodes)",
    "ntasks": "each node has one task, the launcher; use processes_per_node of the spec (--processes-per-node)",
    "ntasks-per-node": "each node has one task, the launcher; use processes_per_node of the spec (--processes-per-node)",
    "open-mode": "logs are appended, so that each attempt keeps its log",
    "output": "logs are written to the bundle of the run",
    "parsable": "the job id is read from the output",
    "quiet": "the job id is read from the output",
    "signal": "ranks get SIGUSR2 before the time limit",
    "test-only": "use --dry-run",
    "uid": "a run belongs to its submitter",
    "gid": "a run belongs to its submitter",
    "usage": "it submits nothing",
    "version": "it submits nothing",
    "wait": "use --wait",
    "wrap": "the code is source of the spec",
    "account": "use account of the spec (--account)",
    "partition": "use queue of the spec (--queue)",
    "qos": "use qos of the spec (--qos)",
    "time": "use time_limit of the spec (--time-limit)",
    "mem": "use memory of the spec (--memory)",
    "cpus-per-task": "use cpus of the spec (--cpus)",
    "priority": "use priority of the spec (--priority)",
}
"""Options that a spec field sets or that runs rely on, and why they are rejected."""

ALLOWED: frozenset[str] = frozenset(
    {
        "acctg-freq", "batch", "bb", "bbf", "begin", "cluster-constraint",
        "consolidate-segments", "constraint", "contiguous", "core-spec", "cores-per-socket", "cpu-freq", "cpus-per-gpu", "deadline",
        "delay-boot", "distribution", "exclude", "exclusive", "extra", "extra-node-info", "gpu-bind",
        "gpu-freq", "gpus", "gpus-per-node", "gpus-per-socket", "gpus-per-task", "gres",
        "gres-flags", "hint", "hold", "ignore-pbs", "kill-on-invalid-dep", "licenses", "mail-type",
        "mail-user", "mcs-label", "mem-bind", "mem-per-cpu", "mem-per-gpu", "mincpus", "network",
        "nice", "no-kill", "no-requeue", "nodefile", "nodelist", "ntasks-per-core",
        "ntasks-per-gpu", "ntasks-per-socket", "oom-kill-step", "overcommit", "oversubscribe", "power", "prefer",
        "profile", "propagate", "reboot", "requeue", "reservation", "resv-ports", "segment",
        "sockets-per-node", "spread-job", "spread-segments", "stepmgr", "switches", "thread-spec", "threads-per-core",
        "time-min", "tmp", "tres-bind", "tres-per-task", "use-min-nodes", "verbose",
        "wait-all-nodes", "wckey",
    }
)  # fmt: skip
"""Long options of sbatch from 22.05 to 25.11 (man sbatch) that do not affect what runs rely on."""


SWITCHES: frozenset[str] = frozenset(
    {
        "consolidate-segments", "contiguous", "hold", "ignore-pbs", "no-requeue", "overcommit",
        "oversubscribe", "reboot", "requeue", "spread-job", "spread-segments", "stepmgr",
        "use-min-nodes", "verbose",
    }
)  # fmt: skip
"""Those without a value (checked with sbatch 22.05 and 24.11)."""

EITHER: frozenset[str] = frozenset({"exclusive", "nice", "no-kill", "oom-kill-step", "propagate", "resv-ports"})
"""Those with an optional value."""

MAX_VALUE_LENGTH = 4096
"""Maximum length of a value in characters: sbatch reads a value into 8 KiB (src/sbatch/opt.c, BUFSIZ) without a bounds check."""


def check_flags(flags: Mapping[str, str | int | bool]) -> dict[str, str | int | bool]:
    """The flags by long name, without leading dashes.

    Raises:
        InvalidInputError: A flag is unknown, protected or given twice, or its value is invalid.
    """
    checked: dict[str, str | int | bool] = {}
    for flag, value in flags.items():
        name = flag.removeprefix("--").replace("_", "-")
        if name in PROTECTED:
            raise _refuse(flag, f"--{name} cannot be set here: {PROTECTED[name]}", None)
        if name not in ALLOWED:
            raise _refuse(flag, f"sbatch has no option '--{name[:60]}'", nearest_hint(name[:60], ALLOWED))
        if name in checked:
            raise _refuse(flag, f"--{name} is given twice", None)
        checked[name] = _checked_value(flag, name, value)
    return checked


def _checked_value(flag: str, name: str, value: str | int | bool) -> str | int | bool:
    if name in SWITCHES and not isinstance(value, bool):
        raise _refuse(flag, f"--{name} takes no value", f"write it without a value: --slurm {name}")
    if value is True and name not in SWITCHES | EITHER:
        raise _refuse(flag, f"--{name} needs a value", None)
    text = str(value)
    if not text.strip():
        raise _refuse(flag, f"the value of --{name} is empty", None)
    if any(ord(character) < 32 or ord(character) == 127 for character in text):
        raise _refuse(
            flag, f"the value of --{name} contains a line break or another control character", "write it on one line"
        )
    if len(text) > MAX_VALUE_LENGTH:
        raise _refuse(flag, f"the value of --{name} is longer than {MAX_VALUE_LENGTH} characters", None)
    return value


def _refuse(flag: str, message: str, hint: str | None) -> InvalidInputError:
    return InvalidInputError(message, code="invalid_flag", hint=hint, detail={"field": f"slurm.flags.{flag[:60]}"})


FILENAME = "sbatch.sh"

_SAFE_VALUE = re.compile(r"[A-Za-z0-9_./:,@=%+-]+")
"""Values that need no quotes."""

WARNING = 120
"""Seconds before the time limit at which ranks get SIGUSR2 as a warning (half of a shorter limit).
Slurm may send it up to 60 s earlier (man sbatch, --signal).
"""
MIN_WARNED_S = 180
"""The shortest time limit (seconds) with a warning; below it, the warning could arrive during startup."""

HYPERPOD_MARKER = "/opt/sagemaker_cluster"
"""A path that only HyperPod nodes have; on them srun supports --auto-resume (research: AWS's own samples check for it)."""


def render(render_input: RenderInput) -> Rendered:
    """Render a run's script.

    Raises:
        InvalidInputError: An extra flag is unknown, protected or not a single line.
    """
    lines = ["#!/bin/bash", *(_directive(name, value) for name, value in options(render_input))]
    return Rendered(FILENAME, "\n".join([*lines, _body(render_input)]), "bash")


def options(render_input: RenderInput) -> Iterator[tuple[str, str | None]]:
    """The job's sbatch options by long name, in the script's order; None for a switch."""
    spec = render_input.spec
    folder = str(render_input.paths.remote / render_input.bundle)
    output = "slurm-%A_%a.out" if spec.array is not None else "slurm-%j.out"
    flags = check_flags(spec.slurm.flags)
    yield "job-name", render_input.name
    yield "comment", COMMENT + render_input.run_id
    yield "chdir", folder
    yield "output", _escape_patterns(folder) + "/logs/" + output
    yield "open-mode", "append"
    yield "export", "NONE"
    yield "nodes", str(spec.resources.nodes)
    yield "ntasks-per-node", "1"
    if spec.resources.cpus is not None or "cpus-per-gpu" not in flags:  # sbatch accepts only one of them
        yield "cpus-per-task", str(spec.resources.cpus or spec.resources.processes)
    if spec.resources.memory is not None:
        yield "mem", f"{-(-spec.resources.memory // 1024**2)}M"
    gres = _gres(spec.resources.accelerator)
    if gres is not None and "gres" not in flags:
        yield "gres", gres
    yield from _queue_options(spec)
    limit = spec.time_limit or render_input.time_limit
    if limit is not None:
        yield "time", clock(limit)
        if limit >= MIN_WARNED_S:
            yield "signal", f"B:USR2@{min(WARNING, limit // 2)}"
    if render_input.after:
        yield "dependency", ",".join(f"afterok:{job}" for job in render_input.after)
        yield "kill-on-invalid-dep", "yes"
    if spec.array is not None:
        yield "array", spec.array
    if flags.get("requeue") is not False and not flags.get("no-requeue"):
        yield "requeue", None
    for name, value in flags.items():
        if value is False and name == "requeue":
            yield "no-requeue", None
        elif name != "requeue" and value is not False:
            yield name, None if value is True else str(value)


def _queue_options(spec: JobSpec) -> Iterator[tuple[str, str]]:
    """The queue and account options."""
    if spec.queue is not None:
        yield "partition", spec.queue
    if spec.account is not None:
        yield "account", spec.account
    if spec.qos is not None:
        yield "qos", spec.qos
    if spec.priority is not None:
        yield "priority", spec.priority


def _gres(accelerator: Accelerators) -> str | None:
    """A node's generic resources (man sbatch, --gres): AWS's clusters call NeuronCores neuron."""
    if accelerator.count == 0:
        return None
    parts = [accelerator.kind, accelerator.type, str(accelerator.count)]
    return ":".join(part for part in parts if part is not None)


def clock(seconds: int) -> str:
    """Format a duration for Slurm. Slurm counts whole minutes, so a partial minute is rounded up."""
    minutes = -(-seconds // 60)
    return f"{minutes // 1440}-{minutes % 1440 // 60:02d}:{minutes % 60:02d}:00"


def _directive(name: str, value: str | None) -> str:
    if value is None:
        return f"#SBATCH --{name}"
    if any(ord(character) < 32 or ord(character) == 127 for character in value):
        raise InvalidInputError(
            f"the value of --{name} contains a line break or another control character",
            code="control_character",
            hint="write it on one line",
            detail={"option": name},
        )
    return f"#SBATCH --{name}={_quoted(value)}"


def _quoted(value: str) -> str:
    """Quote a value for sbatch. Unlike in a shell, a backslash is special in single quotes too (_get_argument in src/sbatch/opt.c)."""
    if _SAFE_VALUE.fullmatch(value):
        return value
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _escape_patterns(path: str) -> str:
    """Escape sbatch's patterns in a path (man sbatch, filename pattern).

    Raises:
        InvalidInputError: The path contains a backslash, which disables all patterns, including the
            job's id.
    """
    if "\\" in path:
        raise InvalidInputError(
            f"the path {path} of the storage partition contains a backslash, which Slurm does not allow in the path of a log",
            code="backslash",
            hint="mount it at another path, or set path under [storage] to a folder without a backslash",
            detail={"option": "output"},
        )
    return path.replace("%", "%%")


def _body(render_input: RenderInput) -> str:
    spec = render_input.spec
    task = spec.array is not None
    resume = "" if spec.auto_resume is False else _AUTO_RESUME
    image = "" if spec.environment.image is None else _image(render_input, spec.environment.image)
    return _BODY.format(
        run_id=render_input.run_id,
        guard=shlex.quote(guard_source()),
        guarded=_guard_command(render_input),
        launcher="inside" if image else "guarded",
        outside=_HOST_PROLOGUE.format(inside=_guard_command(render_input, any_owner=True)) if image else "",
        python=shlex.quote("python3" if image else render_input.python or "python3"),
        job="${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}" if task else "$SLURM_JOB_ID",
        task='--task="$SLURM_ARRAY_TASK_ID" ' if task else "",
        task_again=' --task="$SLURM_ARRAY_TASK_ID"' if task else "",
        records='tasks/"$SLURM_ARRAY_TASK_ID"/' if task else "",
        nodes=spec.resources.nodes,
        restarts=spec.max_restarts,
        image=image,
        resume=resume,
        untrusted=EXIT_UNTRUSTED,
    )


def _guard_command(render_input: RenderInput, *, any_owner: bool = False) -> str:
    """Python's arguments for the launcher, as elements of an array."""
    guard_args = render_input.guard_policy.guard_args(
        render_input.paths.remote, render_input.bundle, any_owner=any_owner
    )
    return f'{" ".join(FLAGS)} "$guard" {shlex.join(guard_args)}'


def _image(render_input: RenderInput, image: str) -> str:
    """The launcher's container command (Pyxis), with the partition at its own mount path."""
    partition_path = str(render_input.paths.remote)
    options = [
        f"--container-image={image}",
        f"--container-mounts={partition_path}:{partition_path}",
        "--no-container-mount-home",
    ]
    return f"options+=({' '.join(shlex.quote(part) for part in options)})\n"


_AUTO_RESUME = f"""\
if [ -e {HYPERPOD_MARKER} ]; then options+=(--auto-resume=1); fi
"""

_HOST_PROLOGUE = """\
# User ids in a container may differ: owners are checked here, and only the digest in the container.
inside=({inside})
if ! command -v "$python" >/dev/null; then
  echo "hyperpod: the node $first has no $python, which is needed to check the bundle before a container uses it" >&2
  exit 86
fi
"$python" "${{guarded[@]}}" || exit
"""

_BODY = """
# Run {run_id}, rendered by hyperpod_jlab: a launcher on each node starts the ranks and writes their logs and records.
set -u
step=
ending=
incarnation=
forward() {{ if [ -n "$step" ]; then kill -s "$1" "$step" 2>/dev/null; fi; }}
# While srun starts, a warning signal would end the step, and no rank could handle it yet.
warn() {{ if grep -qsF "\\"$incarnation\\"" {records}status/attempt-*/claim.json; then forward "$1"; fi; }}
trap 'ending=yes; forward TERM' TERM
trap 'warn USR1' USR1
trap 'warn USR2' USR2
# sbatch passes the token of the submitter to the job, which must not have it; srun cannot use it.
unset SLURM_JWT
python={python}
export PATH="${{PATH:-/usr/local/bin:/usr/bin:/bin}}:/opt/slurm/bin"
job="{job}"
first="$(hostname)"

options=(--export=ALL --nodes={nodes} --ntasks={nodes} --ntasks-per-node=1 --cpu-bind=none --kill-on-bad-exit=1)
{image}{resume}
# Starts the launcher, unless another user could have changed the bundle.
guard={guard}
guarded=({guarded})
{outside}
# Warnings are ignored until the launcher can handle them, also while Python starts.
start='
trap "" USR1 USR2
node="${{SLURMD_NODENAME:-$(hostname)}}"
if ! command -v "$1" >/dev/null; then
  echo "hyperpod: the node $node has no $1: set --python to an interpreter on the nodes" >&2
  exit 86
fi
exec "$@" --node-rank="$SLURM_NODEID" --node-name="$node"'

round=0
code=143
while [ -z "$ending" ]; do
  round=$((round + 1))
  incarnation="${{SLURM_RESTART_COUNT:-0}}.$round"
  srun "${{options[@]}}" --cpus-per-task="${{SLURM_CPUS_PER_TASK:-1}}" /bin/sh -c "$start" sh \\
    "$python" "${{{launcher}[@]}}" node --nodes={nodes} --master-addr="$first" --master-port=0 \\
    --scheduler-id="$job" --incarnation="$incarnation" {task}--quiet &
  step=$!
  if [ -n "$ending" ]; then forward TERM; fi
  while kill -0 "$step" 2>/dev/null; do wait "$step"; done
  wait "$step"
  code=$?
  step=
  if [ "$code" -eq 0 ] || [ -n "$ending" ]; then break; fi
  command -v "$python" >/dev/null || break
  "$python" "${{guarded[@]}}" again --scheduler-id="$job" --max-restarts={restarts}{task_again}
  again=$?
  if [ "$again" -eq {untrusted} ]; then code=$again; fi
  if [ "$again" -ne 0 ]; then break; fi
done
exit "$code"
"""


# --------------------------------------------------------------------------------------------------
# A run's sbatch script in its bundle.

_MAX_SCRIPT_BYTES = 16 << 20


def read_script(bundle: BundleReader) -> bytes:
    """Read the script's bytes. Blocking.

    Raises:
        StorageError: The script is unreadable.
    """
    path = bundle.folder / FILENAME
    with storage_errors(path):
        return descent.read(path, _MAX_SCRIPT_BYTES)
