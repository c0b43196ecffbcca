"""Variables that a template's user has not filled in yet: ``replicas: $NUM_NODES``. Kubernetes takes them for what they are, texts. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hyperpod_jlab.orchestrators.kubernetes.kinds.registry import kind_of
from hyperpod_jlab.orchestrators.kubernetes.sending.companions import wrong

_VARIABLE = re.compile(r"\$(?:\{[A-Za-z_][A-Za-z0-9_]*\}|[A-Za-z_][A-Za-z0-9_]*)|\{\{.*\}\}")
_FREE = frozenset({"command", "args", "env", "annotations", "data", "stringData", "binaryData"})
"""Fields with text of the user's own: a shell may fill in its variables."""
_SHOWN = 4


def check_filled(objects: Sequence[Mapping[str, Any]], file: str) -> None:
    """Look whether all variables of a template are filled in where Kubernetes needs a value.

    Args:
        objects: The file's objects; of other kinds than jobs and Kubernetes' own nothing is known.
        file: Its name, for the error.

    Raises:
        InvalidInputError: Some are not.
    """
    places: dict[str, str] = {}
    for one in filter(_is_known, objects):
        for place, text in _unset(one, ""):
            places.setdefault(text, place)
    if places:
        found = [f"{place.removeprefix('.')}: {text}" for text, place in places.items()]
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        raise wrong(
            f"{file} has variables that are not filled in: {', '.join(found[:_SHOWN])}{more}",
            f"fill them in first: envsubst < {file} > filled-in.yaml, and send that file",
        )


def _is_known(document: Mapping[str, Any]) -> bool:
    group = str(document.get("apiVersion")).rpartition("/")[0]
    own = "." not in group or group.endswith(".k8s.io")
    return own or kind_of(document) is not None


def _unset(value: Any, place: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        if _VARIABLE.search(value):
            yield place, value[:60]
    elif isinstance(value, dict):
        for name, one in value.items():
            if name not in _FREE:
                yield from _unset(one, f"{place}.{name}")
    elif isinstance(value, list):
        for at, one in enumerate(value):
            yield from _unset(one, f"{place}[{at}]")
