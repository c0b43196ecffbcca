"""A user's own patch on a manifest.

Like a merge patch (RFC 7396: objects are merged, null removes, all else replaces), with what one would otherwise miss: items of a list that have a name, such as
containers, volumes and variables, are merged with those of the same name (mounts by their path), as kubectl does; an item with ``$patch: delete`` is taken away. What
stands under ``template``, which no kind has there, is for each pod's template; a container without a name in it is the run's.
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
"""What tells items of a list apart, the first that all of them have."""


def patched(document: Mapping[str, Any], patch: Mapping[str, Any], kind: Kind) -> dict[str, Any]:
    """The manifest with a patch.

    Raises:
        RefusedError: The patch takes away what the run needs, or has a template for a kind without one.
    """
    _check_shape(patch)
    if _at(patch, "spec", "elasticPolicy") is not None:
        raise _refused(
            "a run with our launcher has a fixed number of nodes, so elasticPolicy cannot be used",
            "submit an elastic job as your own manifest, with torchrun or hyperpodrun as its command: hpj submit job.yaml",
        )
    rest = {name: value for name, value in patch.items() if name != "template"}
    made: dict[str, Any] = merged(document, rest)
    if "template" in patch:
        whole = _with_container(patch["template"], kind.container)
        found = list(templates(made))
        if not found or not isinstance(whole, Mapping):
            raise _refused(
                f"template in a patch must be an object, and a {kind.name} must have one"
                if found
                else f"a {kind.name} has no pod template to patch",
                "patch spec.podSpecOverrides instead",
            )
        for template in found:
            new = merged(template, whole)
            template.clear()
            template.update(new)
    _check(document, made, kind)
    return made


def _check_shape(patch: Mapping[str, Any]) -> None:
    """What a patch says where everything else of the object stands must be of the kind that belongs there.

    Raises:
        RefusedError: It is not.
    """
    _check_table(patch, "spec", "spec")
    if isinstance(patch.get("template"), Mapping):
        _check_table(patch["template"], "metadata", "template.metadata")
    for template in templates(dict(patch)):
        _check_table(template, "spec", "template.spec")
        spec = template.get("spec") or {}
        for name in ("containers", "initContainers"):
            of_all = name == "containers"  # those before it may be taken away with null
            value = spec.get(name)
            if name in spec and not isinstance(value, list) and (of_all or value is not None):
                raise _no_containers(f"template.spec.{name}", "a list of containers", name, value)
            for at, one in enumerate(value or []):
                if not isinstance(one, Mapping):
                    raise _no_containers(f"template.spec.{name}[{at}]", "a container", name, one)


def _no_containers(path: str, wanted: str, name: str, value: Any) -> RefusedError:
    return _refused(
        f"{path} in the patch must be {wanted}, not {_shown(value)}",
        f'write: "{name}": [{{"name": ..., ...}}]',
    )


def _check_table(patch: Mapping[str, Any], name: str, path: str) -> None:
    if name in patch and not isinstance(patch[name], Mapping):
        raise _refused(
            f"{path} in the patch must be a table of fields, not {_shown(patch[name])}",
            f"leave {path} out of the patch, or give the fields that change",
        )


def _shown(value: Any) -> str:
    return json.dumps(value, default=str)[:60]


def merged(target: Any, patch: Any) -> Any:
    """A value with a patch on it."""
    if not isinstance(patch, Mapping):
        return copy.deepcopy(patch)
    made = copy.deepcopy(dict(target)) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            made.pop(name, None)
        elif isinstance(value, list) and isinstance(made.get(name), list):
            made[name] = _merged_lists(made[name], value)
        else:
            made[name] = merged(made.get(name), value)
    return made


def _merged_lists(target: list[Any], patch: list[Any]) -> list[Any]:
    key = next(
        (key for key in _KEYS if all(_has(one, key) for one in [*target, *patch])),
        None,
    )
    if key is None or not patch:
        return copy.deepcopy(patch)
    made = copy.deepcopy(target)
    for item in patch:
        at = next((i for i, one in enumerate(made) if one[key] == item[key]), None)
        if item.get(_DELETE) == "delete":
            made = [one for one in made if one[key] != item[key]]
        elif at is None:
            made.append(copy.deepcopy(item))
        else:
            made[at] = merged(made[at], item)
    return made


def _has(one: Any, key: str) -> bool:
    return isinstance(one, Mapping) and isinstance(one.get(key), str)


def templates(found: Any) -> Iterator[dict[str, Any]]:
    """All pods' templates in an object, whatever its kind."""
    if isinstance(found, dict):
        for name, value in found.items():
            if name == "template" and isinstance(value, dict):
                yield value
            else:
                yield from templates(value)
    elif isinstance(found, list):
        for value in found:
            yield from templates(value)


def _with_container(template: Any, name: str) -> Any:
    made = copy.deepcopy(template)
    spec = made.get("spec") if isinstance(made, dict) else None
    containers = spec.get("containers") if isinstance(spec, dict) else None
    for container in containers if isinstance(containers, list) else []:
        if isinstance(container, dict):
            container.setdefault("name", name)
    return made


def _check(before: Mapping[str, Any], after: Mapping[str, Any], kind: Kind) -> None:
    """What makes the object the run's must have stayed.

    Raises:
        RefusedError: It has not.
    """
    for path in _NEEDED:
        if _at(before, *path) != _at(after, *path):
            raise _refused(
                f"the patch changes fields that the run needs: {'.'.join(path)}",
                "remove it from the patch",
            )
    kept = [*templates(dict(after))]
    for number, old in enumerate(templates(dict(before))):
        new = kept[number] if number < len(kept) else {}
        if _at(old, *_LABEL) != _at(new, *_LABEL):
            raise _refused(
                f"the patch removes the label {RUN_LABEL} of the pods",
                "remove it from the patch",
            )
        if _launcher(old, kind) != _launcher(new, kind):
            raise _refused(
                f"the patch changes the command of the container {kind.container}, which is the run's launcher",
                "use --setup for commands that run before your code",
            )


_LABEL = ("metadata", "labels", RUN_LABEL)

_NEEDED = (
    ("apiVersion",),
    ("kind",),
    ("metadata", "name"),
    ("metadata", "namespace"),
    _LABEL,
    ("spec", "trainer", "command"),
    ("spec", "completions"),
)


def _at(found: Any, *path: str) -> Any:
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def _launcher(template: Mapping[str, Any], kind: Kind) -> Any:
    containers = _at(template, "spec", "containers")
    for one in containers if isinstance(containers, list) else []:
        if _at(one, "name") == kind.container:
            return one.get("command"), one.get("args")
    return None


def _refused(message: str, hint: str) -> RefusedError:
    return RefusedError(message, code="bad_patch", hint=hint, detail={"field": "kubernetes.patch"})


def difference(before: str, after: str) -> str:
    """What a patch changed in a manifest's text: the lines that went and came, with where they stand."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=2)
    return "\n".join(list(lines)[2:])
