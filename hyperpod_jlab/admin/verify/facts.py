"""The table of facts about AWS that cannot be checked without an account: docs/unverified.md is written from it, and ``hpj admin verify-aws`` goes through it."""

from __future__ import annotations

from collections.abc import Sequence

from hyperpod_jlab.admin.verify.cluster_facts import CLUSTER_FACTS
from hyperpod_jlab.admin.verify.fact import Fact
from hyperpod_jlab.admin.verify.studio_facts import STUDIO_FACTS
from hyperpod_jlab.model.errors import InvalidInputError, nearest_hint

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
                f"--only: there is no fact '{name[:60]}'",
                hint=nearest_hint(name, known) or "docs/unverified.md lists them",
                detail={"field": "only"},
            )
    return tuple(fact for fact in FACTS if not names or fact.name in names)
