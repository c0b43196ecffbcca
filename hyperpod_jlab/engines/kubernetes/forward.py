"""Ports of pods on this machine, through the API server by WebSocket (subprotocol ``v4.channel.k8s.io``), as by ``kubectl port-forward``.

Each message begins with a channel byte: 0 is data, 1 is errors from the kubelet. The first message
of each channel contains the port number (k8s.io/kubelet pkg/cri/streaming/portforward/websocket.go;
observed on 1.34). The request is a GET, so it needs ``get`` on ``pods/portforward``; from 1.35 on
it needs ``create``.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING

from hyperpod_jlab.core.errors import DeniedError, UnreachableError
from hyperpod_jlab.engines.forwarding import CHUNK
from hyperpod_jlab.engines.kubernetes.api.access import ApiAccess
from hyperpod_jlab.engines.kubernetes.api.client import KubeClient, format_server_url, parse_error
from hyperpod_jlab.engines.kubernetes.api.kubeconfig import PROXY_HINT

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

_PROTOCOL = "v4.channel.k8s.io"
_DATA, _ERROR = 0, 1


async def connect_pod(client: KubeClient, namespace: str, pod: str, port: int) -> ClientConnection:
    """Open a connection to a port of a pod; whether a program listens there is known only once `join_pod` uses it."""
    from websockets.asyncio.client import connect
    from websockets.exceptions import InvalidHandshake, InvalidProxy, InvalidStatus
    from websockets.typing import Subprotocol

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
        open_timeout=20,
        close_timeout=1,
        # Pings keep load balancers from closing an idle connection; a peer that does not answer
        # them may just be busy.
        ping_interval=30,
        ping_timeout=None,
    )
    try:
        return await opening
    except InvalidStatus as error:
        body = bytes(error.response.body or b"").decode("utf-8", "replace")
        answer = parse_error(error.response.status_code, body)
        if isinstance(answer, DeniedError):
            answer = DeniedError(
                f"you do not have the permission to forward ports of pods in the namespace {namespace}",
                code="no_port_forward",
                hint="ask your cluster administrator for the verbs get and create on pods/portforward there",
                detail=answer.detail,
            )
        raise answer from error
    except InvalidProxy as error:  # its message has the address, which may contain a password
        why = "the proxy's address cannot be used"
        raise UnreachableError(why, code="proxy", hint=PROXY_HINT) from error
    except (InvalidHandshake, OSError, TimeoutError) as error:
        raise UnreachableError(
            f"the API server did not answer: {str(error) or type(error).__name__}",
            hint="see: kubectl cluster-info",
            detail={"server": format_server_url(access)},
        ) from error


async def join_pod(
    connection: ClientConnection, pod: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Carry bytes between a connection to a pod's port and one of this machine until the pod's side ends. The protocol has no half-close."""
    from websockets.exceptions import ConnectionClosed

    async def send() -> None:
        while data := await reader.read(CHUNK):
            await connection.send(b"\0" + data)

    sending = asyncio.ensure_future(send())
    announced: set[int] = set()
    try:
        async for message in connection:
            if not message or isinstance(message, str):
                continue
            channel = message[0]
            if channel not in announced:
                announced.add(channel)
            elif channel == _ERROR:
                said = message[1:].decode("utf-8", "replace")[:300].strip()
                why = f"port {port} of {pod} does not take connections: {said}"
                raise UnreachableError(why, code="port_unreachable")
            elif channel == _DATA:
                writer.write(message[1:])
                await writer.drain()
    except ConnectionClosed as error:
        raise UnreachableError(f"the connection to port {port} of {pod} was cut") from error
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        await connection.close()


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
