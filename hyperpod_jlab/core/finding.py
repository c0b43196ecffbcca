"""Findings of preflight or capture on a spec before it is submitted."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from hyperpod_jlab.core.errors import RefusedError

Level = Literal["error", "warning", "info"]


class Finding(BaseModel):
    """One thing found in a spec, a notebook or a cluster.

    A finding of level ``error`` refuses the run; the others only inform.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    level: Level
    code: str
    message: str
    hint: str | None = None
    field: str | None = None


def raise_on_error(findings: list[Finding]) -> None:
    """Raise for the first finding of level ``error``.

    Raises:
        RefusedError: With the finding's own code, message and hint, and all errors in ``detail.findings``.
    """
    errors = [finding for finding in findings if finding.level == "error"]
    if not errors:
        return
    first = errors[0]
    raise RefusedError(
        first.message,
        code=first.code,
        hint=first.hint,
        detail={
            "field": first.field,
            "findings": [finding.model_dump() for finding in errors],
        },
    )
