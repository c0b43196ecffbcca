"""One check of ``hpj doctor``."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from hyperpod_jlab.model.errors import HyperpodError

Level = Literal["ok", "warn", "fail"]


@dataclass(frozen=True)
class Check:
    """One check: what was looked at, how it is, and what to do if it is not well."""

    name: str
    level: Level
    message: str
    hint: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def of_error(name: str, error: HyperpodError, level: Level = "fail") -> Check:
    """The check that ended with an error."""
    return Check(name, level, error.message, error.hint)
