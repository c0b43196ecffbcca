"""The key by which the pods of a run know each other: made when the job is, and kept in the job's object alone.

Files of the run may be read by all users of a shared partition, and pods may run as another user than the one who submits. So the key travels as a variable of
the pods: the API server shows it to those who may read pods of the namespace, and to nobody on the file system.
"""

from __future__ import annotations

import copy
import secrets
from collections.abc import Mapping
from typing import Any

_VARIABLE = "HYPERPOD_MEETING_KEY"
_PLACEHOLDER = "(made when the run is sent)"


def key_environment(nodes: int) -> list[dict[str, Any]]:
    """The key's place in a manifest; a single pod meets nobody."""
    return [{"name": _VARIABLE, "value": _PLACEHOLDER}] if nodes > 1 else []


def with_key(document: Mapping[str, Any]) -> dict[str, Any]:
    """The object to send: the manifest with a new key, the same one in all pods' templates."""
    made = copy.deepcopy(dict(document))
    _put_in(made, secrets.token_hex(16))
    return made


def _put_in(found: Any, key: str) -> None:
    if isinstance(found, dict):
        if found.get("name") == _VARIABLE and found.get("value") == _PLACEHOLDER:
            found["value"] = key
        for value in found.values():
            _put_in(value, key)
    elif isinstance(found, list):
        for value in found:
            _put_in(value, key)
