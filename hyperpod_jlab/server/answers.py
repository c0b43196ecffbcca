"""Response types that several requests about runs share."""

from __future__ import annotations

from dataclasses import dataclass

from hyperpod_jlab.core.run import Run
from hyperpod_jlab.storage.owners import is_own


@dataclass(frozen=True, kw_only=True)
class OwnedRun(Run):
    """A run, or a child of an array; `own` says whether it belongs to the server's user."""

    own: bool


@dataclass(frozen=True)
class RenderedText:
    """The script or manifest for the scheduler."""

    name: str
    text: str


def to_owned_run(run: Run) -> OwnedRun:
    """A run as it is answered."""
    return OwnedRun(**vars(run), own=is_own(run))
