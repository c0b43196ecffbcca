"""How connections to an API server are held, and what their failures mean."""

from __future__ import annotations

import socket
import ssl
from typing import Any
from urllib.parse import urlsplit

import httpx

from hyperpod_jlab.model.errors import HyperpodError, UnreachableError
from hyperpod_jlab.orchestrators.kubernetes.api.access import Access
from hyperpod_jlab.orchestrators.kubernetes.api.complaints import ANSWER_LOST, CUT

_TIMEOUT = httpx.Timeout(30.0, connect=10.0, pool=30.0)
_STREAMING = httpx.Timeout(None, connect=10.0)
AT_ONCE = 10
"""Requests at a time. Who has more waits before the pool: its own queue is searched through at each step of each request."""
OPENING = 64
"""Streams that are opened at a time: of five hundred handshakes at once the last ones would run out of time."""
# As many are kept as there may be: of a hundred requests at once each would otherwise make a connection anew.
_REQUESTS = httpx.Limits(
    max_connections=None, max_keepalive_connections=AT_ONCE, keepalive_expiry=20.0
)
_WITHOUT = httpx.Limits(max_connections=None, max_keepalive_connections=0)
_EACH = 16
"""Streams of a pool."""
_SILENCE: tuple[tuple[str, int], ...] = (
    ("TCP_KEEPIDLE", 15),
    ("TCP_KEEPINTVL", 5),
    ("TCP_KEEPCNT", 3),
)
"""A stream may be silent for days, so the other machine is asked whether it is there: after 30 s without an answer the stream is cut."""


def pool(access: Access) -> httpx.AsyncClient:
    """Connections for requests that are answered at once."""
    return _client(access, _TIMEOUT, _REQUESTS)


class StreamPools:
    """Connections for streams: any number of them, so that none waits for another.

    A pool goes through all of its connections at each opening and closing, so that there are several small ones.
    """

    def __init__(self, access: Access) -> None:
        self._access = access
        self._pools: dict[httpx.AsyncClient, int] = {}

    def take(self) -> httpx.AsyncClient:
        """A client for one stream, to be given back."""
        found = next((one for one, streams in self._pools.items() if streams < _EACH), None)
        if found is None:
            found = _client(self._access, _STREAMING, _WITHOUT)
            self._pools[found] = 0
        self._pools[found] += 1
        return found

    def give_back(self, client: httpx.AsyncClient) -> None:
        """Its stream has ended."""
        if client in self._pools:
            self._pools[client] -= 1

    async def close(self) -> None:
        """Close all connections."""
        pools, self._pools = self._pools, {}
        for client in pools:
            await client.aclose()


def _client(access: Access, timeout: httpx.Timeout, limits: httpx.Limits) -> httpx.AsyncClient:
    transport = httpx.AsyncHTTPTransport(
        verify=access.verify,
        limits=limits,
        proxy=access.proxy,
        socket_options=_options(),
        trust_env=False,
    )
    return httpx.AsyncClient(
        base_url=access.server,
        transport=transport,
        timeout=timeout,
        trust_env=False,  # the kubeconfig says by which proxy; netrc is for others
        headers={"User-Agent": "hyperpod-jlab"},
    )


def _options() -> list[tuple[int, int, int]]:
    found = [
        (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
        (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    ]
    for name, value in _SILENCE:
        option = getattr(socket, name, None)  # not everywhere
        if option is not None:
            found.append((socket.IPPROTO_TCP, option, value))
    return found


def not_sent(error: httpx.TransportError, access: Access) -> HyperpodError | None:
    """The error for a request that has surely not reached the server; None when it may have."""
    if not isinstance(
        error,
        httpx.ConnectError
        | httpx.ConnectTimeout
        | httpx.PoolTimeout
        | httpx.ProxyError
        | httpx.UnsupportedProtocol,
    ):
        return None
    message, code, hint = _connecting(error, access)
    return UnreachableError(message, code=code, hint=hint, detail={"server": shown_server(access)})


def _connecting(error: httpx.TransportError, access: Access) -> tuple[str, str | None, str]:
    cause = _cause(error)
    if isinstance(cause, ssl.SSLCertVerificationError):
        return (
            f"the API server's certificate is not the expected one: {cause.verify_message}",
            "certificate",
            "the kubeconfig's certificate-authority or server address is wrong or old; fetch it anew",
        )
    if isinstance(cause, ssl.SSLError):
        return (
            f"no secure connection to the API server: {cause.reason or 'it speaks no TLS'}",
            "tls",
            "look at the server's address, the client certificate and the proxy in the kubeconfig",
        )
    if isinstance(cause, socket.gaierror):
        return (
            f"the name of the API server at {shown_server(access)} is not known here",
            "dns",
            "is the cluster's network (VPN, VPC) joined? A private EKS endpoint is known in its VPC only",
        )
    if isinstance(error, httpx.ProxyError):
        return ("the proxy does not let us through", "proxy", "look at proxy-url and HTTPS_PROXY")
    if isinstance(error, httpx.UnsupportedProtocol):
        return ("the API server's address is none", "address", "look at server in the kubeconfig")
    how = "does not answer" if isinstance(error, httpx.TimeoutException) else "cannot be reached"
    via = " through the proxy" if access.proxy else ""
    return (
        f"the API server at {shown_server(access)} {how}{via}",
        None,
        "see: kubectl cluster-info",
    )


def shown_server(access: Access) -> str:
    """The server's address as messages show it: without what may be secret in it."""
    try:
        parts = urlsplit(access.server)
    except ValueError:
        return access.server.rpartition("@")[2][:_SHOWN]
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"[:_SHOWN]


_SHOWN = 300
"""Characters of an address that are shown."""


def _cause(error: BaseException) -> BaseException:
    """What lies at the bottom."""
    inner: Any = error.__cause__ or error.__context__
    while inner is not None and not isinstance(error, ssl.SSLError | socket.gaierror):
        error, inner = inner, inner.__cause__ or inner.__context__
    return error


def answer_broken(error: httpx.TransportError, verb: str, access: Access) -> UnreachableError:
    """The error for a request whose answer did not come, or not whole."""
    late = isinstance(error, httpx.TimeoutException)
    how = "does not answer in time" if late else "broke off its answer"
    return UnreachableError(
        f"the API server at {shown_server(access)} {how}",
        code=None if verb == "GET" else ANSWER_LOST,
        hint="see: kubectl cluster-info",
        detail={"server": shown_server(access)},
    )


def stream_cut(error: Exception) -> UnreachableError:
    """The error for a stream that ended in the middle."""
    return UnreachableError("the connection was cut", code=CUT, detail={"by": type(error).__name__})
