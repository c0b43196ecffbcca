"""Submits a run: preflight, manifest, and the object created from it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hyperpod_jlab.aws.clusters import find_instance_type
from hyperpod_jlab.core.config import PodStorage
from hyperpod_jlab.core.errors import DeniedError, HyperpodError, NotFoundError, RefusedError, UnreachableError
from hyperpod_jlab.core.finding import Finding
from hyperpod_jlab.core.instance_types import InstanceType, instance_type
from hyperpod_jlab.core.run_id import new_run_id
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.engines.kubernetes.api.client import KubeClient
from hyperpod_jlab.engines.kubernetes.api.rights import ClusterConnection
from hyperpod_jlab.engines.kubernetes.kinds.choice import KINDS, InstalledKinds, KindChoice, choose, discover
from hyperpod_jlab.engines.kubernetes.kinds.kind import RUN_LABEL, find_labels
from hyperpod_jlab.engines.kubernetes.submit import preflight
from hyperpod_jlab.engines.kubernetes.submit.companion_objects import are_made, collection, companion_findings, make
from hyperpod_jlab.engines.kubernetes.submit.create import accompany, check_own_object, create, is_same_user
from hyperpod_jlab.engines.kubernetes.submit.native import image_findings, is_native, native_findings, render_native
from hyperpod_jlab.engines.kubernetes.submit.object_size import size_findings
from hyperpod_jlab.engines.kubernetes.submit.preflight import blame_field, dry_run, error_finding, no_storage_error
from hyperpod_jlab.engines.kubernetes.submit.render import RenderContext, build_patched_manifest, render
from hyperpod_jlab.engines.kubernetes.submit.resources import instance_findings
from hyperpod_jlab.engines.kubernetes.submit.sent import Sent, read_sent
from hyperpod_jlab.engines.launch import GuardPolicy
from hyperpod_jlab.engines.protocol import Rendered, RenderInput, SubmitResult
from hyperpod_jlab.storage.partition import PathMap
from hyperpod_jlab.storage.records import BundleReader


async def deliver(
    client: KubeClient, path: str, document: Mapping[str, Any], companions: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """Create a run's job, unless an earlier submit did, and the objects that its pods need.

    The job is created first, because it owns the others. So after an interruption, a second submit
    of the same run finds the job by its name and creates what is missing.

    Args:
        client: The cluster.
        path: The path of its kind and namespace.
        document: The manifest.
        companions: Further objects that its pods need and the job will own.

    Returns:
        The job from the API server.

    Raises:
        RefusedError: The API server rejected the job; everything is rolled back.
        DeniedError: The user may not create the job or its objects; everything is rolled back.
    """
    object_path = f"{path}/{document['metadata']['name']}"
    job, is_own_run = await create(client, path, document)
    try:
        await accompany(client, job, companions)
    except (DeniedError, RefusedError):
        if is_own_run:  # its pods would wait forever
            with contextlib.suppress(HyperpodError):
                await client.delete(object_path, propagationPolicy="Background")
        raise
    return job


# --------------------------------------------------------------------------------------------------
# The API server's verdict on a user's own manifest before its submit.


async def dry_run_submit(client: KubeClient, sent: Sent, configured: str) -> list[Finding]:
    """The verdict on the manifest as submitted, and whether the names are free; creates nothing.

    Args:
        client: The cluster.
        sent: The manifest.
        configured: The cluster's configured namespace.

    Raises:
        UnreachableError: The API server does not answer.
    """
    objects = (*sent.companions, sent.document)
    if own_findings := [own_finding for entry in objects for own_finding in _check_document(entry)]:
        return own_findings
    companion_results = [finding async for finding in companion_findings(client, sent)]
    if any(finding.level == "error" for finding in companion_results):
        return companion_results
    document = sent.document
    resumed = await sent.kind.check_manifest(client, document)
    try:
        with contextlib.suppress(NotFoundError, DeniedError):
            check_own_object(await client.get(sent.object_path), document)
        paths = [await collection(client, entry) for entry in sent.companions]
        pairs = [*zip(paths, sent.companions, strict=True), (sent.path, document)]
        findings_found = [*companion_results, *resumed, *await dry_run(client, sent.kind, pairs)]
        if sent.namespace == configured:
            return findings_found
        return blame_field(findings_found, "metadata.namespace in the manifest", "source")
    except UnreachableError:
        raise
    except HyperpodError as error:
        return [error_finding(error)]


def _check_document(document: Mapping[str, Any]) -> list[Finding]:
    return [*image_findings(document, None), *size_findings(document, "source")]


_TTL_S = 60.0
"""Seconds for which the cluster's kinds are cached: operators change rarely."""


class Sender:
    """Submits runs to one cluster.

    Args:
        name: The cluster's name in the configuration.
        connection: The cluster.
        paths: The partition's paths on this machine and in the pods.
    """

    def __init__(self, name: str, connection: ClusterConnection, paths: PathMap) -> None:
        self._name = name
        self._connection = connection
        self._paths = paths
        self._installed: dict[str, tuple[float, InstalledKinds]] = {}
        self._instances: dict[str, InstanceType] = {}

    def render(self, render_input: RenderInput) -> Rendered:
        """Render the manifest, of the kind that the cluster offered at the last query.

        Raises:
            RefusedError: The cluster cannot run this spec.
        """
        if render_input.native is not None:
            return render_native(render_input, render_input.native, self._namespace(render_input.spec))
        return render(render_input, self._render_context(render_input.spec))

    async def preflight(self, spec: JobSpec, python: str | None) -> list[Finding]:
        """The cluster's findings about a spec.

        Raises:
            UnreachableError: The cluster does not answer.
        """
        findings = [*preflight.unsupported(spec)]
        if spec.source.kind == "native":
            return [*findings, *native_findings(spec)]
        if spec.kubernetes.keep_companions:
            message = "companion objects are possible only in your own manifest"
            field = "kubernetes.keep_companions"
            findings.append(Finding(level="info", code="ignored", message=message, field=field))
        try:
            self._storage()
        except RefusedError as error:
            return [*findings, preflight.error_finding(error)]
        findings += instance_findings(spec, await self._query_instance(spec))
        client = await self._connection.client()
        await self._query_kinds(self._namespace(spec))
        guard_policy = GuardPolicy.current()
        render_input = RenderInput(new_run_id(), "run", spec, "bundle", self._paths, python, guard_policy, user="user")
        try:
            findings += preflight.chosen(self._choice(spec))
            context = self._render_context(spec)
            findings += preflight.patch_findings(render_input, context)
            findings += preflight.resume_findings(render_input, context)
            findings += image_findings(build_patched_manifest(render_input, context), "environment.image")
            if not any(finding.level == "error" for finding in findings):
                findings += await preflight.query_findings(client, render_input, context)
        except UnreachableError:
            raise
        except HyperpodError as error:
            findings.append(preflight.error_finding(error))
        return findings

    async def dry_run_submit(self, sent: Sent) -> list[Finding]:
        """The cluster's findings about a user's own manifest; creates nothing.

        Raises:
            UnreachableError: The cluster does not answer.
        """
        return await dry_run_submit(await self._connection.client(), sent, self._connection.namespace)

    async def submit(self, bundle: BundleReader) -> SubmitResult:
        """Create the job, then its companions. The job's name, or the label of a user's own manifest, is the run's, so a repeated submit finds the same one."""
        await asyncio.to_thread(bundle.check_own, "submit")
        sent = await asyncio.to_thread(read_sent, bundle)
        client = await self._connection.client()
        owned = await self._owned(bundle, sent)
        job = await deliver(client, sent.path, sent.document, owned)
        await make(client, sent, job)
        return SubmitResult(sent.name)

    async def find(self, bundle: BundleReader) -> SubmitResult | None:
        """The run's job, if it exists with everything that its pods wait for."""
        sent = await asyncio.to_thread(read_sent, bundle)
        client = await self._connection.client()
        try:
            job = await client.get(sent.object_path)
            for owned in await self._owned(bundle, sent):
                name = owned["metadata"]["name"]
                await client.get(f"/api/v1/namespaces/{sent.namespace}/services/{name}")
        except NotFoundError:
            return None
        is_own_run = find_labels(job).get(RUN_LABEL) == bundle.run_id and is_same_user(job, sent.document)
        is_complete = is_own_run and await are_made(client, sent)
        return SubmitResult(sent.name) if is_complete else None

    async def _owned(self, bundle: BundleReader, sent: Sent) -> list[dict[str, Any]]:
        if await asyncio.to_thread(is_native, bundle):
            return []
        return sent.kind.companions(sent.document)

    def _storage(self) -> PodStorage:
        """The partition as the pods see it.

        Raises:
            RefusedError: The configuration does not say how pods mount it.
        """
        storage = self._connection.config.storage
        if storage is None:
            raise no_storage_error(self._name)
        return storage

    def _namespace(self, spec: JobSpec) -> str:
        return spec.kubernetes.namespace or self._connection.namespace

    async def _query_instance(self, spec: JobSpec) -> InstanceType | HyperpodError | None:
        """Facts about the spec's instance type; on an AWS cluster EC2 is queried."""
        name, config = spec.resources.instance_type, self._connection.config
        if name is None or (config.eks is None and config.hyperpod is None):
            return instance_type(name)
        resolved_type = await find_instance_type(name)
        if isinstance(resolved_type, InstanceType):
            self._instances[name] = resolved_type
        return resolved_type

    def instance(self, spec: JobSpec) -> InstanceType | None:
        """Facts about the spec's instance type, from EC2's last response, else from the table."""
        name = spec.resources.instance_type
        return self._instances.get(name or "") or instance_type(name)

    async def _query_kinds(self, namespace: str) -> None:
        cached = self._installed.get(namespace)
        if cached is not None and time.monotonic() - cached[0] <= _TTL_S:
            return
        installed = await discover(await self._connection.client(), namespace)
        denied = await self._denied(namespace, installed.kinds or frozenset())
        self._installed[namespace] = (time.monotonic(), replace(installed, denied=denied))

    async def _denied(self, namespace: str, supported: frozenset[str]) -> frozenset[str]:
        """The kinds that this user may not create in a namespace, as far as known beforehand."""
        permissions = await self._connection.permissions()
        kinds = [kind for kind in KINDS if kind.name in supported]
        try:
            allowed = [await permissions.is_allowed("create", kind.group, kind.plural, namespace) for kind in kinds]
        except (DeniedError, NotFoundError, RefusedError):
            return frozenset()
        return frozenset(kind.name for kind, is_allowed in zip(kinds, allowed, strict=True) if not is_allowed)

    def _choice(self, spec: JobSpec) -> KindChoice:
        _, installed = self._installed.get(self._namespace(spec), (0.0, InstalledKinds()))
        return choose(spec, installed, self._connection.config.runtime)

    def _render_context(self, spec: JobSpec) -> RenderContext:
        config, namespace = self._connection.config, self._namespace(spec)
        patches = (config.patch, spec.kubernetes.patch)
        return RenderContext(
            namespace=namespace,
            kind=self._choice(spec).kind,
            image=config.image,
            storage=self._storage(),
            hyperpod=config.hyperpod is not None,
            instance=self.instance(spec),
            patches=tuple(patch for patch in patches if patch),
            operator=self._installed[namespace][1].operator if namespace in self._installed else None,
        )
