"""Environment, secrets, setup lines."""

from __future__ import annotations

import contextlib
import os
import re
from typing import Dict, Mapping, Optional, Sequence

from .bundle_files import AttemptPaths
from .contract import STACK_SIGNAL, STACK_VARIABLE
from .errors import LauncherError
from .mlflow_variables import mlflow_variables
from .plan import NodeArguments, Plan
from .system import PARENT

FOREIGN_VARIABLES = re.compile(
    r"(PET|TORCHELASTIC)_.*|((LOCAL|NODE|GROUP|ROLE)_)?RANK|((LOCAL|GROUP|ROLE)_)?WORLD_SIZE|ROLE_NAME"
    r"|HYPERPOD_(ATTEMPT|ARRAY_INDEX|HEARTBEAT)"
)
"""What an operator, an outer torchrun or an outer run may have set and what would mislead the ranks."""

SETUP = (
    # No positional parameters: `. activate` inside the lines would take ours for its own.
    "__hyperpod_lines=$1 __hyperpod_fd=$2; set --; "
    "trap '__hyperpod_code=$?; /usr/bin/env -0 >&\"$__hyperpod_fd\"; exit $__hyperpod_code' EXIT; "
    '. "$__hyperpod_lines"; /usr/bin/env -0 >&"$__hyperpod_fd"'
)

IGNORED_FROM_SETUP = frozenset(("_", "SHLVL", "PWD", "OLDPWD", PARENT))


def read_secrets(bundle: str, names: Sequence[str]) -> Dict[str, str]:
    """The secrets' values: from their files, or from the environment where the engine put them there.

    Raises:
        LauncherError: One is missing or can't be a variable's value.
    """
    values = {}
    for name in names:
        path = os.path.join(bundle, "secrets", name)
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            with open(descriptor, "rb") as file:
                value = file.read()
        except OSError as error:
            if name in os.environ:
                continue
            hint = "it may have been deleted after an earlier attempt: requeue the run so that it is delivered again"
            message = "the secret %s cannot be read: %s" % (name, error.strerror)
            raise LauncherError("secret_missing", message, hint, {"name": name}) from None
        if b"\0" in value:
            raise LauncherError("bad_secret", "the value of the secret %s contains a NUL byte" % name)
        values[name] = os.fsdecode(value)
    return values


def delete_secrets(bundle: str, names: Sequence[str]) -> None:
    """Delete the secrets' files; several nodes may do so at once."""
    for name in names:
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(bundle, "secrets", name))
    with contextlib.suppress(OSError):
        os.rmdir(os.path.join(bundle, "secrets"))


def mask_secrets(text: str, secrets: Mapping[str, str]) -> str:
    """A text for a record, in which no secret's value may stand."""
    for value in secrets.values():
        if len(value.strip()) >= 4:
            text = text.replace(value.strip(), "***")
    return text


def node_environment(
    plan: Plan, attempt_paths: AttemptPaths, arguments: NodeArguments, secrets: Mapping[str, str]
) -> Dict[str, str]:
    """What the setup lines see, and the ranks below their own variables."""
    environment = {name: value for name, value in os.environ.items() if not FOREIGN_VARIABLES.fullmatch(name)}
    environment.update(PYTHONUNBUFFERED="1", PYTHONFAULTHANDLER="1")
    if plan.mlflow:
        task = arguments.task
        run_id = plan.run_id if task is None else "%s.%d" % (plan.run_id, task)
        environment.update(mlflow_variables(plan.mlflow, run_id, attempt_paths.attempt))
    environment.update(plan.variables)
    environment.update(secrets)
    environment.update(launcher_variables(plan, attempt_paths, arguments))
    return environment


def launcher_variables(plan: Plan, attempt_paths: AttemptPaths, arguments: NodeArguments) -> Dict[str, str]:
    """What the launcher alone decides, the same for all ranks of the node."""
    variables = {
        "NODE_RANK": str(attempt_paths.node_rank),
        "WORLD_SIZE": str(arguments.nodes * plan.processes),
        "LOCAL_WORLD_SIZE": str(plan.processes),
        "MASTER_ADDR": arguments.master_addr,
        "MASTER_PORT": str(arguments.master_port),
        "HYPERPOD_RUN_ID": plan.run_id,
        "HYPERPOD_ATTEMPT": str(attempt_paths.attempt),
        "HYPERPOD_BUNDLE": attempt_paths.bundle,
        "HYPERPOD_RECORDS": attempt_paths.records,
    }
    if arguments.task is not None:
        variables["HYPERPOD_ARRAY_INDEX"] = str(arguments.task)
    if STACK_SIGNAL is not None:
        variables[STACK_VARIABLE] = str(STACK_SIGNAL)
    return variables


def rank_variables(plan: Plan, attempt_paths: AttemptPaths, local_rank: int) -> Dict[str, str]:
    """What tells one rank from the others."""
    rank = attempt_paths.node_rank * plan.processes + local_rank
    return {"RANK": str(rank), "LOCAL_RANK": str(local_rank)}


def parse_environment(data: bytes) -> Dict[str, str]:
    """The environment that the setup lines left, as ``env -0`` wrote it."""
    environment = {}
    for entry in data.split(b"\0"):
        name, equals, value = entry.partition(b"=")
        if equals and name and os.fsdecode(name) not in IGNORED_FROM_SETUP:
            environment[os.fsdecode(name)] = os.fsdecode(value)
    return environment


def anonymous_file() -> int:
    """A file without a name: in memory where there is such a thing, so that no secret comes to a disk."""
    if hasattr(os, "memfd_create"):
        with contextlib.suppress(OSError):
            return os.memfd_create("hyperpod-environment")
    import tempfile

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def find_program(name: str, environment: Mapping[str, str], cwd: str) -> Optional[str]:
    """Where the system will find a program that is started in `cwd`; None when it won't."""
    if os.path.dirname(name):
        path = os.path.join(cwd, name)
        return path if os.path.isfile(path) and os.access(path, os.X_OK) else None
    import shutil

    return shutil.which(name, path=environment.get("PATH", os.defpath))
