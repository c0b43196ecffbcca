"""Whether an object on the cluster says what a manifest says. The API server adds defaults, and writes quantities in its own way. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hyperpod_jlab.orchestrators.kubernetes.tables.quantity import milli

_PASSED_OVER = frozenset({"metadata", "status"})


def difference(document: Mapping[str, Any], found: Mapping[str, Any]) -> str | None:
    """The first place where an object differs from a manifest, such as ``spec.ports[0].port``; None where it says the same.

    Args:
        document: The manifest.
        found: The object, as the API server has it.
    """
    for name, value in document.items():
        if name not in _PASSED_OVER and (place := _differs(value, found.get(name), name)):
            return place
    return None


def _differs(wanted: Any, found: Any, place: str) -> str | None:
    if wanted is None or (wanted in ({}, [], "") and found is None):
        return None
    if isinstance(wanted, dict) and isinstance(found, dict):
        inner = (_differs(one, found.get(name), f"{place}.{name}") for name, one in wanted.items())
        return next((one for one in inner if one), None)
    if isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        pairs = enumerate(zip(wanted, found, strict=True))
        inner = (_differs(one, there, f"{place}[{at}]") for at, (one, there) in pairs)
        return next((one for one in inner if one), None)
    return None if _is_same(wanted, found) else place


def _is_same(wanted: Any, found: Any) -> bool:
    if wanted == found or str(wanted) == str(found):
        return True
    plain = not isinstance(wanted, dict | list | bool) and found is not None
    return plain and milli(wanted) != 0 and milli(wanted) == milli(found)
