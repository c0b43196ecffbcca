"""An FSx for Lustre file system as AWS describes it. AWS' values are kept unchanged, including values newer than this package."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from hyperpod_jlab.core.wire import Wire, wire_property

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True)
class Association:
    """A link between a folder of a file system and an S3 prefix.

    Attributes:
        folder: The folder, such as ``/data``.
        repository: The S3 URL, such as ``s3://bucket/prefix``.
        state: Its state as AWS reports it.
        imports: Changes imported automatically from S3: ``NEW``, ``CHANGED``, ``DELETED``.
        exports: Changes exported automatically to S3.
        problem: Why it does not work.
    """

    folder: str
    repository: str
    state: str | None = None
    imports: tuple[str, ...] = ()
    exports: tuple[str, ...] = ()
    problem: str | None = None


@dataclass(frozen=True)
class FileSystem:
    """A file system.

    Attributes:
        name: Its id.
        state: Its state as AWS reports it, such as ``AVAILABLE``.
        mount_name: Its mount name.
        dns_name: The DNS name of its server.
        deployment: Its deployment type, such as ``PERSISTENT_2``.
        storage_type: ``SSD``, ``HDD`` or ``INTELLIGENT_TIERING``.
        capacity: Capacity in bytes.
        throughput: Its provisioned throughput as text; None if its type has a fixed one.
        version: Lustre version.
        maintenance: Its maintenance window, such as ``Monday 05:00 UTC``.
        root_squash: The ``UID:GID`` that a client's root is mapped to; None: root.
        problem: Why it does not work.
        associations: Its links to S3; None if they could not be read.
    """

    name: str
    state: str
    mount_name: str | None = None
    dns_name: str | None = None
    deployment: str | None = None
    storage_type: str | None = None
    capacity: int | None = None
    throughput: str | None = None
    version: str | None = None
    maintenance: str | None = None
    root_squash: str | None = None
    problem: str | None = None
    associations: tuple[Association, ...] | None = None


def format_maintenance(weekly: str | None) -> str | None:
    """Format AWS' weekly time ``d:HH:MM`` (1 is Monday, UTC); returns other forms unchanged."""
    day, _, time = (weekly or "").partition(":")
    if day.isdigit() and 1 <= int(day) <= 7 and time:
        return f"{_DAYS[int(day) - 1]} {time} UTC"
    return weekly


# --------------------------------------------------------------------------------------------------
# Where a file's bytes are on a Lustre file system that is linked to S3, and which transfers are
# possible: pure rules.
#
# Lustre keeps flags per file (HSM, hierarchical storage management), and the transfer in progress.

State = Literal["local", "exists", "archived", "dirty", "released", "lost", "exporting", "hydrating", "busy"]

STATE_MEANINGS: Final[dict[State, str]] = {
    "local": "on the file system only",
    "exists": "on the file system; the copy to S3 has started",
    "archived": "on the file system, with a copy in S3",
    "dirty": "changed since it was copied to S3",
    "released": "in S3 only; it is restored when it is read",
    "lost": "its copy in S3 is lost",
    "exporting": "being copied to S3",
    "hydrating": "being restored from S3",
    "busy": "another operation is in progress",
}
"""Descriptions of the states."""

Verb = Literal["hydrate", "release"]

_STATE_BY_ACTION: Final[dict[str, State]] = {"ARCHIVE": "exporting", "RESTORE": "hydrating"}
_EXISTS, _DIRTY, _RELEASED, _ARCHIVED = 0x1, 0x2, 0x4, 0x8
_NEVER_RELEASE, _NEVER_ARCHIVE, _LOST = 0x10, 0x20, 0x40
_STATE_BY_FLAG: Final[dict[int, State]] = {
    _LOST: "lost",
    _RELEASED: "released",
    _DIRTY: "dirty",
    _ARCHIVED: "archived",
    _EXISTS: "exists",
}
"""The first flag that is set decides."""


@dataclass(frozen=True)
class FileState(Wire):
    """The state of a file.

    Attributes:
        path: The file.
        flags: Lustre's flags (HS_EXISTS and so on, lustre_user.h).
        archive: Number of the archive with its copy; None without one.
        action: The transfer in progress, as Lustre names it, such as ``ARCHIVE``; None if there is none.
        progress: Its progress as Lustre reports it, such as ``running (1024 bytes moved)``.
    """

    path: str
    flags: int
    archive: int | None = None
    action: str | None = None
    progress: str | None = None

    @property
    @wire_property
    def state(self) -> State:
        if self.action is not None:
            return _STATE_BY_ACTION.get(self.action, "busy")
        for flag, state in _STATE_BY_FLAG.items():
            if self.flags & flag:
                return state
        return "local"

    @property
    @wire_property
    def never_release(self) -> bool:
        """Whether its bytes must never be released."""
        return bool(self.flags & _NEVER_RELEASE)

    @property
    @wire_property
    def never_archive(self) -> bool:
        """Whether it must never be exported."""
        return bool(self.flags & _NEVER_ARCHIVE)


@dataclass(frozen=True)
class FileDecision:
    """What to do with a file: `ask` Lustre, `nothing`, or `refused` with a reason."""

    outcome: Literal["ask", "nothing", "refused"]
    reason: str | None = None
    hint: str | None = None


_EXPORT_HINT = "export it first: aws fsx create-data-repository-task --type EXPORT_TO_REPOSITORY"

_RULES: Final[dict[Verb, tuple[tuple[int, int, FileDecision], ...]]] = {
    "hydrate": (
        (0, _RELEASED, FileDecision("nothing", "its data is on the file system")),
        (_LOST, 0, FileDecision("refused", STATE_MEANINGS["lost"], "look for it in the bucket")),
    ),
    "release": (
        (_RELEASED, 0, FileDecision("nothing", "it is released")),
        (*(0, _ARCHIVED), FileDecision("refused", "it has no copy in S3", _EXPORT_HINT)),
        (_DIRTY, 0, FileDecision("refused", STATE_MEANINGS["dirty"], _EXPORT_HINT)),
        (_LOST, 0, FileDecision("refused", STATE_MEANINGS["lost"], _EXPORT_HINT)),
        (*(_NEVER_RELEASE, 0), FileDecision("refused", "it is marked as never released", "lfs hsm_clear --norelease")),
    ),
}
"""What prevents a request to Lustre: flags that are set, flags that are not; the first matching rule decides."""


def decide(verb: Verb, file: FileState) -> FileDecision:
    """Whether to send the request to Lustre. Lustre would also refuse, but with an error number, and the same one for all files of a request."""
    if file.action is not None:
        meaning = STATE_MEANINGS[file.state]
        is_under_way = (verb, file.state) == ("hydrate", "hydrating")
        return FileDecision("nothing" if is_under_way else "refused", meaning, None if is_under_way else "wait for it")
    for with_flag, without_flag, decision in _RULES[verb]:
        if file.flags & with_flag == with_flag and not file.flags & without_flag:
            return decision
    return FileDecision("ask")
