"""The environment that a run starts with: clean, like a login on a node. Nothing of the submitter's own is inherited."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def clean_environment(python: str, gpus: tuple[int, ...]) -> dict[str, str]:
    """Variables for the launcher of one node.

    Args:
        python: The run's interpreter; its folder comes first in PATH, so that ``pip`` and ``torchrun`` are its own.
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
