"""Findings of preflight or capture on a spec before it is submitted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pydantic import BaseModel, ConfigDict

from hyperpod_jlab.core.errors import RefusedError

Level = Literal["error", "warning", "info"]


class Fix(BaseModel):
    """A change of the spec that resolves a finding. The command line names the option in the hint; a form shows a button.

    Attributes:
        label: The button's text, such as ``Use 4 nodes``.
        set: Spec fields by path, such as ``resources.nodes``, with their new values; None clears a field.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    label: str
    set: dict[str, str | int | None]


class Finding(BaseModel):
    """One thing found in a spec, a notebook or a cluster.

    A finding of level ``error`` refuses the run; the others only inform.

    Attributes:
        message: What is wrong: one sentence.
        hint: What to do about it on the command line.
        field: The spec field that it is about, by path.
        fixes: Changes of the spec that resolve it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    level: Level
    code: str
    message: str
    hint: str | None = None
    field: str | None = None
    fixes: tuple[Fix, ...] = ()


def unused_gpus(place: str, models: Iterable[str], most: int) -> Finding:
    """The warning that a run requests no GPU although every node where it may run has some: it would train on the CPUs of a GPU node.

    Args:
        place: The nodes, such as ``nodes of the queue dev``.
        models: Their GPU models.
        most: The GPUs of the largest node.
    """
    names = "/".join(sorted(models)).upper()
    return Finding(
        level="warning",
        code="unused_gpus",
        message=f"{place} have {names} GPUs, but the run requests none".replace("  ", " "),
        hint=f"request them with --gpus-per-node, at most {most}",
        field="resources.gpus_per_node",
        fixes=gpu_fixes(most),
    )


def gpu_fixes(most: int) -> tuple[Fix, ...]:
    """Use one GPU on each node, or all that a node has."""
    return tuple(
        Fix(label="Use 1 GPU" if count == 1 else f"Use {count} GPUs", set={"resources.gpus_per_node": count})
        for count in sorted({1, most})
    )


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
        detail={"field": first.field, "findings": [finding.model_dump() for finding in errors]},
    )
