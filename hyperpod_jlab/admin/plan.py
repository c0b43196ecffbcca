"""What is to be done: steps, each with what was there before and what is there after it, and what stands in its way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hyperpod_jlab.admin.entries import Entry
from hyperpod_jlab.admin.there import Folder, Holder
from hyperpod_jlab.model.finding import Finding

Mode = Literal["shared", "per-user"]

StepState = Literal["done", "to do", "waits", "blocked"]
"""``waits``: it can be done once something has passed by itself or by somebody else; ``blocked``: somebody has to decide."""


@dataclass(frozen=True)
class Wanted:
    """What the admin wants.

    Attributes:
        mode: One partition for all, or one for each user profile; None: nothing of ours (`destroy`).
        shared_path: The folder that all have in mode ``shared``.
        profiles: Only these profiles, and nothing of the domain's own; None: all, and those to come.
        take_over: Also change what somebody else has set.
        cluster_user: The user number of the cluster's jobs, which is let into the folders; None: nobody but their owners.
    """

    mode: Mode | None
    shared_path: str = "/shared"
    profiles: frozenset[str] | None = None
    take_over: bool = False
    cluster_user: int | None = None

    def concerns(self, profile: str) -> bool:
        """Whether it is about a profile."""
        return self.profiles is None or profile in self.profiles


@dataclass(frozen=True)
class Step:
    """One thing that is to be there.

    Attributes:
        target: What it is done to, such as ``profile alice``.
        state: Whether it is done already, and whether it can be.
        before: What is there, in words.
        after: What is to be there, in words.
        reason: Why it waits or is blocked.
        restarts: Applications that see it only once they are started anew.
    """

    target: str
    state: StepState
    before: str
    after: str
    reason: str | None = None
    restarts: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "target": self.target,
            "state": self.state,
            "before": self.before,
            "after": self.after,
            "reason": self.reason,
            "restarts": list(self.restarts),
        }


@dataclass(frozen=True, kw_only=True)
class GroupStep(Step):
    """Put a security group on a network interface of the file system, or take it off.

    Attributes:
        interface: The interface.
        group: The group.
        groups: All groups that it is to have then.
    """

    interface: str
    group: str
    groups: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class FolderStep(Step):
    """Make a folder of the file system.

    Attributes:
        path: The folder.
        folder: Owner, mode and access lists that it is to have.
    """

    path: str
    folder: Folder

    @property
    def private(self) -> bool:
        """Whether it is for its owner alone, and whom a list names."""
        return not self.folder.mode & 0o077


@dataclass(frozen=True, kw_only=True)
class EntryStep(Step):
    """Write a list of custom file systems.

    Attributes:
        holder: Whose list it is.
        entries: The whole list as it is to be.
        mark: The mark that is to be left there; None: none.
    """

    holder: Holder
    entries: tuple[Entry, ...]
    mark: str | None


@dataclass(frozen=True)
class Plan:
    """All steps in their order, and what is to be said of the whole. A finding of level ``error`` refuses all of it."""

    wanted: Wanted
    steps: tuple[Step, ...]
    findings: tuple[Finding, ...] = ()

    @property
    def drift(self) -> Sequence[Step]:
        """What is not as it is to be."""
        return [step for step in self.steps if step.state != "done"]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "mode": self.wanted.mode,
            "steps": [step.to_dict() for step in self.steps],
            "findings": [finding.model_dump() for finding in self.findings],
        }
