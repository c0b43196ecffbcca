"""A cluster in a person's kubeconfig, when a space starts: what is missing is added, and nothing of theirs is changed.

``python -m hyperpod_jlab.admin.lifecycle.kubeconfig MADE INTO CONTEXT NAMESPACE``: MADE is what ``aws eks update-kubeconfig`` has written for this one
cluster; INTO is the person's file, empty for kubectl's default; NAMESPACE may be empty.
"""

from __future__ import annotations

import copy
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from hyperpod_jlab.core.errors import HyperpodError, RefusedError

KINDS = (("clusters", "cluster"), ("users", "user"), ("contexts", "context"))


def merged(theirs: Mapping[str, Any], made: Mapping[str, Any], namespace: str) -> dict[str, Any]:
    """Their kubeconfig with the cluster.

    Args:
        theirs: What stands in it; nothing, where there is none.
        made: A kubeconfig of one cluster, user and context.
        namespace: The namespace of a new context; empty: Kubernetes' own default.

    Raises:
        RefusedError: They have a context of the same name for another cluster, or it is no kubeconfig.
    """
    found: dict[str, Any] = copy.deepcopy(dict(theirs)) or {"apiVersion": "v1", "kind": "Config"}
    (context,) = made["contexts"]
    for plural, _ in KINDS:
        if not isinstance(found.setdefault(plural, []) or [], list):
            raise RefusedError(
                f"it is not a kubeconfig: {plural} must be a list", code="no_kubeconfig"
            )
        found[plural] = [*(found[plural] or [])]
    there = _named(found["contexts"], context["name"])
    if there is not None and not _is_of(there, context["context"]["cluster"]):
        raise RefusedError(f"the context {context['name']} is for another cluster", code="foreign")
    # Its address and authority are AWS' to say; how they log in and where their context points is theirs.
    (cluster,) = made["clusters"]
    found["clusters"] = [one for one in found["clusters"] if not _is(one, cluster["name"])]
    found["clusters"].append(cluster)
    if _named(found["users"], made["users"][0]["name"]) is None:
        found["users"].append(made["users"][0])
    if there is None:
        more = {"namespace": namespace} if namespace else {}
        found["contexts"].append({**context, "context": {**context["context"], **more}})
    if _named(found["contexts"], found.get("current-context")) is None:
        found["current-context"] = context["name"]
    return found


def add(made: Path, into: Path, namespace: str) -> bool:
    """Add the cluster to a file; whether anything was missing there.

    Raises:
        RefusedError: See `merged`.
        OSError: It cannot be read or written.
    """
    into = Path(os.path.realpath(into))
    theirs = _read(into) if into.exists() else {}
    found = merged(theirs, _read(made), namespace)
    if _sorted(found) == _sorted(theirs):
        return False
    into.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    opened, name = tempfile.mkstemp(prefix=".kubeconfig-", dir=into.parent)  # mode 0600
    try:
        with os.fdopen(opened, "w", encoding="utf-8") as file:
            yaml.safe_dump(found, file, sort_keys=False)
        Path(name).replace(into)
    except BaseException:
        Path(name).unlink()
        raise
    return True


def _read(path: Path) -> dict[str, Any]:
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise RefusedError(
            "it is not a kubeconfig: it is not valid YAML", code="no_kubeconfig"
        ) from error
    if found is not None and not isinstance(found, dict):
        raise RefusedError("it is not a kubeconfig", code="no_kubeconfig")
    return found or {}


def _is(entry: Any, name: Any) -> bool:
    return isinstance(entry, dict) and entry.get("name") == name


def _is_of(context: Mapping[str, Any], cluster: str) -> bool:
    told = context.get("context")
    return isinstance(told, dict) and told.get("cluster") == cluster


def _named(entries: list[Any], name: Any) -> dict[str, Any] | None:
    return next((one for one in entries if _is(one, name)), None)


def _sorted(config: Mapping[str, Any]) -> dict[str, Any]:
    """The same whatever the order of its clusters."""
    clusters = sorted(config.get("clusters") or [], key=str)
    return {**config, "clusters": clusters}


def main() -> int:
    """Add it, and say what was done in one line."""
    made, into, context, namespace = sys.argv[1:]
    path = Path(into) if into else Path.home() / ".kube" / "config"
    shown = str(path).replace(str(Path.home()), "~", 1)
    try:
        new = add(Path(made), path, namespace)
    except (HyperpodError, OSError) as error:
        words = error.strerror if isinstance(error, OSError) else str(error)
        sys.stdout.write(f"{shown} was not changed: {words}\n")
        return 1
    sys.stdout.write(f"{context} is a context of {shown}{'' if new else ' already'}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
