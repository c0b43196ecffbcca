"""A user's own changes to a run's manifest, such as volumes, tolerations, annotations, variables and resources.

`template` is merged into each pod template, and `metadata` (labels and annotations) into the object. Objects are merged, lists of named
items by name (mounts by their path), and all else is replaced. A container without a name is the run's.
"""

from __future__ import annotations

import copy
import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from hyperpod_jlab.core.errors import RefusedError
from hyperpod_jlab.engines.kubernetes.kinds.kind import RUN_LABEL, Kind

_FIELDS = {(): {"metadata", "template"}, ("metadata",): {"labels", "annotations"}, ("template",): {"metadata", "spec"}}
_KEYS = ("mountPath", "name")
"""Keys that identify list items; the first one that all items have is used."""


def patched(document: Mapping[str, Any], patch: Mapping[str, Any], kind: Kind) -> dict[str, Any]:
    """The manifest with a patch applied.

    Raises:
        RefusedError: The patch changes what only an own manifest can, or has the wrong shape.
    """
    for path, fields in _FIELDS.items():
        part = _value_at(patch, *path)
        for name in sorted(part.keys() - fields) if isinstance(part, Mapping) else ():
            raise _patch_error(f"the patch changes {'.'.join((*path, name))}")
    named = copy.deepcopy(dict(patch))
    for container in _containers(named.get("template")):
        container.setdefault("name", kind.container)
    result = copy.deepcopy(dict(document))
    templates = list(find_templates(result))
    if "template" in named and not templates:
        raise _patch_error(f"the patch changes the pods of a {kind.name}, which has no template")
    if "metadata" in named:
        result["metadata"] = merged(result["metadata"], named["metadata"], "metadata")
    for template in templates if "template" in named else ():
        before = _run_parts(template, kind)
        template.update(merged(template, named["template"], "template"))
        if _run_parts(template, kind) != before:
            raise _patch_error(f"the patch changes the launcher of the run, or its label {RUN_LABEL}")
    if _value_at(result, *_LABEL) != _value_at(document, *_LABEL):
        raise _patch_error(f"the patch changes the label {RUN_LABEL} of the run")
    return result


def merged(target: Any, patch: Any, path: str) -> Any:
    """A value with a patch applied.

    Raises:
        RefusedError: The patch has another type than an object or a list at this path.
    """
    for shape, name in ((dict, "a table of fields"), (list, "a list")):
        if isinstance(target, shape) and not isinstance(patch, shape):
            raise _patch_error(f"{path} in the patch must be {name}")
    if isinstance(target, dict):
        changed = {name: merged(target.get(name), patch[name], f"{path}.{name}") for name in patch}
        return {**target, **changed}
    if not isinstance(target, list):
        return copy.deepcopy(patch)
    key = next((key for key in _KEYS if all(_has_key(item, key) for item in (*target, *patch))), "")
    if not key or not patch:
        return copy.deepcopy(patch)
    items = {item[key]: item for item in target}
    for item in patch:
        items[item[key]] = merged(items.get(item[key]), item, f"{path}[{item[key]}]")
    return list(items.values())


def _has_key(item: Any, key: str) -> bool:
    return isinstance(item, dict) and isinstance(item.get(key), str)


def find_templates(content: Any) -> Iterator[dict[str, Any]]:
    """All pod templates in an object, whatever its kind."""
    if isinstance(content, dict):
        for name, value in content.items():
            if name == "template" and isinstance(value, dict):
                yield value
            else:
                yield from find_templates(value)
    elif isinstance(content, list):
        for value in content:
            yield from find_templates(value)


_LABEL = ("metadata", "labels", RUN_LABEL)


def _run_parts(template: Mapping[str, Any], kind: Kind) -> list[Any]:
    """What makes a pod the run's: its label, and the command of its container."""
    commands = [
        (container.get("command"), container.get("args"))
        for container in _containers(template)
        if container.get("name") == kind.container
    ]
    return [_value_at(template, *_LABEL), *commands]


def _containers(template: Any) -> list[dict[str, Any]]:
    containers = _value_at(template, "spec", "containers")
    listed = containers if isinstance(containers, list) else []
    return [container for container in listed if isinstance(container, dict)]


def _value_at(content: Any, *path: str) -> Any:
    for name in path:
        content = content.get(name) if isinstance(content, Mapping) else None
    return content


def _patch_error(message: str) -> RefusedError:
    return RefusedError(
        message,
        code="bad_patch",
        hint="patch only template, metadata.labels and metadata.annotations; for all else submit your own manifest: hpj submit job.yaml",
        detail={"field": "kubernetes.patch"},
    )


def unified_difference(original: str, patched: str) -> str:
    """A patch's changes to a manifest's text: the removed and added lines with their line numbers."""
    lines = difflib.unified_diff(original.splitlines(), patched.splitlines(), lineterm="", n=2)
    return "\n".join(list(lines)[2:])
