"""This machine's resources: CPUs, memory, GPUs."""

from __future__ import annotations

import functools
import hashlib
import os
import pwd
import shutil
import subprocess
from pathlib import Path

from hyperpod_jlab.core.errors import StorageDeniedError
from hyperpod_jlab.engines.launch import UNTRUSTED, untrusted_reason
from hyperpod_jlab.launcher import guard
from hyperpod_jlab.storage.files import storage_errors
from hyperpod_jlab.storage.partition import Partition
from hyperpod_jlab.storage.processes import machine_id


def cpus() -> int:
    """CPUs that this process may use."""
    return len(os.sched_getaffinity(0))


def default_slots() -> int:
    """Concurrent runs: one for every two CPUs, at least one."""
    return max(1, cpus() // 2)


def memory() -> int:
    """Bytes of memory in this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@functools.cache
def gpus() -> tuple[str, ...]:
    """Names of the GPUs that ``nvidia-smi`` lists, in its order; empty without it."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return ()
    try:
        completed = subprocess.run(
            [program, "--query-gpu=name", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    if completed.returncode != 0:
        return ()
    return tuple(line.strip() for line in completed.stdout.splitlines() if line.strip())


# --------------------------------------------------------------------------------------------------
# A run's id in this engine: this machine and the run's own id.


def scheduler_id(run_id: str) -> str:
    """The scheduler id of a run on this machine."""
    return f"{machine_id()}:{run_id}"


# --------------------------------------------------------------------------------------------------
# The environment of a run: clean, like a login on a node. It inherits none of the submitter's own.

_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def clean_environment(python: str, gpus: tuple[int, ...]) -> dict[str, str]:
    """Variables for the launcher of one node.

    Args:
        python: The run's interpreter; its folder is first in PATH, so that ``pip`` and ``torchrun``
            belong to it.
        gpus: Indices of the GPUs that the node may use.
    """
    try:
        entry = pwd.getpwuid(os.getuid())
        user, home = entry.pw_name, entry.pw_dir
    except KeyError:  # a container's uid without an entry
        user, home = str(os.getuid()), os.environ.get("HOME", "/")
    path = _SYSTEM_PATH
    if Path(python).is_absolute():
        path = f"{Path(python).parent}:{path}"
    variables = {
        "PATH": path,
        "HOME": os.environ.get("HOME", home),
        "USER": user,
        "LOGNAME": user,
        "SHELL": "/bin/bash",
        "LANG": "C.UTF-8",
    }
    if gpus:
        variables["CUDA_VISIBLE_DEVICES"] = ",".join(str(gpu) for gpu in gpus)
    return variables


# --------------------------------------------------------------------------------------------------
# Whether the embedded cluster may run a bundle: the guard's rules, applied before a supervisor
# reads or writes anything in it.


class UntrustedBundleError(StorageDeniedError):
    """The bundle is not this user's, or another user could change it: nothing in it may be run or written."""

    default_code = UNTRUSTED


def check_bundle(partition: Partition, bundle: Path) -> None:
    """Reject a bundle that is not this user's, or that another user could change.

    Args:
        partition: The partition.
        bundle: The bundle's folder.

    Raises:
        UntrustedBundleError: The bundle must not be used.
        StorageError: The bundle cannot be opened.
    """
    os.close(_open_bundle(partition, bundle))


def launcher_digest(partition: Partition, bundle: Path) -> str:
    """The SHA-256 of the launcher in a bundle, after the checks of `check_bundle`.

    Raises:
        UntrustedBundleError: The bundle must not be used.
        StorageError: The launcher cannot be opened or read.
    """
    descriptor = _open_bundle(partition, bundle)
    try:
        with storage_errors(bundle):
            return hashlib.sha256(guard.read_launcher(descriptor, _users())).hexdigest()
    except guard.UntrustedError as error:
        raise _untrusted_error(bundle, error) from error
    finally:
        os.close(descriptor)


def _open_bundle(partition: Partition, bundle: Path) -> int:
    try:
        with storage_errors(bundle):
            relative = str(bundle.relative_to(partition.root))
            return guard.open_bundle(str(partition.root), relative, _users(), partition.shared)
    except guard.UntrustedError as error:
        raise _untrusted_error(bundle, error) from error


def _users() -> set[int]:
    return {0, os.getuid()}


def _untrusted_error(bundle: Path, error: guard.UntrustedError) -> UntrustedBundleError:
    return UntrustedBundleError(
        untrusted_reason(bundle.name, str(error)),
        hint="make sure that only you can write to the bundle and the folders above it, then submit again; see: hpj doctor",
        detail={"path": str(bundle)},
    )
