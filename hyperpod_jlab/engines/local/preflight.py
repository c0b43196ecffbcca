"""Preflight checks of a spec on the embedded cluster."""

from __future__ import annotations

import functools
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from hyperpod_jlab.aws.studio import find_studio
from hyperpod_jlab.core.errors import RefusedError
from hyperpod_jlab.core.finding import Finding, Fix
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.core.studio import APPS, MIN_IDLE_MINUTES
from hyperpod_jlab.engines.local import machine
from hyperpod_jlab.engines.protocol import Rendered, RenderInput

# --------------------------------------------------------------------------------------------------
# A run's execution on the embedded cluster, as a document for the preview and the bundle. Pure.


def render(render_input: RenderInput) -> Rendered:
    """The run's document: each node's launcher with its arguments, and the limits that the supervisor enforces."""
    spec = render_input.spec
    launcher = str(render_input.paths.remote / render_input.bundle / "launcher.py")
    nodes = [
        {
            "name": f"local-{rank}",
            "command": [
                render_input.python or "python3",
                launcher,
                "node",
                f"--node-rank={rank}",
                f"--nodes={spec.resources.nodes}",
                "--master-addr=127.0.0.1",
                "--master-port=<a free port>",
            ],
        }
        for rank in range(spec.resources.nodes)
    ]
    document = {
        "run_id": render_input.run_id,
        "name": render_input.name,
        "launcher": spec.resolved_launcher,
        "processes_per_node": spec.resources.processes,
        "gpus_per_node": spec.resources.accelerator.count,
        "launcher_sha256": render_input.guard_policy.digest,
        "nodes": nodes,
        "time_limit": spec.time_limit,
        "stop_grace": spec.stop_grace,
        "max_restarts": spec.max_restarts,
        "after": spec.after,
        "array": spec.array,
    }
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    return Rendered("local.json", text, "json")


# --------------------------------------------------------------------------------------------------
# The effect of Studio's idle shutdown on a run on this machine. AWS is not queried, because that
# would delay every submit; `hpj doctor` does it.


def idle_findings(spec: JobSpec) -> list[Finding]:
    """The warning that Studio may stop this machine during a run; none for a run that must end before Studio's minimum idle time."""
    limit = spec.time_limit
    if limit is not None and limit <= MIN_IDLE_MINUTES * 60:
        return []
    studio = find_studio()
    if studio is None or studio.app_type not in APPS:
        return []
    return [
        Finding(
            level="info",
            code="studio_idle_shutdown",
            message="if Studio stops idle spaces, a run on this machine ends with the space: a run does not count as activity",
            hint="submit long runs to another cluster; hpj doctor shows whether and when this space is stopped",
        )
    ]


MAX_NODES = 64
"""Maximum number of nodes simulated on one machine."""
MAX_PROCESSES = 512

_PROBE = "import sys, importlib.util as u; print(*sys.version_info[:2], int(u.find_spec('torch') is not None))"


@dataclass(frozen=True)
class Interpreter:
    """A Python: its major and minor version, and whether torch is installed."""

    version: tuple[int, int]
    torch: bool


def interpreter(python: str) -> Interpreter:
    """Inspect a Python by running it.

    Raises:
        RefusedError: The path does not exist, or the interpreter does not run.
    """
    try:
        mtime = Path(python).stat().st_mtime_ns
    except OSError:
        raise _python_error(python, "the file does not exist") from None
    return _probe(python, mtime)


@functools.lru_cache(maxsize=32)
def _probe(python: str, mtime: int) -> Interpreter:  # noqa: ARG001 - the stamp is part of the key
    try:
        completed = subprocess.run([python, "-I", "-c", _PROBE], capture_output=True, text=True, timeout=60, check=True)
        major, minor, torch = (int(field) for field in completed.stdout.split())
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise _python_error(python, f"it is not a working Python interpreter: {error}") from error
    return Interpreter((major, minor), bool(torch))


def _python_error(python: str, problem: str) -> RefusedError:
    return RefusedError(
        f"Python {python} cannot be used: {problem}",
        code="no_python",
        hint="give the path of an interpreter with --python",
        detail={"field": "environment.python", "python": python},
    )


def findings(spec: JobSpec, python: str) -> list[Finding]:
    """All problems of a spec on this machine, and its ignored fields.

    Raises:
        RefusedError: The interpreter is unusable.
    """
    probed = interpreter(python)
    return [*_sizes(spec), *_gpus(spec), *_torch(spec, python, probed), *_ignored(spec), *idle_findings(spec)]


def _sizes(spec: JobSpec) -> list[Finding]:
    result = []
    if spec.resources.nodes > MAX_NODES:
        result.append(
            Finding(
                level="error",
                code="too_many_nodes",
                message=f"the local cluster simulates at most {MAX_NODES} nodes, not {spec.resources.nodes}",
                hint="use fewer nodes, or another cluster",
                field="resources.nodes",
                fixes=(Fix(label=f"Use {MAX_NODES} nodes", set={"resources.nodes": MAX_NODES}),),
            )
        )
    elif spec.world_size > MAX_PROCESSES:
        result.append(
            Finding(
                level="error",
                code="too_many_processes",
                message=f"{spec.world_size} processes are more than the limit of this machine ({MAX_PROCESSES})",
                hint="use fewer nodes or processes, or another cluster",
                field="resources.processes_per_node",
                fixes=(
                    Fix(label="Use 1 node and 1 rank", set={"resources.nodes": 1, "resources.processes_per_node": 1}),
                ),
            )
        )
    elif spec.world_size > 4 * machine.cpus():
        result.append(
            Finding(
                level="warning",
                code="oversubscribed",
                message=f"{spec.world_size} processes share {machine.cpus()} CPUs",
                hint="this is fine for a test, but slow for more",
                field="resources.processes_per_node",
            )
        )
    return result


def _gpus(spec: JobSpec) -> list[Finding]:
    accelerator = spec.resources.accelerator
    requested = accelerator.count * spec.resources.nodes
    if requested == 0:
        return []
    names = machine.gpus() if accelerator.kind == "gpu" else ()
    if requested <= len(names):
        return []
    available = f"{len(names)}" if names else "none"
    return [
        Finding(
            level="error",
            code="not_enough_gpus",
            message=f"{requested} {accelerator.kind} devices are requested, but this machine has {available}",
            hint="request fewer with --gpus-per-node, or use another cluster",
            field="resources.gpus_per_node",
            fixes=(Fix(label="Use no GPUs", set={"resources.gpus_per_node": None, "resources.accelerators": None}),),
        )
    ]


def _torch(spec: JobSpec, python: str, probed: Interpreter) -> list[Finding]:
    if spec.resolved_launcher != "torchrun" or probed.torch or spec.environment.capture:
        return []
    return [
        Finding(
            level="error",
            code="torch_missing",
            message=f"the launcher is torchrun, but {python} has no torch",
            hint="install torch there, set another --python, or use --launcher python",
            field="launcher",
            fixes=(Fix(label="Use python", set={"launcher": "python"}),),
        )
    ]


def _ignored(spec: JobSpec) -> list[Finding]:
    values = {
        "queue": spec.queue,
        "account": spec.account,
        "qos": spec.qos,
        "priority": spec.priority,
        "resources.memory": spec.resources.memory,
        "resources.instance_type": spec.resources.instance_type,
        "resources.instance_group": spec.resources.instance_group,
        "auto_resume": spec.auto_resume,
        "slurm": spec.slurm.flags or None,
        "kubernetes": spec.kubernetes.patch or None,
        "kubernetes.service_account": spec.kubernetes.service_account,
    }
    result = [
        Finding(level="info", code="ignored", message=f"the local cluster ignores {field}", field=field)
        for field, value in values.items()
        if value is not None
    ]
    if spec.environment.image is not None:
        result.append(
            Finding(
                level="error",
                code="unsupported",
                message="the local cluster runs no containers",
                hint="leave out --image, or use another cluster",
                field="environment.image",
            )
        )
    if spec.source.kind == "native":
        result.append(
            Finding(
                level="error",
                code="unsupported",
                message="the local cluster runs no sbatch scripts or manifests",
                hint="choose a Slurm or Kubernetes cluster with --cluster",
                field="source",
            )
        )
    return result
