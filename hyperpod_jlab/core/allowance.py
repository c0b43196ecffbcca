"""What a team may use of a cluster, as its scheduler limits it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

AllowanceOwner = Literal["account", "user", "qos"]


@dataclass(frozen=True)
class Allowance:
    """A limit of the hours of one resource, and how much of it is used.

    Attributes:
        owner: Whose limit it is: an account's, this user's own in an account, or a QoS's.
        name: The name of the account or QoS.
        resource: ``gpu``, ``node``, ``cpu`` or ``billing``; with a type ``gpu:h100``.
        limit: The limit in hours of the resource, such as GPU-hours.
        used: What counts against it now, in the same unit.
    """

    owner: AllowanceOwner
    name: str
    resource: str
    limit: float
    used: float
