"""The launcher's plan (``launch.json``): a pure function of the spec and what capture made of its source."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

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


# --------------------------------------------------------------------------------------------------
# What a job is told of the launcher that it may start: whose bundle it lies in, and the digest of its bytes.
#
# Both become words of the guard (`hyperpod_jlab/launcher/guard.py`), which stands as text in what the scheduler holds.

FLAGS = ("-I", "-X", "utf8", "-c")
"""Python's own: nothing but the standard library is imported, whatever lies in the working folder or stands in variables, and text is UTF-8."""

EXIT_UNTRUSTED = 84
"""The guard's exit code when it lets nothing run."""

ANY_OWNER = "-"
"""In place of an owner, where user numbers cannot be compared: the guard looks at the digest only."""


@dataclass(frozen=True)
class GuardPolicy:
    """Which launcher may run, and in whose bundle.

    Attributes:
        owner: Number of the user who owns the bundle, as the nodes see it.
        digest: SHA-256 of the launcher, in hexadecimal digits.
        shared: Whether the partition is shared, so that groups that may write to the folders above it count as other users.
    """

    owner: int
    digest: str
    shared: bool = False

    @classmethod
    def current(cls, owner: int | None = None, *, shared: bool = False) -> GuardPolicy:
        """That of a bundle which this process makes now with this version's launcher.

        Args:
            owner: This user's number on the nodes, where it is known to be another one than the kernel says.
            shared: Whether the partition is shared.
        """
        from hyperpod_jlab.launcher import launcher_source

        digest = hashlib.sha256(launcher_source()).hexdigest()
        return cls(own_uid() if owner is None else owner, digest, shared)

    def guard_args(
        self, root: PurePath, bundle: str | PurePath, *, any_owner: bool = False
    ) -> list[str]:
        """The guard's own arguments, before those of the launcher.

        Args:
            root: The partition where the guard runs.
            bundle: The bundle's path below it.
            any_owner: Whether user numbers mean nothing there.
        """
        owner = ANY_OWNER if any_owner else str(self.owner)
        return [str(root), str(bundle), owner, self.digest, "shared" if self.shared else "private"]


@functools.lru_cache(maxsize=1)
def guard_source() -> str:
    """The guard's text without blank lines and what it says about itself, so that scripts and manifests stay short."""
    from hyperpod_jlab import launcher

    text = Path(launcher.__file__).with_name("guard.py").read_text(encoding="utf-8")
    lines = (line.partition("  # noqa")[0] for line in text.split('"""', 2)[2].splitlines())
    return "\n".join(line for line in lines if line and '"""' not in line) + "\n"


def guard_command(guard_args: Sequence[str]) -> list[str]:
    """Python's arguments that start a launcher through the guard."""
    return [*FLAGS, guard_source(), *guard_args]


REFUSAL_PREFIX = "hyperpod: nothing was run: "
"""How the guard's word begins when it refuses a bundle."""

UNTRUSTED = "untrusted_bundle"
"""The reason code of a run that the guard refused."""


def untrusted_reason(run_id: str, detail: str | None = None) -> str:
    """The reason of a run that the guard refused.

    Args:
        run_id: The run.
        detail: What the guard said, where that is known.
    """
    text = f"the bundle of {run_id} was changed or belongs to another user; no code was run"
    return text if detail is None else f"{text}: {detail.removeprefix(REFUSAL_PREFIX)}"
