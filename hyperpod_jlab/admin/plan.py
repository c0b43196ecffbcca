"""What is to be done: steps, each with what was there before and what is there after it, and what stands in its way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hyperpod_jlab.admin.entries import Entry
from hyperpod_jlab.admin.there import Folder, Holder, Mode
from hyperpod_jlab.model.finding import Finding

__all__ = ["Mode"]

StepState = Literal["done", "to do", "waits", "blocked"]
"""``waits``: it can be done once something has passed by itself or by somebody else; ``blocked``: somebody has to decide."""

NOT_KNOWN = "not known"
"""What is said to be before a step where nobody could look."""

NOBODY = 0
"""In place of the number of the cluster's user. Root, whose number it is, needs no leave."""

MOST_UID = 0xFFFFFFFE
"""The greatest number of a user; the next one means none."""

NOT_MOUNTED = "not mounted"
"""What is said where a list has no folder of the file system."""

Topic = Literal["data", "isolation", "restarts", "new profiles"]


@dataclass(frozen=True)
class Statement:
    """What a plan means for people, a sentence or two.

    Attributes:
        topic: What it is about: where files are, what keeps others out of them, what has to be started anew, what profiles to come will have.
        text: The sentences.
    """

    topic: Topic
    text: str

    def to_dict(self) -> dict[str, str]:
        """Plain data for JSON."""
        return {"topic": self.topic, "text": self.text}


@dataclass(frozen=True)
class Wanted:
    """What the admin wants.

    Attributes:
        mode: One partition for all, or one for each user profile; None: nothing of ours (`destroy`).
        shared_path: The folder that all have in mode ``shared``.
        profiles: Only these profiles, and nothing of the domain's own; they keep the mode when the domain's changes. None: all that have no mode
            of their own, and those to come.
        take_over: Also change what somebody else has set.
        cluster_user: The user number of the cluster's jobs, which is let into the folders; `NOBODY`: nobody but their owners is; None: whoever is
            let in already.
        folders_are_there: Whether all folders are there already, so that nobody has to look. Studio starts no application whose folder is missing.
        without_data: Of mode None: whether the folders that were given are deleted, with all that is in them. Until then their marks stay.
    """

    mode: Mode | None
    shared_path: str = "/shared"
    profiles: frozenset[str] | None = None
    take_over: bool = False
    cluster_user: int | None = None
    folders_are_there: bool = False
    without_data: bool = False

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

    @property
    def can_be_done(self) -> bool:
        """Whether an apply does it."""
        return self.state == "to do"

    @property
    def is_drift(self) -> bool:
        """Whether it is not as it is to be; not what nobody could look at."""
        return self.state != "done" and self.before != NOT_KNOWN

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
class DeletionStep(Step):
    """Delete a folder of the file system with all that is in it, once nobody mounts it.

    Attributes:
        path: The folder.
        owner: The user number that it belongs to.
    """

    path: str
    owner: int


@dataclass(frozen=True, kw_only=True)
class EntryStep(Step):
    """Write a list of custom file systems.

    Attributes:
        holder: Whose list it is.
        entries: The whole list as it is to be.
        mark: The mark that is to be left there; None: none.
        own_mode: The mode that a profile is to keep when the domain's changes; None: none.
        at_work: Whether it waits for SageMaker alone, which an apply waits for.
    """

    holder: Holder
    entries: tuple[Entry, ...]
    mark: str | None
    own_mode: Mode | None = None
    at_work: bool = False

    @property
    def takes_away(self) -> bool:
        """Whether a folder is mounted by the list before it, and none after it."""
        return self.after == NOT_MOUNTED != self.before

    @property
    def can_be_done(self) -> bool:
        """Whether an apply does it."""
        return super().can_be_done or (self.state == "waits" and self.at_work)


@dataclass(frozen=True, kw_only=True)
class ClaimStep(Step):
    """Bring an apply to its end that was broken off: what it left is looked for everywhere, and its mark on the domain is taken away."""


@dataclass(frozen=True)
class Plan:
    """All steps in their order, what is to be said of the whole, and what it means. A finding of level ``error`` refuses all of it.

    Folders to be deleted are no steps: that is done once all steps are, and looked at again before (`admin.deletion`).
    """

    wanted: Wanted
    steps: tuple[Step, ...]
    findings: tuple[Finding, ...] = ()
    statements: tuple[Statement, ...] = ()
    deletions: tuple[DeletionStep, ...] = ()

    @property
    def drift(self) -> Sequence[Step]:
        """What is not as it is to be; not what nobody could look at."""
        return [step for step in self.steps if step.is_drift]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "mode": self.wanted.mode,
            "steps": [step.to_dict() for step in self.steps],
            "findings": [finding.model_dump() for finding in self.findings],
            "statements": [statement.to_dict() for statement in self.statements],
            "deletions": [step.to_dict() for step in self.deletions],
        }
