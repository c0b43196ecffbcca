"""The target of an action: a run's object, or any job of the table."""

from __future__ import annotations

import asyncio
import getpass
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hyperpod_jlab.core.errors import InvalidInputError, NotFoundError, UnsupportedError
from hyperpod_jlab.engines.kubernetes.api.client import KubeClient
from hyperpod_jlab.engines.kubernetes.kinds.choice import KINDS
from hyperpod_jlab.engines.kubernetes.kinds.kind import RUN_LABEL, Kind, find_labels, jobs_path
from hyperpod_jlab.engines.kubernetes.submit.create import is_same_user
from hyperpod_jlab.engines.kubernetes.submit.sent import read_sent
from hyperpod_jlab.storage.records import BundleReader

# --------------------------------------------------------------------------------------------------
# Job ids as one text: in tables and in commands.

_TEXT = re.compile(r"(?:(?:([a-z0-9-]{1,63})/)?([a-z0-9]{1,63})/)?([a-z0-9.-]{1,253})")


@dataclass(frozen=True, slots=True)
class JobId:
    """A job: ``name`` (a run's object), ``kind/name`` as in kubectl, or ``namespace/kind/name`` outside of the cluster's own namespace.

    Attributes:
        name: The object's name.
        kind: Its kind in lower case, such as ``pytorchjob``; None for that of our runs.
        namespace: Its namespace; None for that of the cluster's runs.
    """

    name: str
    kind: str | None = None
    namespace: str | None = None

    def __str__(self) -> str:
        return "/".join(part for part in (self.namespace, self.kind, self.name) if part)


def parse_job_id(text: str) -> JobId | None:
    """Parse a job id; None for an invalid one."""
    match = _TEXT.fullmatch(text.strip().lower())
    return JobId(match[3], match[2], match[1]) if match is not None else None


@dataclass(frozen=True)
class Target:
    """The object of an action.

    Attributes:
        kind: Its kind.
        namespace: Its namespace.
        name: Its name.
        job: The object from the API server.
    """

    kind: Kind
    namespace: str
    name: str
    job: Mapping[str, Any]

    @property
    def object_text(self) -> str:
        """The object's path."""
        return f"{jobs_path(self.kind, self.namespace)}/{self.name}"

    @property
    def uid(self) -> str:
        """The object's uid, which differs for another object of the same name."""
        return str(self.job["metadata"].get("uid", ""))

    def __str__(self) -> str:
        """As in kubectl."""
        return f"{self.kind.name.lower()}/{self.name}"


async def run_target(client: KubeClient, bundle: BundleReader) -> Target:
    """A run's object.

    Raises:
        NotFoundError: The object does not exist; a different object with its name does not count.
        DeniedError: The run is another user's.
    """
    await asyncio.to_thread(bundle.check_own, "act on")
    sent = await asyncio.to_thread(read_sent, bundle)
    job = await client.get(sent.object_path)
    is_own_run = find_labels(job).get(RUN_LABEL) == bundle.run_id
    if not is_own_run or not is_same_user(job, sent.document):
        raise NotFoundError(
            f"the {sent.kind.name} {sent.name} was replaced by another object",
            hint="submit the run again",
            detail={"run_id": bundle.run_id, "name": sent.name},
        )
    return Target(sent.kind, sent.namespace, sent.name, job)


async def find_target(client: KubeClient, text: str, namespace: str) -> Target:
    """The object of a text: ``name``, ``kind/name`` or ``namespace/kind/name``.

    Args:
        client: The cluster.
        text: The text.
        namespace: The namespace for a text that names none.

    Raises:
        InvalidInputError: The text is not a job id.
        UnsupportedError: Objects of its kind do not support actions.
        NotFoundError: The object does not exist.
        DeniedError: This user may not read it.
    """
    job_id = parse_job_id(_shorten(text))
    if job_id is None:
        raise InvalidInputError(
            f"'{text[:60]}' is not a valid name of a job",
            code="invalid_job",
            hint="use a name, or a kind and a name such as pytorchjob/train; list jobs with: hpj jobs",
            detail={"job": text[:60]},
        )
    namespace_name = job_id.namespace or namespace
    kinds = KINDS if job_id.kind is None else _called(job_id.kind)
    if not kinds:
        raise UnsupportedError(
            f"actions on objects of the kind {job_id.kind} are not supported",
            hint="supported kinds: " + ", ".join(sorted(kind.name.lower() for kind in KINDS)),
            detail={"job": text[:300]},
        )
    for kind in kinds:
        try:
            job = await client.get(f"{jobs_path(kind, namespace_name)}/{job_id.name}")
        except NotFoundError as error:
            if error.code == "no_namespace":
                raise
            continue
        return Target(kind, namespace_name, job_id.name, job)
    kind_text = "job" if job_id.kind is None else kinds[0].name
    raise NotFoundError(
        f"{kind_text} {job_id.name[:253]} not found in the namespace {namespace_name}",
        code="no_such_job",
        hint="list jobs with: hpj jobs",
        detail={"job": text[:300], "namespace": namespace_name},
    )


def _shorten(text: str) -> str:
    """Remove the group from ``pytorchjob.kubeflow.org/train``, as ``kubectl -o name`` writes it."""
    parts = text.strip().split("/")
    if len(parts) > 1:
        parts[-2] = parts[-2].partition(".")[0]
    return "/".join(parts)


def _called(name: str) -> tuple[Kind, ...]:
    return tuple(kind for kind in KINDS if name in {kind.name.lower(), kind.plural})


# --------------------------------------------------------------------------------------------------
# The user who submits from this machine, as objects name it.


def this_user() -> str:
    """This user's name, as `services.user` sets it on submitted objects."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's uid without an entry
        return f"uid-{os.getuid()}"
