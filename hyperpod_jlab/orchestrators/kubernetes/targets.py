"""The object that something is done to: a run's, or any job of the table's."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hyperpod_jlab.model.errors import (
    InvalidInputError,
    NotFoundError,
    UnsupportedError,
)
from hyperpod_jlab.orchestrators.kubernetes.api.client import KubeClient
from hyperpod_jlab.orchestrators.kubernetes.job_id import parse_job_id
from hyperpod_jlab.orchestrators.kubernetes.kinds.kind import Kind, jobs_path, labels_of
from hyperpod_jlab.orchestrators.kubernetes.kinds.names import RUN_LABEL
from hyperpod_jlab.orchestrators.kubernetes.kinds.registry import KINDS
from hyperpod_jlab.orchestrators.kubernetes.sending.adopted import adopted_uid
from hyperpod_jlab.orchestrators.kubernetes.sending.creation import is_same_user
from hyperpod_jlab.orchestrators.kubernetes.sending.sent import read_sent
from hyperpod_jlab.storage.records import BundleReader


@dataclass(frozen=True)
class Target:
    """An object.

    Attributes:
        kind: Its kind.
        namespace: Its namespace.
        name: Its name.
        job: It, as the API server gave it.
    """

    kind: Kind
    namespace: str
    name: str
    job: Mapping[str, Any]

    @property
    def place(self) -> str:
        """Where it is."""
        return f"{jobs_path(self.kind, self.namespace)}/{self.name}"

    @property
    def uid(self) -> str:
        """Its own id; another object of the same name has another."""
        return str(self.job["metadata"].get("uid", ""))

    def __str__(self) -> str:
        """As kubectl takes it."""
        return f"{self.kind.name.lower()}/{self.name}"


async def target_of(client: KubeClient, bundle: BundleReader) -> Target:
    """A run's object.

    Raises:
        NotFoundError: It is not there; another's that has got its name meanwhile is none of the run's.
        DeniedError: The run is another user's.
    """
    await asyncio.to_thread(bundle.check_own, "act on")
    sent = await asyncio.to_thread(read_sent, bundle)
    uid = await asyncio.to_thread(adopted_uid, bundle)
    job = await client.get(sent.place)
    if uid is None:
        ours = labels_of(job).get(RUN_LABEL) == bundle.run_id
        same = ours and is_same_user(job, sent.document)
    else:
        same = job["metadata"].get("uid") == uid
    if not same:
        raise NotFoundError(
            f"the {sent.kind.name} {sent.name} is another one now",
            detail={"run_id": bundle.run_id, "name": sent.name},
        )
    return Target(sent.kind, sent.namespace, sent.name, job)


async def named(client: KubeClient, text: str, namespace: str) -> Target:
    """The object that a text names: ``name``, ``kind/name`` or ``namespace/kind/name``.

    Args:
        client: The cluster.
        text: The text.
        namespace: The namespace of texts that name none.

    Raises:
        InvalidInputError: It names nothing.
        UnsupportedError: Objects of its kind cannot be acted on.
        NotFoundError: There is no such object.
        DeniedError: This user may not see it.
    """
    found = parse_job_id(_short(text))
    if found is None:
        raise InvalidInputError(
            f"'{text[:60]}' is no job's name",
            code="invalid_job",
            hint="it is a name, or a kind and a name such as pytorchjob/train; see: hpj jobs",
            detail={"job": text[:60]},
        )
    where = found.namespace or namespace
    kinds = KINDS if found.kind is None else _called(found.kind)
    if not kinds:
        raise UnsupportedError(
            f"nothing can be done from here to objects of the kind {found.kind}",
            hint="kinds that can be acted on: "
            + ", ".join(sorted(kind.name.lower() for kind in KINDS)),
            detail={"job": text[:300]},
        )
    for kind in kinds:
        try:
            job = await client.get(f"{jobs_path(kind, where)}/{found.name}")
        except NotFoundError as error:
            if error.code == "no_namespace":
                raise
            continue
        return Target(kind, where, found.name, job)
    what = "job" if found.kind is None else kinds[0].name
    raise NotFoundError(
        f"the namespace {where} has no {what} {found.name[:253]}",
        code="no_such_job",
        hint="see: hpj jobs",
        detail={"job": text[:300], "namespace": where},
    )


def _short(text: str) -> str:
    """``pytorchjob.kubeflow.org/train``, as ``kubectl -o name`` writes it, without the group."""
    parts = text.strip().split("/")
    if len(parts) > 1:
        parts[-2] = parts[-2].partition(".")[0]
    return "/".join(parts)


def _called(name: str) -> tuple[Kind, ...]:
    return tuple(kind for kind in KINDS if name in {kind.name.lower(), kind.plural})
