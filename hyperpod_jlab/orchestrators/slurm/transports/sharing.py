"""Who takes which login node: each person another one, and always the same."""

from __future__ import annotations

import getpass
import hashlib
import os
from collections.abc import Sequence

from hyperpod_jlab.aws.studio import find_studio


def shared_out(hosts: Sequence[str], person: str) -> list[str]:
    """The hosts in the order for a person: they begin at one that follows from the name, and go round, so that the people of one that is down are not all on the same next one."""
    if not hosts:
        return []
    first = int.from_bytes(hashlib.sha256(person.encode()).digest()[:8], "big") % len(hosts)
    return [*hosts[first:], *hosts[:first]]


def person_here() -> str:
    """A name for who this is. In Studio all have the same user name on their machines, so there it is the space's."""
    studio = find_studio()
    if studio is not None and studio.space is not None:
        return f"{studio.domain_id}/{studio.space}"
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user number without a name
        return str(os.getuid())
