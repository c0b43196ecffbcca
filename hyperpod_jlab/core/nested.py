"""Nested data, such as specs and configuration files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def merge(base: Mapping[str, Any], override: Mapping[str, Any]) -> dict[str, Any]:
    """Merge nested data; `override` takes precedence. Lists are replaced, not joined."""
    merged = dict(base)
    for key, value in override.items():
        previous = merged.get(key)
        if isinstance(previous, Mapping) and isinstance(value, Mapping):
            merged[key] = merge(previous, value)
        else:
            merged[key] = value
    return merged
