"""The launcher's plan (``launch.json``): a pure function of the spec and what capture made of its source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hyperpod_jlab.model.spec import JobSpec

PLAN_FORMAT = 1


def launch_plan(
    spec: JobSpec,
    run_id: str,
    command: Sequence[str | dict[str, Any]],
    python: str | None,
    cwd: str = "work",
    on_hyperpod: bool = False,
) -> dict[str, Any]:
    """The plan for the launcher, as docs/bundle-format.md describes it.

    Args:
        spec: The spec.
        run_id: The run's id.
        command: What a rank executes, as capture gave it.
        python: Interpreter on the far side, or None for the one that runs the launcher.
        cwd: The folder in the bundle in which the command runs.
        on_hyperpod: Whether the cluster is configured as one of HyperPod's.
    """
    launcher = spec.resolved_launcher
    return {
        "format": PLAN_FORMAT,
        "run_id": run_id,
        "nodes": spec.resources.nodes,
        "processes_per_node": 1 if launcher == "none" else spec.resources.processes,
        "launcher": launcher,
        "python": python,
        "command": list(command),
        "cwd": cwd,
        "variables": dict(spec.environment.variables),
        "secrets": sorted(spec.environment.secrets),
        # A later attempt comes without anybody who could deliver them again.
        "keep_secrets": spec.max_restarts > 0 or spec.is_resumed(on_hyperpod),
        "setup": spec.environment.setup,
        "stop_grace": spec.stop_grace,
        "forward_signals": spec.forward_signals,
        "cpus": spec.resources.cpus,
    }
