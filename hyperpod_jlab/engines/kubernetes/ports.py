"""One connection to a port of a pod, through the API server by WebSocket (subprotocol ``v4.channel.k8s.io``).

Each message begins with a channel byte: 0 is data, 1 is errors from the kubelet. The first message
of each channel contains the port number (k8s.io/kubelet pkg/cri/streaming/portforward/websocket.go;
observed on 1.34). The request is a GET, so it needs ``get`` on ``pods/portforward``; from 1.35 on
it needs ``create``.
"""

from __future__ import annotations

import asyncio
import itertools
import shlex
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hyperpod_jlab.core.errors import (
    ConflictError,
    DeniedError,
    HyperpodError,
    NotFoundError,
    RefusedError,
    UnreachableError,
    UnsupportedError,
)
from hyperpod_jlab.core.run_id import split_run_id
from hyperpod_jlab.engines.kubernetes.api.access import ApiAccess
from hyperpod_jlab.engines.kubernetes.api.client import KubeClient, format_server_url, parse_error
from hyperpod_jlab.engines.kubernetes.api.kubeconfig import PROXY_HINT
from hyperpod_jlab.engines.kubernetes.api.rights import ClusterConnection
from hyperpod_jlab.engines.kubernetes.kinds.choice import KINDS
from hyperpod_jlab.engines.kubernetes.kinds.kind import RUN_LABEL, Kind
from hyperpod_jlab.engines.kubernetes.observe.pods import find_position
from hyperpod_jlab.engines.kubernetes.submit.sent import adopted_uid, read_sent
from hyperpod_jlab.engines.protocol import Shell
from hyperpod_jlab.storage.records import BundleReader

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

_PROTOCOL = "v4.channel.k8s.io"
_DATA, _ERROR = 0, 1
_OPEN_TIMEOUT_S = 20.0
_CLOSE_TIMEOUT_S = 1.0
_CHUNK = 1 << 18  # bytes per message


class PodPort:
    """A connection to a port of a pod; made by `open_port`."""

    def __init__(self, socket: ClientConnection, pod: str, port: int) -> None:
        self._socket = socket
        self._pod = pod
        self._port = port
        self._buffered = b""
        self._announced: set[int] = set()

    @property
    def alive(self) -> bool:
        """Whether it is open, as far as is known."""
        from websockets.protocol import State

        return self._socket.state is State.OPEN and not self._buffered

    async def read(self, limit: int = 65_536) -> bytes:
        """The next bytes; ``b""`` at the end.

        Raises:
            RefusedError: Nothing listens there.
            UnreachableError: The connection was cut.
        """
        while not self._buffered:
            data = await self._next()
            if data is None:
                return b""
            self._buffered = data
        chunk, self._buffered = self._buffered[:limit], self._buffered[limit:]
        return chunk

    async def write(self, data: bytes) -> None:
        """Send bytes.

        Raises:
            UnreachableError: The other side has closed the connection.
        """
        from websockets.exceptions import ConnectionClosed

        try:
            for start in range(0, len(data), _CHUNK):
                await self._socket.send(b"\0" + data[start : start + _CHUNK])
        except ConnectionClosed as error:
            raise UnreachableError(
                f"the pod {self._pod} closed the connection to its port {self._port}",
                code="port_closed",
                detail={"pod": self._pod, "port": self._port},
            ) from error

    async def end(self) -> None:
        """Do nothing: the protocol cannot say that no more bytes follow."""

    async def close(self) -> None:
        await self._socket.close()

    async def wait_open(self) -> None:
        """Wait until the kubelet has announced the port."""
        while self._announced != {_DATA, _ERROR}:
            data = await self._next()
            if data is None:
                return
            self._buffered += data

    async def _next(self) -> bytes | None:
        """The data of the next message, which may be empty; None at the end."""
        from websockets.exceptions import ConnectionClosedError, ConnectionClosedOK

        try:
            message = await self._socket.recv()
        except ConnectionClosedOK:
            return None
        except ConnectionClosedError as error:
            raise UnreachableError(
                f"the connection to port {self._port} of the pod {self._pod} was cut",
                hint="try again later",
                detail={"pod": self._pod, "port": self._port},
            ) from error
        if not message or isinstance(message, str):
            return b""
        channel = message[0]
        if channel not in self._announced:
            self._announced.add(channel)
            return b""
        if channel == _ERROR:
            raise self._open_error(message[1:].decode("utf-8", "replace"))
        return message[1:] if channel == _DATA else b""

    def _open_error(self, text: str) -> HyperpodError:
        """The kubelet's error from the error channel."""
        detail = {"pod": self._pod, "port": self._port}
        if any(text_part in text.lower() for text_part in ("refused", "failed to connect", "dial")):
            return RefusedError(
                f"no program listens on port {self._port} of the pod {self._pod}",
                code="nothing_listens",
                hint="the program may still be starting, or listen on another port",
                detail={**detail, "said": text[:300]},
            )
        return UnreachableError(
            f"port {self._port} of the pod {self._pod} cannot be reached: {text[:300].strip()}",
            hint="try again later",
            detail=detail,
        )


async def open_port(client: KubeClient, namespace: str, pod: str, port: int) -> PodPort:
    """Connect to a port of a pod.

    Raises:
        UnsupportedError: The WebSocket package is not installed.
        DeniedError: This user lacks the permission.
        NotFoundError: The pod does not exist.
        UnreachableError: The API server or the pod's node does not answer.
    """
    try:
        from websockets.asyncio.client import connect
        from websockets.exceptions import InvalidHandshake, InvalidProxy, InvalidStatus
        from websockets.typing import Subprotocol
    except ImportError:
        raise UnsupportedError(
            "forwarding a port of a pod needs a package that is not installed",
            code="websockets_missing",
            hint="pip install 'hyperpod-jlab[kubernetes]'",
        ) from None
    access = client.access
    address = f"{access.server.rstrip('/')}/api/v1/namespaces/{namespace}/pods/{pod}/portforward?ports={port}"
    opening = connect(
        f"ws{address.removeprefix('http')}",
        subprotocols=[Subprotocol(_PROTOCOL)],
        additional_headers=await client.headers(),
        ssl=_tls(access),
        proxy=access.proxy,
        compression=None,
        max_size=None,
        open_timeout=_OPEN_TIMEOUT_S,
        close_timeout=_CLOSE_TIMEOUT_S,
        # Pings keep load balancers from closing an idle connection; a peer that does not answer
        # them may just be busy.
        ping_interval=30,
        ping_timeout=None,
    )
    try:
        socket = await opening
    except InvalidStatus as error:
        response = error.response
        raise _response_error(
            response.status_code, bytes(response.body or b""), namespace, pod
        ) from error
    except (
        InvalidProxy
    ) as error:  # its own message would repeat the address, which may contain a password
        raise UnreachableError(
            "the proxy's address cannot be used", code="proxy", hint=PROXY_HINT
        ) from error
    except (InvalidHandshake, OSError, TimeoutError) as error:
        raise UnreachableError(
            f"the API server did not answer: {str(error) or type(error).__name__}",
            hint="see: kubectl cluster-info",
            detail={"server": format_server_url(access)},
        ) from error
    return await _wait_open(PodPort(socket, pod, port), pod, port)


async def _wait_open(port_stream: PodPort, pod: str, port: int) -> PodPort:
    try:
        async with asyncio.timeout(_OPEN_TIMEOUT_S):
            await port_stream.wait_open()
    except BaseException as error:
        await port_stream.close()
        if isinstance(error, TimeoutError):
            raise UnreachableError(
                f"the node of the pod {pod} does not respond",
                hint="try again later",
                detail={"pod": pod, "port": port},
            ) from error
        raise
    return port_stream


def _tls(access: ApiAccess) -> ssl.SSLContext | None:
    if not access.server.startswith("https"):
        return None
    if isinstance(access.verify, ssl.SSLContext):
        return access.verify
    context = ssl.create_default_context()
    if not access.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _response_error(status: int, body: bytes, namespace: str, pod: str) -> HyperpodError:
    error = parse_error(status, body.decode("utf-8", "replace"))
    if isinstance(error, DeniedError):
        return DeniedError(
            f"you do not have the permission to forward ports of pods in the namespace {namespace}",
            code="no_port_forward",
            hint="ask your cluster administrator for the verbs get and create on pods/portforward there",
            detail={**error.detail, "verb": "get", "resource": "pods/portforward"},
        )
    if isinstance(error, NotFoundError):
        return NotFoundError(f"the pod {pod} no longer exists", detail=error.detail)
    return error


# --------------------------------------------------------------------------------------------------
# The reachable pods of a run: by node rank, and whether they run.

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
        states = {
            status_entry["name"]: status_entry
            for status_entry in status.get("containerStatuses") or []
        }
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
    created_order = sorted(
        pods, key=lambda pod: str(pod["metadata"].get("creationTimestamp") or "")
    )
    ranked_pods = [(kind.node_rank(pod), pod) for pod in created_order]
    counter = itertools.count()
    rows = [
        ReachablePod.from_pod(pod, rank if rank is not None else next(counter))
        for rank, pod in ranked_pods
    ]
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
            hint="ports are available while a run is running; see: hpj why"
            if pod.phase == "Pending"
            else "ports are available while a run is running",
            detail={"pod": pod.name, "phase": pod.phase},
        )
    return pod


# --------------------------------------------------------------------------------------------------
# Access to a run's pods: a port, and the command that opens a shell.

_SHELL = "command -v bash >/dev/null && exec bash || exec sh"


class Forwarder:
    """Connects to the pods of one cluster's runs."""

    def __init__(self, connection: ClusterConnection) -> None:
        self._connection = connection

    async def open(self, bundle: BundleReader, node: int, port: int) -> PodPort:
        """Connect to a port of the pod with a node's rank.

        Raises:
            NotFoundError: The run has no pod of that rank.
            ConflictError: The pod does not run.
            DeniedError: This user lacks the permission.
            UnreachableError: The API server or the node does not answer.
        """
        pod = find_pod(await self.pods(bundle), node)
        client = await self._connection.client()
        return await open_port(client, pod.namespace, pod.name, port)

    async def shells(self, bundle: BundleReader) -> list[Shell]:
        """The shell commands for its running pods."""
        pods = await self.pods(bundle)
        context = self._connection.config.context
        return [
            Shell(pod.node_rank, pod.node, shell_command(pod, context))
            for pod in pods
            if pod.running
        ]

    async def pods(self, bundle: BundleReader) -> list[ReachablePod]:
        """The run's pods, by rank.

        Raises:
            DeniedError: The run is another user's.
        """
        await asyncio.to_thread(bundle.check_own, "open")
        client = await self._connection.client()
        sent = await asyncio.to_thread(read_sent, bundle)
        adopted = await asyncio.to_thread(adopted_uid, bundle) is not None
        run_id, _ = split_run_id(bundle.run_id)
        labelled = sent.kind.labels_pods and not adopted
        selector = f"{RUN_LABEL}={run_id}" if labelled else sent.kind.pods_selector(sent.name)
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
    argv += [
        f"--namespace={pod.namespace}",
        "exec",
        "-it",
        pod.name,
        f"--container={pod.container}",
    ]
    return shlex.join([*argv, "--", "sh", "-c", _SHELL])
