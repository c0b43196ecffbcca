"""A file system of FSx for Lustre as AWS knows it. AWS' words are kept as they came, also ones that are newer than this package."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from hyperpod_jlab.core.wire import Wire, wire_property

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True)
class Association:
    """A link between a folder of a file system and a place in S3.

    Attributes:
        folder: The folder, such as ``/data``.
        repository: The place, such as ``s3://bucket/prefix``.
        state: AWS' word for its state.
        imports: What comes from S3 by itself: ``NEW``, ``CHANGED``, ``DELETED``.
        exports: What goes to S3 by itself.
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
        state: AWS' word for its state, such as ``AVAILABLE``.
        mount_name: Its mount name.
        dns_name: Name of its server.
        deployment: Its type, such as ``PERSISTENT_2``.
        storage_type: ``SSD``, ``HDD`` or ``INTELLIGENT_TIERING``.
        capacity: Bytes.
        throughput: Its provisioned throughput in words; None where its type has a fixed one.
        version: Version of Lustre.
        maintenance: When it is maintained, such as ``Monday 05:00 UTC``.
        root_squash: As whom root of a client is taken, ``UID:GID``; None: as root.
        problem: Why it does not work.
        associations: Its links to S3; None where they could not be had.
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
    """AWS' time of the week, ``d:HH:MM`` with 1 for Monday in UTC, in words; one of another form as it came."""
    day, _, time = (weekly or "").partition(":")
    if day.isdigit() and 1 <= int(day) <= 7 and time:
        return f"{_DAYS[int(day) - 1]} {time} UTC"
    return weekly


# --------------------------------------------------------------------------------------------------
# Where the bytes of a file are on a Lustre file system that is linked to S3, and what can be done about it: pure rules.
#
# Lustre keeps flags for each file (its HSM, hierarchical storage management), and what is under way.

State = Literal[
    "local", "exists", "archived", "dirty", "released", "lost", "exporting", "hydrating", "busy"
]

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
"""What the states mean."""

Verb = Literal["hydrate", "release", "export"]

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
"""The first one that is set counts."""


@dataclass(frozen=True)
class FileState(Wire):
    """The state of a file.

    Attributes:
        path: The file.
        flags: Lustre's flags (HS_EXISTS and so on, lustre_user.h).
        archive: Number of the archive with its copy; None without one.
        action: What is under way, in Lustre's word, such as ``ARCHIVE``; None when nothing is.
        progress: How far that is, in Lustre's words, such as ``running (1024 bytes moved)``.
    """

    path: str
    flags: int
    archive: int | None = None
    action: str | None = None
    progress: str | None = None

    @property
    @wire_property
    def state(self) -> State:
        """The state in one word."""
        if self.action is not None:
            return _STATE_BY_ACTION.get(self.action, "busy")
        for flag, state in _STATE_BY_FLAG.items():
            if self.flags & flag:
                return state
        return "local"

    @property
    @wire_property
    def never_release(self) -> bool:
        """Whether its bytes are never to be released."""
        return bool(self.flags & _NEVER_RELEASE)

    @property
    @wire_property
    def never_archive(self) -> bool:
        """Whether it is never to be exported."""
        return bool(self.flags & _NEVER_ARCHIVE)


@dataclass(frozen=True)
class FileDecision:
    """Whether something is to be done to a file: `ask` Lustre, or there is `nothing` to do, or it is `refused`, for a reason."""

    outcome: Literal["ask", "nothing", "refused"]
    reason: str | None = None
    hint: str | None = None


_EXPORT_AGAIN_HINT = "export it again first: hpj storage export"

_RULES: Final[dict[Verb, tuple[tuple[int, int, FileDecision], ...]]] = {
    "hydrate": (
        (0, _RELEASED, FileDecision("nothing", "its data is on the file system")),
        (_LOST, 0, FileDecision("refused", STATE_MEANINGS["lost"], "look for it in the bucket")),
    ),
    "release": (
        (_RELEASED, 0, FileDecision("nothing", "it is released")),
        (
            *(0, _ARCHIVED),
            FileDecision("refused", "it has no copy in S3", "export it first: hpj storage export"),
        ),
        (_DIRTY, 0, FileDecision("refused", STATE_MEANINGS["dirty"], _EXPORT_AGAIN_HINT)),
        (_LOST, 0, FileDecision("refused", STATE_MEANINGS["lost"], _EXPORT_AGAIN_HINT)),
        (
            *(_NEVER_RELEASE, 0),
            FileDecision("refused", "it is marked as never released", "lfs hsm_clear --norelease"),
        ),
    ),
    "export": (
        (_RELEASED, 0, FileDecision("nothing", "its copy in S3 is current")),
        (_ARCHIVED, _DIRTY | _LOST, FileDecision("nothing", "its copy in S3 is current")),
        (
            *(_NEVER_ARCHIVE, 0),
            FileDecision("refused", "it is marked as never exported", "lfs hsm_clear --noarchive"),
        ),
    ),
}
"""What keeps Lustre from being asked: a flag that is set, flags that are not; the first rule that fits a file counts."""


def decide(verb: Verb, file: FileState) -> FileDecision:
    """Whether Lustre is to be asked for it. It would refuse too, but with a number for a reason, and all files of a request with the one."""
    if file.action is not None:
        meaning = STATE_MEANINGS[file.state]
        is_under_way = (verb, file.state) in {("hydrate", "hydrating"), ("export", "exporting")}
        return FileDecision(
            "nothing" if is_under_way else "refused",
            meaning,
            None if is_under_way else "wait for it",
        )
    for with_flag, without_flag, decision in _RULES[verb]:
        if file.flags & with_flag == with_flag and not file.flags & without_flag:
            return decision
    return FileDecision("ask")
