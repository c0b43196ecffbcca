"""Check the table of facts on an account."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hyperpod_jlab.admin.verify.checks import (
    CLUSTER_FACTS,
    READ_CHECKS,
    STUDIO_FACTS,
    check_pass_role,
)
from hyperpod_jlab.admin.verify.models import CheckContext, Fact, FactFinding, FactOutcome, unknown
from hyperpod_jlab.admin.verify.write_checks import WRITE_CHECKS, WriteContext
from hyperpod_jlab.core.errors import HyperpodError, InvalidInputError, nearest_hint

Findings = dict[str, FactFinding]
"""Findings, by the facts' names."""

_FIRST = "update-domain-without-pass-role"
"""The fact that read-only checks can comment on, but not decide."""


async def run_read_checks(
    facts: Sequence[Fact], ground: CheckContext, on_step: Callable[[str], None]
) -> Findings:
    """Run the read-only checks.

    Args:
        facts: The facts.
        ground: The context.
        on_step: Called with each step.
    """
    findings: Findings = {}
    for fact in facts:
        check = check_pass_role if fact.name == _FIRST else READ_CHECKS.get(fact.name)
        if check is not None:
            on_step(f"checking {fact.name}")
            try:
                findings[fact.name] = await check(ground)
            except HyperpodError as error:
                findings[fact.name] = unknown(error_text(error))
    return findings


async def run_write_checks(
    facts: Sequence[Fact], trial: WriteContext, on_step: Callable[[str], None]
) -> Findings:
    """Run the checks in a temporary domain.

    Args:
        facts: The facts.
        trial: The context of the temporary domain.
        on_step: Called with each step.
    """
    names = {fact.name for fact in facts}
    findings: Findings = {}
    for name, check in WRITE_CHECKS.items():
        if name in names:
            on_step(f"checking {name}")
            try:
                findings[name] = await check(trial)
            except HyperpodError as error:
                findings[name] = unknown(error_text(error))
    return findings


def outcomes(facts: Sequence[Fact], findings: Findings) -> list[FactOutcome]:
    """The facts with their results."""
    return [FactOutcome(fact, findings.get(fact.name) or _skipped_finding(fact)) for fact in facts]


def _skipped_finding(fact: Fact) -> FactFinding:
    if fact.how == "by hand":
        return unknown(f"no API shows it; check by hand: {fact.check}")
    return unknown("needs --write")


def error_text(error: HyperpodError) -> str:
    """An error as the reason of an inconclusive check."""
    return f"{error.message} ({error.hint})" if error.hint else error.message


# --------------------------------------------------------------------------------------------------
# The table of facts about AWS that need an account to check: generates docs/unverified.md, and is
# checked by ``hpj admin verify-aws``.

FACTS: tuple[Fact, ...] = (*STUDIO_FACTS, *CLUSTER_FACTS)
"""All facts, the most important first."""


def select_facts(names: Sequence[str]) -> tuple[Fact, ...]:
    """Facts by their names, in the table's order; all if none is named.

    Raises:
        InvalidInputError: A name is unknown.
    """
    known_names = [fact.name for fact in FACTS]
    for name in names:
        if name not in known_names:
            raise InvalidInputError(
                f"--only: unknown fact '{name[:60]}'",
                hint=nearest_hint(name, known_names) or "docs/unverified.md lists them",
                detail={"field": "only"},
            )
    return tuple(fact for fact in FACTS if not names or fact.name in names)
