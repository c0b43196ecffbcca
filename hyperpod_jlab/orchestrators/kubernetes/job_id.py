"""Jobs of a cluster by one text: what tables show, and what commands take."""

from __future__ import annotations

import re
from dataclasses import dataclass

_TEXT = re.compile(r"(?:(?:([a-z0-9-]{1,63})/)?([a-z0-9]{1,63})/)?([a-z0-9.-]{1,253})")


@dataclass(frozen=True, slots=True)
class JobId:
    """A job: ``name`` (a run's object), ``kind/name`` as kubectl takes it, or ``namespace/kind/name`` outside of the cluster's own namespace.

    Attributes:
        name: The object's name.
        kind: Its kind in lower case, such as ``pytorchjob``; None: that of our runs.
        namespace: Its namespace; None: that of the cluster's runs.
    """

    name: str
    kind: str | None = None
    namespace: str | None = None

    def __str__(self) -> str:
        """The text."""
        return "/".join(part for part in (self.namespace, self.kind, self.name) if part)


def parse_job_id(text: str) -> JobId | None:
    """The job that a text names, or None for what names none."""
    found = _TEXT.fullmatch(text.strip().lower())
    return JobId(found[3], found[2], found[1]) if found is not None else None
