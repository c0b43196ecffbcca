"""Kubernetes' quantities (``500m``, ``24581696Ki``, ``1e3``) as numbers of thousandths: exact, and quickly added."""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache
from typing import Any

_UNITS = {
    "n": Decimal(10) ** -9,
    "u": Decimal(10) ** -6,
    "m": Decimal(10) ** -3,
    "": Decimal(1),
    "k": Decimal(10) ** 3,
    "M": Decimal(10) ** 6,
    "G": Decimal(10) ** 9,
    "T": Decimal(10) ** 12,
    "P": Decimal(10) ** 15,
    "E": Decimal(10) ** 18,
    **{f"{letter}i": Decimal(1024) ** at for at, letter in enumerate("KMGTPE", start=1)},
}
"""Suffixes and factors (apimachinery, pkg/api/resource/quantity.go)."""

_QUANTITY = re.compile(
    r"([+-]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30}))(?:[eE]([+-]?\d{1,2})|([numkMGTPE]|[KMGTPE]i)?)"
)


@lru_cache(maxsize=4096)
def _parsed(text: str) -> int:
    found = _QUANTITY.fullmatch(text.strip())
    if found is None:
        return 0
    exponent = Decimal(10) ** int(found[2]) if found[2] else _UNITS[found[3] or ""]
    return int((Decimal(found[1]) * exponent * 1000).to_integral_value(rounding="ROUND_CEILING"))


def milli(value: Any) -> int:
    """Thousandths in a quantity, rounded up as Kubernetes does; 0 for what is none: it must not hide the object."""
    return _parsed(str(value))


def whole(thousandths: int) -> int:
    """Whole ones in so many thousandths."""
    return thousandths // 1000
