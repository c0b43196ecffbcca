"""Run ids: created by the client, sorted by time, and the key that makes a submit idempotent.

A run id is at the same time a folder, a Kubernetes label and an object's name, so it follows RFC 1123 with 40 characters at most.
A child of an array is named ``<run_id>.<index>``.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from datetime import UTC, datetime

from hyperpod_jlab.core.errors import InvalidInputError

RUN_ID = re.compile(r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?")
"""The pattern of a run id (for ``fullmatch``)."""

CHILD_ID = re.compile(rf"({RUN_ID.pattern})\.(0|[1-9][0-9]{{0,8}})")

RESERVED = frozenset({"last"})
"""Words that select a run on the command line, and so cannot be a run id."""

SHARDS = 64
"""Number of folders across which bundles are distributed."""


def new_run_id(now: datetime | None = None) -> str:
    """Create a run id such as ``20261121-120455-k3x9qd``: UTC seconds, then 30 random bits."""
    moment = (now or datetime.now(UTC)).astimezone(UTC)
    alphabet = "0123456789abcdefghjkmnpqrstvwxyz"
    tail = "".join(secrets.choice(alphabet) for _ in range(6))
    return f"{moment:%Y%m%d-%H%M%S}-{tail}"


def check_run_id(run_id: str) -> str:
    """Return `run_id` if it is valid.

    Raises:
        InvalidInputError: It is not.
    """
    if not RUN_ID.fullmatch(run_id):
        raise InvalidInputError(
            f"'{run_id[:60]}' is not a run id",
            code="invalid_run_id",
            hint="use 1 to 40 lower-case letters, digits and inner hyphens",
            detail={"field": "run_id"},
        )
    return run_id


def check_new_run_id(run_id: str) -> str:
    """Return `run_id` if a new run may have it.

    Raises:
        InvalidInputError: It is invalid, or a word that selects a run.
    """
    if run_id in RESERVED:
        raise InvalidInputError(
            f"'{run_id}' means the newest run and cannot be a run id",
            code="invalid_run_id",
            hint="use another id, or leave it out",
            detail={"field": "run_id"},
        )
    return check_run_id(run_id)


def split_run_id(run_id: str) -> tuple[str, int | None]:
    """Split a run id into the id of the bundle's run and the array index, or None for a run that is not a child.

    Raises:
        InvalidInputError: It is neither a run id nor a child's.
    """
    child = CHILD_ID.fullmatch(run_id)
    if child:
        return child.group(1), int(child.group(3))
    parent, slash, index = run_id.rpartition("/")
    if slash and CHILD_ID.fullmatch(f"{parent}.{index}"):
        raise InvalidInputError(
            f"'{run_id[:60]}' is not a run id",
            code="invalid_run_id",
            hint=f"a child of an array is {parent}.{index}",
            detail={"field": "run_id"},
        )
    return check_run_id(run_id), None


def shard_of(run_id: str) -> str:
    """The folder under ``runs/`` that holds a run's bundle: a function of the id alone."""
    parent, _ = split_run_id(run_id)
    return f"{hashlib.sha256(parent.encode()).digest()[0] % SHARDS:02x}"
