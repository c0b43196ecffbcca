"""Sends a run: what is wrong with it, its manifest, and the one object that is made of it."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import Any

from hyperpod_jlab.aws.instance_types import asked_type
from hyperpod_jlab.model.config import PodStorage
from hyperpod_jlab.model.errors import (
    DeniedError,
    HyperpodError,
    NotFoundError,
    RefusedError,
    UnreachableError,
)
from hyperpod_jlab.model.finding import Finding
from hyperpod_jlab.model.instance_types import InstanceType, instance_type
from hyperpod_jlab.model.run_id import new_run_id
from hyperpod_jlab.model.spec import JobSpec
from hyperpod_jlab.orchestrators.kubernetes.api.connection import Connection
from hyperpod_jlab.orchestrators.kubernetes.kinds.choice import Choice, Offers, choose
from hyperpod_jlab.orchestrators.kubernetes.kinds.discovery import discover
from hyperpod_jlab.orchestrators.kubernetes.kinds.kind import labels_of
from hyperpod_jlab.orchestrators.kubernetes.kinds.names import RUN_LABEL
from hyperpod_jlab.orchestrators.kubernetes.kinds.registry import KINDS
from hyperpod_jlab.orchestrators.kubernetes.sending import preflight
from hyperpod_jlab.orchestrators.kubernetes.sending.code import findings
from hyperpod_jlab.orchestrators.kubernetes.sending.companion_objects import (
    adopt,
    make,
    take_back,
)
from hyperpod_jlab.orchestrators.kubernetes.sending.creation import is_same_user
from hyperpod_jlab.orchestrators.kubernetes.sending.delivery import deliver, is_whole
from hyperpod_jlab.orchestrators.kubernetes.sending.image_name import image_findings
from hyperpod_jlab.orchestrators.kubernetes.sending.native import (
    is_native,
    native_findings,
    render_native,
)
from hyperpod_jlab.orchestrators.kubernetes.sending.native_verdict import verdict
from hyperpod_jlab.orchestrators.kubernetes.sending.render import (
    Place,
    patched_manifest,
    render,
)
from hyperpod_jlab.orchestrators.kubernetes.sending.resources import instance_findings
from hyperpod_jlab.orchestrators.kubernetes.sending.sent import Sent, read_sent
from hyperpod_jlab.orchestrators.protocol import Rendered, RenderInput, Taken
from hyperpod_jlab.orchestrators.seal import Seal
from hyperpod_jlab.storage.records import BundleReader
from hyperpod_jlab.storage.translation import PathMap

_FRESH = 60.0
"""Seconds for which what the cluster offers counts: operators come and go seldom."""


class Sender:
    """Sends runs to one cluster.

    Args:
        connection: The cluster.
        storage: The partition as its pods see it; None: they do not.
        paths: The partition here and there.
    """

    def __init__(self, connection: Connection, storage: PodStorage | None, paths: PathMap) -> None:
        self._connection = connection
        self._storage = storage
        self._paths = paths
        self._offers: dict[str, tuple[float, Offers]] = {}
        self._instances: dict[str, InstanceType] = {}

    def render(self, given: RenderInput) -> Rendered:
        """The manifest, of the kind that the cluster offered when it was asked last.

        Raises:
            RefusedError: It cannot be made of this spec on this cluster.
        """
        if given.native is not None:
            return render_native(given, given.native, self._namespace(given.spec))
        return render(given, self._place(given.spec))

    async def preflight(self, spec: JobSpec, python: str | None) -> list[Finding]:
        """What the cluster has to say about a spec.

        Raises:
            UnreachableError: It does not answer.
        """
        found = [*preflight.unsupported(spec)]
        if spec.source.kind == "native":
            return [*found, *native_findings(spec)]
        if spec.kubernetes.keep_companions:
            message = "only in a manifest of your own something stands beside the job"
            field = "kubernetes.keep_companions"
            found.append(Finding(level="info", code="ignored", message=message, field=field))
        if self._storage is None:
            found += findings(spec)
        found += instance_findings(spec, await self._ask_instance(spec))
        client = await self._connection.client()
        await self._ask_offers(self._namespace(spec))
        seal = Seal.current()
        given = RenderInput(
            new_run_id(), "run", spec, "bundle", self._paths, python, seal, user="user"
        )
        try:
            found += preflight.chosen(self._choice(spec))
            place = self._place(spec)
            found += preflight.changed(given, place)
            found += preflight.resumption(given, place)
            found += image_findings(patched_manifest(given, place), "environment.image")
            if not any(finding.level == "error" for finding in found):
                found += await preflight.asked(client, given, place)
        except UnreachableError:
            raise
        except HyperpodError as error:
            found.append(preflight.said(error))
        return found

    async def verdict(self, sent: Sent) -> list[Finding]:
        """What the cluster says of a user's own manifest, without making anything.

        Raises:
            UnreachableError: It does not answer.
        """
        return await verdict(await self._connection.client(), sent, self._connection.namespace)

    async def submit(self, bundle: BundleReader) -> Taken:
        """Make the job, after what stands beside it. Its name is the run's, so a second one is the same; of a user's own manifest its label is."""
        await asyncio.to_thread(bundle.check_own, "submit")
        sent = await asyncio.to_thread(read_sent, bundle)
        client = await self._connection.client()
        owned = await self._owned(bundle, sent)
        await make(client, sent)
        try:
            job = await deliver(client, sent.path, sent.document, bundle, owned)
        except UnreachableError:
            raise  # it may be there
        except HyperpodError:
            await take_back(client, sent)
            raise
        await adopt(client, sent, job)
        return Taken(sent.name)

    async def take_back(self, bundle: BundleReader) -> None:
        """Remove what a submit that was broken off has made beside a job that is not there."""
        sent = await asyncio.to_thread(read_sent, bundle)
        await take_back(await self._connection.client(), sent)

    async def find(self, bundle: BundleReader) -> Taken | None:
        """The run's job, when it is there with all that its pods wait for."""
        sent = await asyncio.to_thread(read_sent, bundle)
        client = await self._connection.client()
        try:
            job = await client.get(sent.place)
            for owned in await self._owned(bundle, sent):
                name = owned["metadata"]["name"]
                await client.get(f"/api/v1/namespaces/{sent.namespace}/services/{name}")
        except NotFoundError:
            return None
        ours = labels_of(job).get(RUN_LABEL) == bundle.run_id and is_same_user(job, sent.document)
        whole = ours and await is_whole(client, job)
        return Taken(sent.name) if whole else None

    async def _owned(self, bundle: BundleReader, sent: Sent) -> list[dict[str, Any]]:
        if await asyncio.to_thread(is_native, bundle):
            return []
        return sent.kind.companions(sent.document)

    def _namespace(self, spec: JobSpec) -> str:
        return spec.kubernetes.namespace or self._connection.namespace

    async def _ask_instance(self, spec: JobSpec) -> InstanceType | HyperpodError | None:
        """What is known of the spec's instance type: of a cluster of AWS, EC2 is asked."""
        name, config = spec.resources.instance_type, self._connection.config
        if name is None or (config.eks is None and config.hyperpod is None):
            return instance_type(name)
        known = await asked_type(name)
        if isinstance(known, InstanceType):
            self._instances[name] = known
        return known

    def instance(self, spec: JobSpec) -> InstanceType | None:
        """What is known of the spec's instance type, as EC2 said when it was asked last, else as the table has it."""
        name = spec.resources.instance_type
        return self._instances.get(name or "") or instance_type(name)

    async def _ask_offers(self, namespace: str) -> None:
        seen = self._offers.get(namespace)
        if seen is not None and time.monotonic() - seen[0] <= _FRESH:
            return
        offers = await discover(await self._connection.client(), namespace)
        denied = await self._denied(namespace, offers.kinds or frozenset())
        self._offers[namespace] = (time.monotonic(), replace(offers, denied=denied))

    async def _denied(self, namespace: str, offered: frozenset[str]) -> frozenset[str]:
        """Those kinds that this user may not make in a namespace, as far as the cluster says beforehand."""
        rights = await self._connection.rights()
        kinds = [kind for kind in KINDS if kind.name in offered]
        try:
            may = [await rights.may("create", kind.group, kind.plural, namespace) for kind in kinds]
        except (DeniedError, NotFoundError, RefusedError):
            return frozenset()
        return frozenset(kind.name for kind, yes in zip(kinds, may, strict=True) if not yes)

    def _choice(self, spec: JobSpec) -> Choice:
        _, offers = self._offers.get(self._namespace(spec), (0.0, Offers()))
        return choose(spec, offers, self._connection.config.runtime)

    def _place(self, spec: JobSpec) -> Place:
        config, namespace = self._connection.config, self._namespace(spec)
        patches = (config.patch, spec.kubernetes.patch)
        return Place(
            namespace=namespace,
            kind=self._choice(spec).kind,
            image=config.image,
            storage=self._storage,
            hyperpod=config.hyperpod is not None,
            instance=self.instance(spec),
            patches=tuple(patch for patch in patches if patch),
            operator=self._offers[namespace][1].operator if namespace in self._offers else None,
        )
