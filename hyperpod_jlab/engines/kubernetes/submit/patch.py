"""A user's own patch of a manifest.

It works like a merge patch (RFC 7396: objects are merged, null removes, all else replaces), with
what a merge patch lacks: list items with a name, such as containers, volumes and variables, are
merged with those of the same name (mounts by their path), as kubectl does, and an item with
``$patch: delete`` is removed. Content under ``template``, a field that no kind has at that level,
applies to each pod template; a container without a name in it is the run's.
"""

from __future__ import annotations

import copy
import difflib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from hyperpod_jlab.core.errors import RefusedError
from hyperpod_jlab.engines.kubernetes.kinds.kind import RUN_LABEL, Kind

_DELETE = "$patch"
_KEYS = ("mountPath", "name")
"""Keys that identify list items; the first one that all items have is used."""


def patched(document: Mapping[str, Any], patch: Mapping[str, Any], kind: Kind) -> dict[str, Any]:
    """The manifest with a patch applied.

    Raises:
        RefusedError: The patch removes what the run needs, or has a template for a kind without
            one.
    """
    _check_shape(patch)
    if _value_at(patch, "spec", "elasticPolicy") is not None:
        raise _patch_error(
            "a run with our launcher has a fixed number of nodes, so elasticPolicy cannot be used",
            "submit an elastic job as your own manifest, with torchrun or hyperpodrun as its command: hpj submit job.yaml",
        )
    other_fields = {name: value for name, value in patch.items() if name != "template"}
    patched: dict[str, Any] = merged(document, other_fields)
    if "template" in patch:
        full_template = _default_container(patch["template"], kind.container)
        templates = list(find_templates(patched))
        if not templates or not isinstance(full_template, Mapping):
            raise _patch_error(
                f"template in a patch must be an object, and a {kind.name} must have one"
                if templates
                else f"a {kind.name} has no pod template to patch",
                "patch spec.podSpecOverrides instead",
            )
        for template in templates:
            new = merged(template, full_template)
            template.clear()
            template.update(new)
    _check(document, patched, kind)
    return patched


def _check_shape(patch: Mapping[str, Any]) -> None:
    """Check that the patch has objects and container lists where the manifest requires them.

    Raises:
        RefusedError: A value has the wrong type.
    """
    _check_table(patch, "spec", "spec")
    if isinstance(patch.get("template"), Mapping):
        _check_table(patch["template"], "metadata", "template.metadata")
    for template in find_templates(dict(patch)):
        _check_table(template, "spec", "template.spec")
        spec = template.get("spec") or {}
        for name in ("containers", "initContainers"):
            is_container_list = name == "containers"  # earlier items may be removed with null
            value = spec.get(name)
            if (
                name in spec
                and not isinstance(value, list)
                and (is_container_list or value is not None)
            ):
                raise _no_containers(f"template.spec.{name}", "a list of containers", name, value)
            for index, entry in enumerate(value or []):
                if not isinstance(entry, Mapping):
                    raise _no_containers(
                        f"template.spec.{name}[{index}]", "a container", name, entry
                    )


def _no_containers(path: str, expected: str, name: str, value: Any) -> RefusedError:
    return _patch_error(
        f"{path} in the patch must be {expected}, not {_shorten(value)}",
        f'write: "{name}": [{{"name": ..., ...}}]',
    )


def _check_table(patch: Mapping[str, Any], name: str, path: str) -> None:
    if name in patch and not isinstance(patch[name], Mapping):
        raise _patch_error(
            f"{path} in the patch must be a table of fields, not {_shorten(patch[name])}",
            f"leave {path} out of the patch, or give the fields that change",
        )


def _shorten(value: Any) -> str:
    return json.dumps(value, default=str)[:60]


def merged(target: Any, patch: Any) -> Any:
    """A value with a patch applied."""
    if not isinstance(patch, Mapping):
        return copy.deepcopy(patch)
    patched = copy.deepcopy(dict(target)) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            patched.pop(name, None)
        elif isinstance(value, list) and isinstance(patched.get(name), list):
            patched[name] = _merged_lists(patched[name], value)
        else:
            patched[name] = merged(patched.get(name), value)
    return patched


def _merged_lists(target: list[Any], patch: list[Any]) -> list[Any]:
    key = next(
        (key for key in _KEYS if all(_has_key(entry, key) for entry in [*target, *patch])),
        None,
    )
    if key is None or not patch:
        return copy.deepcopy(patch)
    patched = copy.deepcopy(target)
    for item in patch:
        index = next((i for i, entry in enumerate(patched) if entry[key] == item[key]), None)
        if item.get(_DELETE) == "delete":
            patched = [entry for entry in patched if entry[key] != item[key]]
        elif index is None:
            patched.append(copy.deepcopy(item))
        else:
            patched[index] = merged(patched[index], item)
    return patched


def _has_key(entry: Any, key: str) -> bool:
    return isinstance(entry, Mapping) and isinstance(entry.get(key), str)


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


def _default_container(template: Any, name: str) -> Any:
    patched = copy.deepcopy(template)
    spec = patched.get("spec") if isinstance(patched, dict) else None
    containers = spec.get("containers") if isinstance(spec, dict) else None
    for container in containers if isinstance(containers, list) else []:
        if isinstance(container, dict):
            container.setdefault("name", name)
    return patched


def _check(original: Mapping[str, Any], patched: Mapping[str, Any], kind: Kind) -> None:
    """Check that the parts that make the object the run's are unchanged.

    Raises:
        RefusedError: A part was changed.
    """
    for path in _REQUIRED_PATHS:
        if _value_at(original, *path) != _value_at(patched, *path):
            raise _patch_error(
                f"the patch changes fields that the run needs: {'.'.join(path)}",
                "remove it from the patch",
            )
    kept_templates = [*find_templates(dict(patched))]
    for number, original_template in enumerate(find_templates(dict(original))):
        new = kept_templates[number] if number < len(kept_templates) else {}
        if _value_at(original_template, *_LABEL) != _value_at(new, *_LABEL):
            raise _patch_error(
                f"the patch removes the label {RUN_LABEL} of the pods",
                "remove it from the patch",
            )
        if _launcher(original_template, kind) != _launcher(new, kind):
            raise _patch_error(
                f"the patch changes the command of the container {kind.container}, which is the run's launcher",
                "use --setup for commands that run before your code",
            )


_LABEL = ("metadata", "labels", RUN_LABEL)

_REQUIRED_PATHS = (
    ("apiVersion",),
    ("kind",),
    ("metadata", "name"),
    ("metadata", "namespace"),
    _LABEL,
    ("spec", "trainer", "command"),
    ("spec", "completions"),
)


def _value_at(content: Any, *path: str) -> Any:
    for name in path:
        content = content.get(name) if isinstance(content, Mapping) else None
    return content


def _launcher(template: Mapping[str, Any], kind: Kind) -> Any:
    containers = _value_at(template, "spec", "containers")
    for container in containers if isinstance(containers, list) else []:
        if _value_at(container, "name") == kind.container:
            return container.get("command"), container.get("args")
    return None


def _patch_error(message: str, hint: str) -> RefusedError:
    return RefusedError(message, code="bad_patch", hint=hint, detail={"field": "kubernetes.patch"})


def unified_difference(original: str, patched: str) -> str:
    """A patch's changes to a manifest's text: the removed and added lines with their line numbers."""
    lines = difflib.unified_diff(original.splitlines(), patched.splitlines(), lineterm="", n=2)
    return "\n".join(list(lines)[2:])
