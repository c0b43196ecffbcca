"""Sends a run: what is wrong with it, its manifest, and the one object that is made of it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hyperpod_jlab.aws.clusters import find_instance_type
from hyperpod_jlab.core.config import PodStorage
from hyperpod_jlab.core.errors import (
    ConflictError,
    DeniedError,
    HyperpodError,
    NotFoundError,
    RefusedError,
    UnreachableError,
)
from hyperpod_jlab.core.finding import Finding
from hyperpod_jlab.core.instance_types import InstanceType, instance_type
from hyperpod_jlab.core.run_id import new_run_id
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.engines.kubernetes.api.client import KubeClient
from hyperpod_jlab.engines.kubernetes.api.rights import ClusterConnection
from hyperpod_jlab.engines.kubernetes.kinds import pytorch_job as auto_resume
from hyperpod_jlab.engines.kubernetes.kinds.choice import (
    KINDS,
    KindChoice,
    Offers,
    choose,
    discover,
    operator_version,
)
from hyperpod_jlab.engines.kubernetes.kinds.kind import RUN_LABEL, labels_of
from hyperpod_jlab.engines.kubernetes.kinds.pytorch_job import PyTorchJob
from hyperpod_jlab.engines.kubernetes.submit import preflight
from hyperpod_jlab.engines.kubernetes.submit.code import (
    DIGEST_ANNOTATION,
    PARTS_ANNOTATION,
    Archive,
    code_findings,
    config_maps,
    filled,
    has_place,
    pack,
    part_name,
    size_findings,
)
from hyperpod_jlab.engines.kubernetes.submit.companion_objects import (
    adopt,
    collection,
    companion_findings,
    make,
    take_back,
)
from hyperpod_jlab.engines.kubernetes.submit.create import (
    accompany,
    check_ours,
    create,
    is_same_user,
    replace_other,
)
from hyperpod_jlab.engines.kubernetes.submit.native import (
    image_findings,
    is_native,
    native_findings,
    render_native,
)
from hyperpod_jlab.engines.kubernetes.submit.preflight import dry_run, namespace_named_in, said
from hyperpod_jlab.engines.kubernetes.submit.render import (
    RenderContext,
    patched_manifest,
    render,
    with_key,
)
from hyperpod_jlab.engines.kubernetes.submit.resources import instance_findings
from hyperpod_jlab.engines.kubernetes.submit.sent import Sent, read_sent
from hyperpod_jlab.engines.launch import Seal
from hyperpod_jlab.engines.protocol import Rendered, RenderInput, SubmitResult
from hyperpod_jlab.storage.partition import PathMap
from hyperpod_jlab.storage.records import BundleReader

# --------------------------------------------------------------------------------------------------
# Gives the cluster a run's job, and the ConfigMaps that hold its code where that is too large for the job's own object.
#
# The job comes first: its pods wait for the volume, and the ConfigMaps go with the job that owns them. So whatever is broken off, a second submit of the same run
# finds the job by its name and makes what is missing.


async def deliver(
    client: KubeClient,
    path: str,
    document: Mapping[str, Any],
    bundle: BundleReader,
    companions: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Make a run's job, unless an earlier submit made it, and see that all of its code is there.

    Args:
        client: The cluster.
        path: Where jobs of its kind and namespace are.
        document: The manifest.
        bundle: The run.
        companions: Further objects that its pods need, which it is to own.

    Returns:
        The job as the API server has it.

    Raises:
        RefusedError: The code is too large, or the API server refuses the job; nothing is left of it.
        DeniedError: The user may not make the job or its ConfigMaps; nothing is left of it.
    """
    archive = await asyncio.to_thread(pack, bundle.folder) if has_place(document) else None
    sent = with_key(document if archive is None else filled(document, archive))
    place = f"{path}/{document['metadata']['name']}"
    job, ours = await create(client, path, sent)
    try:
        await accompany(client, job, companions)
        if archive is not None:
            await _carry(client, job, archive)
    except (DeniedError, RefusedError):
        if ours:  # its pods would wait for ever
            with contextlib.suppress(HyperpodError):
                await client.delete(place, propagationPolicy="Background")
        raise
    return job


async def is_whole(client: KubeClient, job: Mapping[str, Any]) -> bool:
    """Whether all ConfigMaps that a job waits for are there; those that this user may not read count as there."""
    metadata = job["metadata"]
    parts = int((metadata.get("annotations") or {}).get(PARTS_ANNOTATION, "0"))
    for number in range(parts):
        name = part_name(metadata["name"], number)
        try:
            await client.get(f"{_maps(metadata['namespace'])}/{name}")
        except NotFoundError:
            return False
        except DeniedError:
            continue
    return True


async def _carry(client: KubeClient, job: Mapping[str, Any], archive: Archive) -> None:
    path = _maps(job["metadata"]["namespace"])
    if not archive.parts:
        return
    said = (job["metadata"].get("annotations") or {}).get(DIGEST_ANNOTATION)
    if said != archive.digest:
        raise RefusedError(
            "the code of the run does not match its job",
            code="code_changed",
            hint="submit it again with a new run id",
            detail={"job": job["metadata"]["name"]},
        )
    for made in await asyncio.to_thread(config_maps, archive, job, RUN_LABEL):
        try:
            await client.post(path, made)
        except ConflictError:
            await replace_other(client, path, made, job)


def _maps(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


# --------------------------------------------------------------------------------------------------
# What the API server says of a user's own manifest before it is sent.


async def verdict(client: KubeClient, sent: Sent, configured: str) -> list[Finding]:
    """Its verdict on the manifest as it would be sent, and whether the names are free; nothing is made.

    Args:
        client: The cluster.
        sent: The manifest.
        configured: The cluster's configured namespace.

    Raises:
        UnreachableError: It does not answer.
    """
    objects = (*sent.companions, sent.document)
    if wrong := [found for one in objects for found in _by_itself(one)]:
        return wrong
    beside = [finding async for finding in companion_findings(client, sent)]
    if any(finding.level == "error" for finding in beside):
        return beside
    document = sent.document
    asked = auto_resume.is_asked_for(document) and sent.kind.name == PyTorchJob.name
    resumed = auto_resume.of_manifest(document, await operator_version(client)) if asked else ()
    try:
        with contextlib.suppress(NotFoundError, DeniedError):
            check_ours(await client.get(sent.place), document)
        paths = [await collection(client, one) for one in sent.companions]
        pairs = [*zip(paths, sent.companions, strict=True), (sent.path, document)]
        found = [*beside, *resumed, *await dry_run(client, sent.kind, pairs)]
        if sent.namespace == configured:
            return found
        return namespace_named_in(found, "metadata.namespace in the manifest", "source")
    except UnreachableError:
        raise
    except HyperpodError as error:
        return [said(error)]


def _by_itself(document: Mapping[str, Any]) -> list[Finding]:
    return [*image_findings(document, None), *size_findings(document, "source")]


_FRESH = 60.0
"""Seconds for which what the cluster offers counts: operators come and go seldom."""


class Sender:
    """Sends runs to one cluster.

    Args:
        connection: The cluster.
        storage: The partition as its pods see it; None: they do not.
        paths: The partition here and there.
    """

    def __init__(
        self, connection: ClusterConnection, storage: PodStorage | None, paths: PathMap
    ) -> None:
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
            message = "companion objects are possible only in your own manifest"
            field = "kubernetes.keep_companions"
            found.append(Finding(level="info", code="ignored", message=message, field=field))
        if self._storage is None:
            found += code_findings(spec)
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

    async def submit(self, bundle: BundleReader) -> SubmitResult:
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
        return SubmitResult(sent.name)

    async def take_back(self, bundle: BundleReader) -> None:
        """Remove what a submit that was broken off has made beside a job that is not there."""
        sent = await asyncio.to_thread(read_sent, bundle)
        await take_back(await self._connection.client(), sent)

    async def find(self, bundle: BundleReader) -> SubmitResult | None:
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
        return SubmitResult(sent.name) if whole else None

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
        known = await find_instance_type(name)
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

    def _choice(self, spec: JobSpec) -> KindChoice:
        _, offers = self._offers.get(self._namespace(spec), (0.0, Offers()))
        return choose(spec, offers, self._connection.config.runtime)

    def _place(self, spec: JobSpec) -> RenderContext:
        config, namespace = self._connection.config, self._namespace(spec)
        patches = (config.patch, spec.kubernetes.patch)
        return RenderContext(
            namespace=namespace,
            kind=self._choice(spec).kind,
            image=config.image,
            storage=self._storage,
            hyperpod=config.hyperpod is not None,
            instance=self.instance(spec),
            patches=tuple(patch for patch in patches if patch),
            operator=self._offers[namespace][1].operator if namespace in self._offers else None,
        )
