"""Looking at the jobs of all kinds, as far as this user's rights go."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from hyperpod_jlab.model.errors import NotFoundError
from hyperpod_jlab.orchestrators.kubernetes.kinds.kind import Kind as RunKind
from hyperpod_jlab.orchestrators.kubernetes.kinds.registry import KINDS
from hyperpod_jlab.orchestrators.kubernetes.tables.jobs import REDUCERS, JobFacts
from hyperpod_jlab.orchestrators.kubernetes.tables.looks import (
    Kind,
    Looks,
    Seen,
    denied,
    hidden_note,
)

_AWAY_FOR = 120.0
"""Seconds for which a kind that the cluster does not have is not asked for again."""


@dataclass(frozen=True)
class JobsSeen:
    """The jobs that may be seen, and what is hidden, a sentence each."""

    jobs: tuple[JobFacts, ...]
    notes: tuple[str, ...]


class JobLook:
    """Looks at jobs."""

    def __init__(self, looks: Looks) -> None:
        self._looks = looks
        self._away: dict[str, float] = {}

    async def look(self) -> JobsSeen:
        """The jobs of all kinds that the cluster has.

        Raises:
            DeniedError: None of them may be seen.
            UnreachableError: The API server does not answer.
        """
        found = await asyncio.gather(*(self._of(kind) for kind in KINDS))
        seen = [(kind, one) for kind, one in zip(KINDS, found, strict=True) if one is not None]
        jobs = [job for _, one in seen for job in one.rows or ()]
        nothing = [one for _, one in seen if one.rows is None]
        if seen and len(nothing) == len(seen):
            raise denied(_listed(seen[0][0]), self._looks.namespace, "the jobs")
        return JobsSeen(tuple(jobs), tuple(_notes(seen)))

    async def _of(self, kind: RunKind) -> Seen[JobFacts] | None:
        """The jobs of a kind; None when the cluster does not have it."""
        if time.monotonic() - self._away.get(kind.name, float("-inf")) < _AWAY_FOR:
            return None
        try:
            return await self._looks.everywhere(_listed(kind), REDUCERS[kind.name])
        except NotFoundError:
            self._away[kind.name] = time.monotonic()
            return None


def _listed(kind: RunKind) -> Kind:
    return Kind(f"{kind.group}/{kind.version}", kind.plural)


def _notes(seen: list[tuple[RunKind, Seen[JobFacts]]]) -> list[str]:
    """What is hidden: kinds of which nothing is seen, and those of which only the own namespace is, together."""
    notes = [
        hidden_note(f"{kind.name}s", str(one.hidden)) for kind, one in seen if one.rows is None
    ]
    partly = [one.hidden for _, one in seen if one.rows is not None and one.hidden is not None]
    if partly:
        rights = " and to ".join(str(one) for one in partly)
        notes.append(hidden_note("jobs in other namespaces", rights))
    return notes
