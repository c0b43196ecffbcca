"""The example configurations, to be spoiled."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[2] / "examples" / "clusters"
MANAGED = EXAMPLES / "slurm-api" / "cluster-config.json"
SLURM = EXAMPLES / "slurm" / "cluster-config.json"
SECOND = EXAMPLES / "slurm" / "provisioning_parameters.json"
EKS = EXAMPLES / "eks" / "cluster-config.json"

GONE = object()
"""In place of a value: the member is taken out."""


def document(path: Path) -> dict[str, Any]:
    """A file's JSON."""
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def spoiled(found: dict[str, Any], place: str, value: Any) -> dict[str, Any]:
    """A copy with another value at a place such as ``InstanceGroups.0.InstanceType``; a list may be appended to with ``+``."""
    made = copy.deepcopy(found)
    at: Any = made
    *above, last = place.split(".")
    for name in above:
        at = at[int(name)] if isinstance(at, list) else at[name]
    if last == "+":
        at.append(value)
    elif value is GONE:
        del at[int(last) if isinstance(at, list) else last]
    else:
        at[int(last) if isinstance(at, list) else last] = value
    return made
