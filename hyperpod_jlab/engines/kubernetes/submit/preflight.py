"""Preflight checks of a run in the cluster: what is unsupported, what is missing, and the API server's own verdict on the manifest."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hyperpod_jlab.core.errors import (
    ConflictError,
    DeniedError,
    HyperpodError,
    NotFoundError,
    RefusedError,
    UnreachableError,
)
from hyperpod_jlab.core.finding import Finding, Level
from hyperpod_jlab.core.quantities import format_ranges, parse_array
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.engines.kubernetes.api.client import KubeClient
from hyperpod_jlab.engines.kubernetes.kinds.choice import KIND_BY_NAME, KindChoice
from hyperpod_jlab.engines.kubernetes.kinds.kind import Kind, jobs_path
from hyperpod_jlab.engines.kubernetes.submit.object_size import size_findings
from hyperpod_jlab.engines.kubernetes.submit.patch import find_templates, unified_difference
from hyperpod_jlab.engines.kubernetes.submit.render import (
    RenderContext,
    auto_resume_findings,
    build_patched_manifest,
    manifest,
    to_yaml,
)
from hyperpod_jlab.engines.protocol import RenderInput

# --------------------------------------------------------------------------------------------------
# The API server's verdict on a run's pod alone: most kinds accept any template, and its errors
# appear only when the operator creates the pods.

_MISSING_PERMISSION = "missing_right"
"""Code of the error for a missing permission."""

_TEMPORARY_CODES = frozenset({"quota_exceeded"})
"""Codes of verdicts that may change before the pods are created."""


async def check_pod(client: KubeClient, document: Mapping[str, Any], namespace: str) -> list[Finding]:
    """Errors in an object's pods, from a dry run of one pod; no findings if the user may not create pods."""
    template = next(find_templates(dict(document)), None)
    if template is None:
        return []
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**template["metadata"], "name": f"{document['metadata']['name']}-0"},
        "spec": {"restartPolicy": "Never", **template["spec"]},
    }
    path = f"/api/v1/namespaces/{namespace}/pods"
    try:
        await client.post(path, pod, dryRun="All", fieldValidation="Strict")
    except UnreachableError:
        return []  # a pod webhook that does not answer now may do so later
    except HyperpodError as error:
        if isinstance(error, DeniedError) and error.code == _MISSING_PERMISSION:
            return []
        return [
            Finding(
                level="warning" if error.code in _TEMPORARY_CODES else "error",
                code=error.code,
                message=f"its pods would be rejected: {error.message}",
                hint=error.hint,
            )
        ]
    return []


_MAX_DIFFERENCE = 4000
_MAX_LIST = 100_000
"""Maximum length of one argument of a command; Linux's limit is 128 KiB."""

NO_NAMESPACE = "no_namespace"
"""Code of the error for a missing namespace."""


def no_storage_error(cluster: str) -> RefusedError:
    """The error for a run with our launcher on a cluster whose pods do not mount the partition.

    Args:
        cluster: The cluster's name in the configuration.
    """
    return RefusedError(
        f"runs on {cluster} need shared storage, but its configuration has no storage claim",
        code="no_storage",
        hint=f'add this line under [clusters.{cluster}]: storage = {{ claim = "fsx-claim", mount = "/data" }}, with the name of your claim',
    )


def unsupported(spec: JobSpec) -> Iterator[Finding]:
    """Spec fields that runs on Kubernetes do not support or that have no effect there."""
    unsupported = {"account": spec.account, "qos": spec.qos, "slurm": spec.slurm.flags or None}
    for field, value in unsupported.items():
        if value is not None:
            message = f"a Kubernetes cluster ignores {field}"
            yield Finding(level="info", code="ignored", message=message, field=field)
    if spec.array is not None and spec.source.kind != "native":
        yield from _array(spec, spec.array)
    if spec.after:
        yield _unsupported(
            "after",
            "a run on Kubernetes cannot wait for other runs: Kubernetes has no such condition",
            "submit it when they have succeeded (hpj logs -f RUN waits), or use a Slurm cluster or the local cluster",
        )


def _array(spec: JobSpec, array: str) -> Iterator[Finding]:
    kind = spec.kubernetes.kind
    if kind is not None and not KIND_BY_NAME[kind].runs_arrays:
        yield _unsupported(
            "kubernetes.kind",
            f"a {kind} cannot be an array: the tasks of an array are the pods of a Job",
            "leave out kubernetes.kind",
        )
    if spec.resources.nodes > 1:
        yield _unsupported(
            "resources.nodes",
            "each task of an array on Kubernetes has one node, because the tasks are the pods of one Job",
            "submit multi-node runs one by one, or use a Slurm cluster",
        )
    if len(format_ranges(parse_array(array).indices)) > _MAX_LIST:
        yield _unsupported(
            "array",
            "the list of the array's indices is too long for the command of a pod",
            "use indices with fewer gaps, such as 0-9999",
        )


def _unsupported(field: str, message: str, hint: str) -> Finding:
    return Finding(level="error", code="unsupported", message=message, hint=hint, field=field)


def chosen(choice: KindChoice) -> Iterator[Finding]:
    """The kind that the run becomes, and the requirements for its image."""
    yield Finding(
        level="info", code="kind", message=f"it runs as a {choice.kind.name}: {choice.reason}", field="kubernetes.kind"
    )
    yield from choice.kind.image_findings()


def patch_findings(render_input: RenderInput, context: RenderContext) -> Iterator[Finding]:
    """The patches' changes to the manifest."""
    if any(context.patches):
        text = unified_difference(
            to_yaml(manifest(render_input, context)), to_yaml(build_patched_manifest(render_input, context))
        )
        ellipsis = "\n..." if len(text) > _MAX_DIFFERENCE else ""
        yield Finding(
            level="info",
            code="patched",
            message=f"the manifest is changed by a patch:\n{text[:_MAX_DIFFERENCE]}{ellipsis}",
            field="kubernetes.patch",
        )


def resume_findings(render_input: RenderInput, context: RenderContext) -> Iterator[Finding]:
    """What prevents HyperPod from resuming the run, if auto-resume is requested."""
    spec, kind = render_input.spec, context.kind
    if spec.is_resumed(context.hyperpod) and (kind.is_resumable or spec.auto_resume is not None):
        yield from auto_resume_findings(context)


async def query_findings(client: KubeClient, render_input: RenderInput, context: RenderContext) -> list[Finding]:
    """Findings from the cluster: about the claim, and about the whole manifest.

    Raises:
        UnreachableError: The cluster does not answer.
    """
    document = build_patched_manifest(render_input, context)
    if large := [*size_findings(document)]:
        return large
    (claim_findings, service_account_findings, runtime_results, dry_run_findings, pod_findings) = await asyncio.gather(
        _claim(client, context),
        _service_account(client, render_input.spec.kubernetes.service_account, context.namespace),
        context.kind.check_runtime(client, context.namespace),
        _dry_run(client, document, context),
        check_pod(client, document, context.namespace),
    )
    if any(finding.code == NO_NAMESPACE for finding in dry_run_findings):
        if render_input.spec.kubernetes.namespace is None:
            return dry_run_findings  # then nothing else can exist
        return blame_field(dry_run_findings, "kubernetes.namespace", "kubernetes.namespace")
    if any(finding.level == "error" for finding in dry_run_findings):
        return [*claim_findings, *service_account_findings, *runtime_results, *dry_run_findings]
    if service_account_findings:  # the pods' own verdict would repeat it
        return [*claim_findings, *service_account_findings, *runtime_results]
    is_refused = any(finding.level == "error" for finding in pod_findings)
    return [*claim_findings, *runtime_results, *pod_findings, *([] if is_refused else dry_run_findings)]


async def _claim(client: KubeClient, context: RenderContext) -> list[Finding]:
    """Whether the storage claim exists and is bound; no findings if the user may not read it."""
    name = context.storage.claim
    path = f"/api/v1/namespaces/{context.namespace}/persistentvolumeclaims/{name}"
    try:
        response = await client.get(path)
    except DeniedError:
        return []
    except NotFoundError:
        message = f"claim {name} not found in the namespace {context.namespace}"
        hint = "its pods would wait forever: set storage in the configuration of the cluster to another claim, or ask your cluster administrator for this one"
        return [Finding(level="error", code="no_claim", message=message, hint=hint)]
    phase = (response.get("status") or {}).get("phase")
    if phase in {"Bound", None}:
        return []
    message = f"the claim {name} is {phase}: pods wait until it has a volume"
    hint = f"see: kubectl -n {context.namespace} describe pvc {name}"
    return [Finding(level="warning", code="claim_unbound", message=message, hint=hint)]


async def _service_account(client: KubeClient, name: str | None, namespace: str) -> list[Finding]:
    """Whether the pods' service account exists; no findings if the user may not read it."""
    if name is None:
        return []
    try:
        await client.get(f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}")
    except DeniedError:
        return []
    except NotFoundError:
        return [
            Finding(
                level="error",
                code="no_service_account",
                message=f"service account {name} not found in the namespace {namespace}; its pods would never be created",
                hint=f"see: kubectl -n {namespace} get serviceaccounts",
                field="kubernetes.service_account",
            )
        ]
    return []


async def _dry_run(client: KubeClient, document: Mapping[str, Any], context: RenderContext) -> list[Finding]:
    """The API server's verdict, including webhooks and quotas; creates nothing."""
    namespace = context.namespace
    objects = [(jobs_path(context.kind, namespace), document)]
    services = f"/api/v1/namespaces/{namespace}/services"
    objects += [(services, companion) for companion in context.kind.companions(document)]
    return await dry_run(client, context.kind, objects)


async def dry_run(client: KubeClient, kind: Kind, objects: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Finding]:
    """The API server's verdict on objects, each with the path for its creation.

    Raises:
        UnreachableError: The API server does not answer.
    """
    for path, entry in objects:
        try:
            await client.post(path, entry, dryRun="All", fieldValidation="Strict")
        except UnreachableError as error:
            if _is_webhook(error):
                return [_finding(error, "error")]
            raise
        except ConflictError:
            continue  # the same run exists already; the submit handles that
        except HyperpodError as error:
            if "does not support dry run" in error.message:
                return [_finding(error, "warning")]
            return [_finding(error, "error")]
    return [
        Finding(level="info", code="dry_run", message=f"the API server accepts the {kind.name} unchanged (dry run)")
    ]


def blame_field(findings: Sequence[Finding], namespace_field: str, field: str) -> list[Finding]:
    """Make findings about a missing namespace name the field that set it, instead of the cluster's configuration.

    Args:
        findings: The findings.
        namespace_field: The field's name in the hint.
        field: The spec field.
    """
    hint = f"set {namespace_field} to an existing namespace, or leave it out; see: kubectl get namespaces"
    changes = {"hint": hint, "field": field}
    return [finding.model_copy(update=changes) if finding.code == NO_NAMESPACE else finding for finding in findings]


def _is_webhook(error: UnreachableError) -> bool:
    """Whether the server answers but one of its webhooks does not."""
    return "webhook" in error.code or "webhook" in error.message


def _finding(error: HyperpodError, level: Level) -> Finding:
    field = error.detail.get("field")
    return Finding(
        level=level,
        code=error.code,
        message=error.message,
        hint=error.hint,
        field=field if isinstance(field, str) else None,
    )


def error_finding(error: HyperpodError) -> Finding:
    """An error of ours as a finding."""
    return _finding(error, "error")
