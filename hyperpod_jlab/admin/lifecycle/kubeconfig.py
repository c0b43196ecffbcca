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


def merge(existing: Mapping[str, Any], added: Mapping[str, Any], namespace: str) -> dict[str, Any]:
    """Their kubeconfig with the cluster.

    Args:
        existing: What stands in it; nothing, where there is none.
        added: A kubeconfig of one cluster, user and context.
        namespace: The namespace of a new context; empty: Kubernetes' own default.

    Raises:
        RefusedError: They have a context of the same name for another cluster, or it is no kubeconfig.
    """
    merged_config: dict[str, Any] = copy.deepcopy(dict(existing)) or {"apiVersion": "v1", "kind": "Config"}
    (context,) = added["contexts"]
    for plural, _ in KINDS:
        if not isinstance(merged_config.setdefault(plural, []) or [], list):
            raise RefusedError(f"it is not a kubeconfig: {plural} must be a list", code="no_kubeconfig")
        merged_config[plural] = [*(merged_config[plural] or [])]
    current = _find_entry(merged_config["contexts"], context["name"])
    if current is not None and not _is_for_cluster(current, context["context"]["cluster"]):
        raise RefusedError(f"the context {context['name']} is for another cluster", code="foreign")
    # Its address and authority are AWS' to say; how they log in and where their context points is theirs.
    (cluster,) = added["clusters"]
    merged_config["clusters"] = [entry for entry in merged_config["clusters"] if not _has_name(entry, cluster["name"])]
    merged_config["clusters"].append(cluster)
    if _find_entry(merged_config["users"], added["users"][0]["name"]) is None:
        merged_config["users"].append(added["users"][0])
    if current is None:
        namespace_entry = {"namespace": namespace} if namespace else {}
        merged_config["contexts"].append({**context, "context": {**context["context"], **namespace_entry}})
    if _find_entry(merged_config["contexts"], merged_config.get("current-context")) is None:
        merged_config["current-context"] = context["name"]
    return merged_config


def add(source: Path, target_file: Path, namespace: str) -> bool:
    """Add the cluster to a file; whether anything was missing there.

    Raises:
        RefusedError: See `merge`.
        OSError: It cannot be read or written.
    """
    target_file = Path(os.path.realpath(target_file))
    existing = _read(target_file) if target_file.exists() else {}
    new_config = merge(existing, _read(source), namespace)
    if _sorted(new_config) == _sorted(existing):
        return False
    target_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=".kubeconfig-", dir=target_file.parent)  # mode 0600
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            yaml.safe_dump(new_config, file, sort_keys=False)
        Path(name).replace(target_file)
    except BaseException:
        Path(name).unlink()
        raise
    return True


def _read(path: Path) -> dict[str, Any]:
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise RefusedError("it is not a kubeconfig: it is not valid YAML", code="no_kubeconfig") from error
    if data is not None and not isinstance(data, dict):
        raise RefusedError("it is not a kubeconfig", code="no_kubeconfig")
    return data or {}


def _has_name(entry: Any, name: Any) -> bool:
    return isinstance(entry, dict) and entry.get("name") == name


def _is_for_cluster(context: Mapping[str, Any], cluster: str) -> bool:
    context_data = context.get("context")
    return isinstance(context_data, dict) and context_data.get("cluster") == cluster


def _find_entry(entries: list[Any], name: Any) -> dict[str, Any] | None:
    return next((entry for entry in entries if _has_name(entry, name)), None)


def _sorted(config: Mapping[str, Any]) -> dict[str, Any]:
    """The same whatever the order of its clusters."""
    clusters = sorted(config.get("clusters") or [], key=str)
    return {**config, "clusters": clusters}


def main() -> int:
    """Add it, and say what was done in one line."""
    source, target_file, context, namespace = sys.argv[1:]
    path = Path(target_file) if target_file else Path.home() / ".kube" / "config"
    display_path = str(path).replace(str(Path.home()), "~", 1)
    try:
        has_changed = add(Path(source), path, namespace)
    except (HyperpodError, OSError) as error:
        problem = error.strerror if isinstance(error, OSError) else str(error)
        sys.stdout.write(f"{display_path} was not changed: {problem}\n")
        return 1
    sys.stdout.write(f"{context} is a context of {display_path}{'' if has_changed else ' already'}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
