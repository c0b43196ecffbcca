"""A file system of FSx for Lustre as AWS knows it. AWS' words are kept as they came, also ones that are newer than this package."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

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

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def maintenance_words(weekly: str | None) -> str | None:
    """AWS' time of the week, ``d:HH:MM`` with 1 for Monday in UTC, in words; one of another form as it came."""
    day, _, time = (weekly or "").partition(":")
    if day.isdigit() and 1 <= int(day) <= 7 and time:
        return f"{_DAYS[int(day) - 1]} {time} UTC"
    return weekly
