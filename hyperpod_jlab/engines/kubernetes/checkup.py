"""``hpj doctor`` checks for a Kubernetes cluster: API server, user, namespace, permissions, volume claim, and queues."""

from __future__ import annotations

from hyperpod_jlab.core.check import CheckResult, CheckStep, fail, from_error, ok, unknown, warn
from hyperpod_jlab.core.config import KubernetesCluster, PodStorage
from hyperpod_jlab.core.errors import DeniedError, HyperpodError, NotFoundError
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.engines.kubernetes.api.client import format_server_url
from hyperpod_jlab.engines.kubernetes.api.rights import ClusterConnection, ResourcePermission
from hyperpod_jlab.engines.kubernetes.kinds.choice import InstalledKinds, choose, discover
from hyperpod_jlab.engines.kubernetes.kinds.kind import Kind
from hyperpod_jlab.engines.kubernetes.submit.preflight import no_storage_error
from hyperpod_jlab.engines.kubernetes.submit.render import RenderContext, auto_resume_findings
from hyperpod_jlab.engines.kubernetes.tables.view import KubernetesTables

API_SERVER = "api-server"
"""The id of the step that checks whether the API server answers."""

_REVIEW = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_ROLE = "kubectl -n {namespace} apply -f examples/kubernetes/role.yaml, and bind it to this user"


class KubernetesCheckup:
    """Checks one cluster.

    Args:
        name: The cluster's name in the configuration.
        config: Its configuration.
        connection: The connection to it.
        tables: Its tables.
    """

    def __init__(
        self, name: str, config: KubernetesCluster, connection: ClusterConnection, tables: KubernetesTables
    ) -> None:
        self._name = name
        self._config = config
        self._connection = connection
        self._tables = tables

    def steps(self) -> list[CheckStep]:
        """The steps, in order."""
        name = self._name
        server, identity_step = (f"{API_SERVER}:{name}",), (f"identity:{name}",)
        namespace_step = (f"namespace:{name}",)
        steps = [
            CheckStep(API_SERVER, "API server", "scheduler", self._server, (), name, 60),
            CheckStep("identity", "identity", "identity", self._identity, server, name),
            CheckStep("namespace", "namespace", "identity", self._namespace, identity_step, name),
            CheckStep("rights-there", "permissions on", "identity", self._rights, namespace_step, name),
            CheckStep("queue", "queues", "queue", self._queues, namespace_step, name),
        ]
        storage = self._config.storage
        if storage is not None and self._config.hyperpod is not None:

            async def auto_resume() -> CheckResult:
                return await self._auto_resume(storage)

            label = "auto-resume"
            steps.append(CheckStep(label, label, "queue", auto_resume, namespace_step, name))

        async def claim() -> CheckResult:
            return await self._claim(storage)

        steps.insert(4, CheckStep("claim", "claim", "partition", claim, namespace_step, name))
        return steps

    async def _server(self) -> CheckResult:
        """Check DNS, connection and TLS; each failure has its own error."""
        client = await self._connection.client()
        server_address = format_server_url(client.access)
        proxy_text = " through the proxy" if client.access.proxy else ""
        try:
            version = (await client.get("/version")).get("gitVersion", "of unknown version")
        except DeniedError:  # the user may lack the permission for the version, but the server answered
            version = "without a version"
        except HyperpodError as error:
            return from_error(error)
        return ok(f"Kubernetes {version} answers at {server_address}{proxy_text}: name, connection and TLS work")

    async def _identity(self) -> CheckResult:
        """The user that the API server sees."""
        client = await self._connection.client()
        try:
            review = await client.post(_REVIEW, {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})
        except DeniedError as error:
            if error.code == "unauthorized":
                return fail(error.message, error.hint)
            return unknown(f"the credentials are accepted, but the user is unknown: {error.message}")
        except NotFoundError:
            return ok("the credentials are accepted; Kubernetes before 1.28 does not show the user")
        user = (review.get("status") or {}).get("userInfo") or {}
        name, groups = user.get("username", "nobody"), user.get("groups") or []
        if name == "system:anonymous":
            return fail(
                "the request is anonymous (system:anonymous): no credentials were sent",
                "check the user in the kubeconfig, or: aws eks update-kubeconfig --name CLUSTER",
            )
        return ok(f"{name} in {', '.join(map(str, groups)) or 'no groups'}")

    async def _namespace(self) -> CheckResult:
        name = self._connection.namespace
        client = await self._connection.client()
        try:
            response = await client.get(f"/api/v1/namespaces/{name}")
        except NotFoundError:
            return fail(
                f"namespace {name} not found",
                f"set namespace under [clusters.{self._name}] to an existing one, or: kubectl create namespace {name}",
            )
        except DeniedError as error:
            if error.code == "unauthorized":
                raise
            return ok(f"{name}; this user has no permission to check whether it exists")
        if (response.get("metadata") or {}).get("deletionTimestamp"):
            return fail(f"{name} is being removed", "use another namespace", "you")
        return ok(f"{name} exists")

    async def _kind(self) -> tuple[Kind, InstalledKinds]:
        """The default kind of a run, and the kinds that the cluster has."""
        spec = JobSpec.model_validate({"source": {"kind": "command", "command": "true"}})
        installed = await discover(await self._connection.client(), self._connection.namespace)
        return choose(spec, installed, self._config.runtime).kind, installed

    async def _auto_resume(self, storage: PodStorage) -> CheckResult:
        """Whether HyperPod can auto-resume runs there."""
        kind, installed = await self._kind()
        namespace = self._connection.namespace
        context = RenderContext(namespace, kind, storage=storage, operator=installed.operator)
        findings = [*auto_resume_findings(context)]
        if findings:
            summary = "; ".join(f"{finding.code}: {finding.message}" for finding in findings)
            hint = "; ".join(finding.hint or "" for finding in findings)
            is_known = findings[0].level == "warning"
            return warn(summary, hint) if is_known else unknown(summary, hint, "admin")
        return ok(f"HyperPod resumes runs in {namespace}, with the operator {installed.operator}")

    async def _rights(self) -> CheckResult:
        """The permissions that a run needs, from its submit to its log."""
        namespace, (kind, _) = self._connection.namespace, await self._kind()
        permissions = await self._connection.permissions()
        required = [
            ResourcePermission(verb, kind.group, kind.plural, namespace) for verb in ("create", "get", "delete")
        ]
        optional = [
            ResourcePermission("list", "", "pods", namespace),
            ResourcePermission("get", "", "pods/log", namespace),
        ]
        missing = await permissions.list_missing([*required, *optional])
        fix = _ROLE.format(namespace=namespace)
        missing_text = ", ".join(f"{permission.verb} {permission.resource}" for permission in missing)
        if any(permission in required for permission in missing):
            return fail(f"in {namespace}, this user has no permission to: {missing_text}", fix, "admin")
        if missing:
            return warn(
                f"in {namespace}, this user has no permission to: {missing_text}; logs are not available", fix, "admin"
            )
        return ok(f"runs are created as {kind.name}; this user may create it and read the logs of its pods")

    async def _claim(self, storage: PodStorage | None) -> CheckResult:
        if storage is None:
            error = no_storage_error(self._name)
            return fail(f"{error.message}; your own manifests run without one", error.hint, "you")
        name, namespace = storage.claim, self._connection.namespace
        client = await self._connection.client()
        try:
            claim = await client.get(f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}")
        except NotFoundError:
            return fail(
                f"claim {name} not found in the namespace {namespace}",
                f"set storage under [clusters.{self._name}] to an existing claim, or create this one",
                "admin",
            )
        except DeniedError as error:
            return unknown(error.message, _ROLE.format(namespace=namespace), "admin")
        phase = (claim.get("status") or {}).get("phase", "of unknown state")
        if phase != "Bound":
            see_hint = f"see: kubectl -n {namespace} describe pvc {name}"
            return fail(f"the claim {name} is {phase}: pods wait until it has a volume", see_hint, "admin")
        return ok(f"the claim {name} is bound; pods mount it at {storage.mount}")

    async def _queues(self) -> CheckResult:
        namespace = self._connection.namespace
        queues = await self._tables.queues()
        notes = "; ".join(getattr(queues, "notes", ()))
        if not queues:
            return ok(notes or "the cluster has no queues: runs start as soon as nodes have free resources")
        states = ", ".join(f"{queue.name} {queue.state}" for queue in queues)
        if not any(queue.state == "up" for queue in queues):
            return fail(f"{states}: no queue is up", f"check the local queues of {namespace}", "admin")
        return ok(states)
