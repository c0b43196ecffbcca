"""A run's name for people, taken from its source when the spec gives none."""

from __future__ import annotations

import re
import unicodedata

_LONGEST = 63


def run_name(given: str | None, proposed: str) -> str:
    """The given name, or the proposed one with what a name may not hold taken out."""
    if given:
        return given
    plain = unicodedata.normalize("NFKD", proposed).encode("ascii", "ignore").decode()
    name = re.sub(r"[^A-Za-z0-9._ -]+", "-", plain).lstrip("._ -")[:_LONGEST].rstrip("._ -")
    return name or "run"
