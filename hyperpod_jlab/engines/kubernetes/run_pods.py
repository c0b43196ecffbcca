"""The reachable pods of a run, by node rank: the commands that open shells in them, and their ports on this machine."""

from __future__ import annotations

import asyncio
import itertools
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

from hyperpod_jlab.core.errors import ConflictError, NotFoundError
from hyperpod_jlab.core.run_id import split_run_id
from hyperpod_jlab.engines.forwarding import LocalEnd, serve
from hyperpod_jlab.engines.kubernetes.api.rights import ClusterConnection
from hyperpod_jlab.engines.kubernetes.forward import connect_pod, join_pod
from hyperpod_jlab.engines.kubernetes.kinds.choice import KINDS
from hyperpod_jlab.engines.kubernetes.kinds.kind import RUN_LABEL, Kind
from hyperpod_jlab.engines.kubernetes.observe.pods import find_position
from hyperpod_jlab.engines.kubernetes.submit.sent import read_sent
from hyperpod_jlab.engines.protocol import Shell
from hyperpod_jlab.storage.records import BundleReader

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

_RUN_CONTAINERS = tuple(kind.container for kind in KINDS)


@dataclass(frozen=True)
class ReachablePod:
    """A pod of a run that accepts connections.

    Attributes:
        name: The pod's name.
        namespace: Its namespace.
        node_rank: The rank of its node.
        node: Its node, or None.
        container: The container with the run's processes.
        running: Whether the container runs.
        phase: The pod's phase.
    """

    name: str
    namespace: str
    node_rank: int
    node: str | None
    container: str
    running: bool
    phase: str

    @classmethod
    def from_pod(cls, pod: Mapping[str, Any], rank: int) -> ReachablePod:
        """Parse a pod from the API server."""
        meta, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
        names = [str(container["name"]) for container in spec.get("containers") or []]
        default = (meta.get("annotations") or {}).get("kubectl.kubernetes.io/default-container")
        candidates = [name for name in (default, *_RUN_CONTAINERS) if name in names]
        container = str((candidates or names or [""])[0])
        states = {status_entry["name"]: status_entry for status_entry in status.get("containerStatuses") or []}
        state = (states.get(container) or {}).get("state") or {}
        return cls(
            name=str(meta["name"]),
            namespace=str(meta["namespace"]),
            node_rank=rank,
            node=spec.get("nodeName"),
            container=container,
            running="running" in state and "deletionTimestamp" not in meta,
            phase=str(status.get("phase") or "Pending"),
        )


def list_by_rank(pods: Iterable[Mapping[str, Any]], kind: Kind) -> list[ReachablePod]:
    """The pods by rank; of several with one rank the running one, else the newest. Pods without a rank are numbered in order."""
    created_order = sorted(pods, key=lambda pod: str(pod["metadata"].get("creationTimestamp") or ""))
    ranked_pods = [(kind.node_rank(pod), pod) for pod in created_order]
    counter = itertools.count()
    rows = [ReachablePod.from_pod(pod, rank if rank is not None else next(counter)) for rank, pod in ranked_pods]
    pods_by_rank = {row.node_rank: row for row in sorted(rows, key=lambda row: row.running)}
    return [pods_by_rank[rank] for rank in sorted(pods_by_rank)]


def find_pod(pods: Iterable[ReachablePod], node_rank: int) -> ReachablePod:
    """The running pod with a node's rank.

    Raises:
        NotFoundError: The run has no pod of that rank.
        ConflictError: The pod does not run.
    """
    pods_by_rank = {pod.node_rank: pod for pod in pods}
    if node_rank not in pods_by_rank:
        ranks_text = ", ".join(map(str, pods_by_rank)) or "none"
        raise NotFoundError(
            f"the run has no pod for node {node_rank} now",
            code="no_such_node",
            hint=f"nodes with a pod: {ranks_text}",
            detail={"node": node_rank},
        )
    pod = pods_by_rank[node_rank]
    if not pod.running:
        raise ConflictError(
            f"the pod {pod.name} is not running; it is {pod.phase.lower()}",
            code="pod_not_running",
            hint="ports and shells are available while a run is running; see: hpj why"
            if pod.phase == "Pending"
            else "ports and shells are available while a run is running",
            detail={"pod": pod.name, "phase": pod.phase},
        )
    return pod


_SHELL = "command -v bash >/dev/null && exec bash || exec sh"


class RunPods:
    """The pods of one cluster's runs."""

    def __init__(self, connection: ClusterConnection) -> None:
        self._connection = connection

    async def forward(self, bundle: BundleReader, node: int, port: int, end: LocalEnd) -> NoReturn:
        """Forward a port (see `engines.protocol.Forwarding`)."""

        async def connect() -> tuple[ClientConnection, str]:
            pod = find_pod(await self.pods(bundle), node)  # a restart gives the rank another pod
            client = await self._connection.client()
            return await connect_pod(client, pod.namespace, pod.name, port), pod.name

        async def join(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            connection, pod = await connect()
            await join_pod(connection, pod, port, reader, writer)

        first, _ = await connect()  # says now what is missing, such as a permission
        await first.close()
        await serve(join, end)

    async def shells(self, bundle: BundleReader) -> list[Shell]:
        """The shell commands for its running pods."""
        pods = await self.pods(bundle)
        context = self._connection.config.context
        return [Shell(pod.node_rank, pod.node, shell_command(pod, context)) for pod in pods if pod.running]

    async def pods(self, bundle: BundleReader) -> list[ReachablePod]:
        """The run's pods, by rank.

        Raises:
            DeniedError: The run is another user's.
        """
        await asyncio.to_thread(bundle.check_own, "open")
        client = await self._connection.client()
        sent = await asyncio.to_thread(read_sent, bundle)
        run_id, _ = split_run_id(bundle.run_id)
        selector = f"{RUN_LABEL}={run_id}" if sent.kind.labels_pods else sent.kind.pods_selector(sent.name)
        path = f"/api/v1/namespaces/{sent.namespace}/pods"
        response = await client.get(path, labelSelector=selector)
        pods = list_by_rank(response.get("items") or [], sent.kind)
        if bundle.index is None:
            return pods
        array = (await asyncio.to_thread(bundle.spec)).array or ""
        position = find_position(array, bundle.index)
        return [replace(pod, node_rank=0) for pod in pods if pod.node_rank == position]


def shell_command(pod: ReachablePod, context: str | None) -> str:
    """The command that opens a shell in a pod's container: bash if the image has it, else sh."""
    argv = ["kubectl", *([f"--context={context}"] if context else [])]
    argv += [f"--namespace={pod.namespace}", "exec", "-it", pod.name, f"--container={pod.container}"]
    return shlex.join([*argv, "--", "sh", "-c", _SHELL])
