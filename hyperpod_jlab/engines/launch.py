"""The launcher's plan (``launch.json``): a pure function of the spec and the captured source."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from hyperpod_jlab.core.records import ENVIRONMENT_FILE
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.storage.acl import own_uid

PLAN_FORMAT = 1


def launch_plan(
    spec: JobSpec,
    run_id: str,
    command: Sequence[str | dict[str, Any]],
    python: str | None,
    cwd: str = "work",
    on_hyperpod: bool = False,
    mlflow: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The plan for the launcher, as docs/bundle-format.md describes it.

    Args:
        spec: The spec.
        run_id: The run's id.
        command: The ranks' command from capture.
        python: The interpreter on the nodes, or None for the one that runs the launcher.
        cwd: The folder in the bundle in which the command runs.
        on_hyperpod: Whether the cluster is configured as a HyperPod cluster.
        mlflow: Facts for MLflow that are not in the spec: the name of the run, its cluster, its commit.
    """
    launcher = spec.resolved_launcher
    plan = {
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
        # A later attempt may start when nothing can deliver them again.
        "keep_secrets": spec.max_restarts > 0 or spec.is_resumed(on_hyperpod),
        "setup": spec.environment.setup,
        "stop_grace": spec.stop_grace,
        "forward_signals": spec.forward_signals,
        "cpus": spec.resources.cpus,
    }
    if spec.environment.capture is not None:
        plan["environment"] = ENVIRONMENT_FILE
    if spec.metric_patterns:
        plan["metric_patterns"] = dict(spec.metric_patterns)
    alarms = spec.alarms.model_dump(exclude_defaults=True)
    if spec.alarms.webhook is not None:  # from these the launcher knows that an attempt is the last
        alarms.update(max_restarts=spec.max_restarts, time_limit=spec.time_limit)
    if alarms:
        plan["alarms"] = alarms
    if spec.mlflow.server is not None:
        plan["mlflow"] = {**(mlflow or {}), **spec.mlflow.model_dump(exclude_defaults=True)}
    return plan


# --------------------------------------------------------------------------------------------------
# What a job knows about the launcher that it may start: the bundle's owner, and the launcher's
# digest.
#
# Both become arguments of the guard (`hyperpod_jlab/launcher/guard.py`), whose text is part of the
# script or manifest.

FLAGS = ("-I", "-X", "utf8", "-c")
"""Python's own flags: import only the standard library, whatever the working folder or the variables contain, and use UTF-8."""

EXIT_UNTRUSTED = 84
"""The guard's exit code when it refuses to run anything."""

ANY_OWNER = "-"
"""Replaces the owner when user ids cannot be compared: the guard then checks only the digest."""


@dataclass(frozen=True)
class GuardPolicy:
    """Which launcher may run, and whose bundle it must be in.

    Attributes:
        owner: The uid of the bundle's owner, as the nodes see it.
        digest: SHA-256 of the launcher, in hexadecimal digits.
        shared: Whether the partition is shared, so that groups with write permission on the folders
            above it count as other users.
    """

    owner: int
    digest: str
    shared: bool = False

    @classmethod
    def current(cls, owner: int | None = None, *, shared: bool = False) -> GuardPolicy:
        """The policy for a bundle that this process creates with this version's launcher.

        Args:
            owner: This user's uid on the nodes, if it is known to differ from the local one.
            shared: Whether the partition is shared.
        """
        from hyperpod_jlab.launcher import launcher_source

        digest = hashlib.sha256(launcher_source()).hexdigest()
        return cls(own_uid() if owner is None else owner, digest, shared)

    def guard_args(self, root: PurePath, bundle: str | PurePath, *, any_owner: bool = False) -> list[str]:
        """The guard's own arguments, before those of the launcher.

        Args:
            root: The partition's path where the guard runs.
            bundle: The bundle's path below it.
            any_owner: Whether user ids are meaningless there.
        """
        owner = ANY_OWNER if any_owner else str(self.owner)
        return [str(root), str(bundle), owner, self.digest, "shared" if self.shared else "private"]


@functools.lru_cache(maxsize=1)
def guard_source() -> str:
    """The guard's source without blank lines and docstrings, so that scripts and manifests stay short."""
    from hyperpod_jlab import launcher

    text = Path(launcher.__file__).with_name("guard.py").read_text(encoding="utf-8")
    lines = (line.partition("  # noqa")[0] for line in text.split('"""', 2)[2].splitlines())
    return "\n".join(line for line in lines if line and '"""' not in line) + "\n"


def guard_command(guard_args: Sequence[str]) -> list[str]:
    """Python's arguments for starting a launcher through the guard."""
    return [*FLAGS, guard_source(), *guard_args]


REFUSAL_PREFIX = "hyperpod: nothing was run: "
"""Prefix of the guard's message when it refuses a bundle."""

UNTRUSTED = "untrusted_bundle"
"""The reason code of a run that the guard refused."""


def untrusted_reason(run_id: str, detail: str | None = None) -> str:
    """The reason of a run that the guard refused.

    Args:
        run_id: The run.
        detail: The guard's message, if known.
    """
    text = f"the bundle of {run_id} was changed or belongs to another user; no code was run"
    return text if detail is None else f"{text}: {detail.removeprefix(REFUSAL_PREFIX)}"
