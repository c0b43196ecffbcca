"""Going through the table of facts on an account."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hyperpod_jlab.admin.verify.checks import CLUSTER_FACTS, READ_CHECKS, STUDIO_FACTS, pass_role
from hyperpod_jlab.admin.verify.models import CheckContext, Fact, FactFinding, FactOutcome, unknown
from hyperpod_jlab.admin.verify.write_checks import WRITE_CHECKS, WriteContext
from hyperpod_jlab.core.errors import HyperpodError, InvalidInputError, nearest_hint

Findings = dict[str, FactFinding]
"""What was found, by the facts' names."""

_FIRST = "update-domain-without-pass-role"
"""The fact of which something can be said without writing, but no verdict."""


async def read_only(
    facts: Sequence[Fact], ground: CheckContext, told: Callable[[str], None]
) -> Findings:
    """What can be found without changing anything.

    Args:
        facts: The facts.
        ground: AWS.
        told: Called with what is looked at.
    """
    found: Findings = {}
    for fact in facts:
        check = pass_role if fact.name == _FIRST else READ_CHECKS.get(fact.name)
        if check is not None:
            told(f"checking {fact.name}")
            try:
                found[fact.name] = await check(ground)
            except HyperpodError as error:
                found[fact.name] = unknown(words_of(error))
    return found


async def tried(
    facts: Sequence[Fact], trial: WriteContext, told: Callable[[str], None]
) -> Findings:
    """What is found in a temporary domain that was made.

    Args:
        facts: The facts.
        trial: What there is to try it with.
        told: Called with what is looked at.
    """
    wanted = {fact.name for fact in facts}
    found: Findings = {}
    for name, check in WRITE_CHECKS.items():
        if name in wanted:
            told(f"checking {name}")
            try:
                found[name] = await check(trial)
            except HyperpodError as error:
                found[name] = unknown(words_of(error))
    return found


def outcomes(facts: Sequence[Fact], found: Findings) -> list[FactOutcome]:
    """What became of each fact."""
    return [FactOutcome(fact, found.get(fact.name) or _left(fact)) for fact in facts]


def _left(fact: Fact) -> FactFinding:
    if fact.how == "by hand":
        return unknown(f"no API shows it; check by hand: {fact.check}")
    return unknown("needs --write")


def words_of(error: HyperpodError) -> str:
    """An error as the reason why something was not checked."""
    return f"{error.message} ({error.hint})" if error.hint else error.message


# --------------------------------------------------------------------------------------------------
# The table of facts about AWS that cannot be checked without an account: docs/unverified.md is written from it, and ``hpj admin verify-aws`` goes through it.

FACTS: tuple[Fact, ...] = (*STUDIO_FACTS, *CLUSTER_FACTS)
"""All facts, the most important first."""


def chosen(names: Sequence[str]) -> tuple[Fact, ...]:
    """Facts by their names, in the table's order; all where none is named.

    Raises:
        InvalidInputError: There is no fact of a name.
    """
    known = [fact.name for fact in FACTS]
    for name in names:
        if name not in known:
            raise InvalidInputError(
                f"--only: unknown fact '{name[:60]}'",
                hint=nearest_hint(name, known) or "docs/unverified.md lists them",
                detail={"field": "only"},
            )
    return tuple(fact for fact in FACTS if not names or fact.name in names)
