"""What this machine offers: CPUs, memory, GPUs."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess


def cpus() -> int:
    """CPUs that this process may use."""
    return len(os.sched_getaffinity(0))


def default_slots() -> int:
    """Runs at a time: one for every two CPUs, at least one."""
    return max(1, cpus() // 2)


def memory() -> int:
    """Bytes of memory in this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@functools.cache
def gpus() -> tuple[str, ...]:
    """Names of the GPUs that ``nvidia-smi`` finds, in its order; empty without it."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return ()
    try:
        done = subprocess.run(
            [program, "--query-gpu=name", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    if done.returncode != 0:
        return ()
    return tuple(line.strip() for line in done.stdout.splitlines() if line.strip())
