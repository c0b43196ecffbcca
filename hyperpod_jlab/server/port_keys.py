"""Access to ports in the browser: a one-time ticket for the first request, then a key in the URL.

A page of a run is sandboxed (see `port_proxy.response_headers`), so the browser sends no cookies with its requests. The key
replaces them: it opens one port of one node, gives no access to Jupyter, and expires when the server stops.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import cache
from http.cookies import CookieError, Morsel, SimpleCookie
from pathlib import Path
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from hyperpod_jlab.core.errors import DeniedError, InvalidInputError

if TYPE_CHECKING:
    from jupyter_server.auth import User


# --------------------------------------------------------------------------------------------------
# Cookie jar for programs in runs: cookies stay on this server, since the sandboxed page has none
# and Jupyter's origin must not get them.

_MAX_COOKIES = 64
_MAX_COOKIE_LENGTH = 4096


@dataclass(frozen=True)
class _Cookie:
    value: str
    expires_at: float | None


class ProgramCookies:
    """The cookies of one opened port, by name and path; number and size are limited."""

    def __init__(self) -> None:
        self._cookies: dict[tuple[str, str], _Cookie] = {}

    def add_header(self, header_for: str) -> None:
        """Store a ``Set-Cookie`` header; ignores invalid and oversized cookies."""
        try:
            cookies = (
                SimpleCookie(header_for)
                if len(header_for) <= _MAX_COOKIE_LENGTH
                else SimpleCookie()
            )
        except CookieError:
            return
        for name, cookie in cookies.items():
            path = cookie["path"] if cookie["path"].startswith("/") else "/"
            self._cookies.pop((name, path), None)
            expires_at = _expires_at(cookie)
            if expires_at is None or expires_at > time.time():
                self._cookies[name, path] = _Cookie(cookie.coded_value, expires_at)
        while len(self._cookies) > _MAX_COOKIES:
            del self._cookies[next(iter(self._cookies))]

    def header_for(self, path: str) -> str:
        """The ``Cookie`` header for a path of the program; ``""`` if there are none."""
        now = time.time()
        return "; ".join(
            f"{name}={cookie.value}"
            for (name, cookie_path), cookie in self._cookies.items()
            if _covers(cookie_path, path) and (cookie.expires_at is None or cookie.expires_at > now)
        )


def _covers(cookie_path: str, path: str) -> bool:
    return path == cookie_path or path.startswith(
        cookie_path if cookie_path.endswith("/") else f"{cookie_path}/"
    )


def _expires_at(cookie: Morsel[str]) -> float | None:
    """When a cookie expires (Unix seconds); None for a session cookie."""
    try:
        if cookie["max-age"]:
            return time.time() + int(cookie["max-age"])
        if cookie["expires"]:
            return parsedate_to_datetime(cookie["expires"]).timestamp()
    except (ValueError, OverflowError):
        pass
    return None


TICKET_TTL_S: Final = 60.0
"""Lifetime of an unused ticket."""
IDLE_TIMEOUT_S: Final = 8 * 3600.0
"""Lifetime of a key after its last request."""

_MAX_TICKETS = 64
_MAX_KEYS = 64
_ADDRESS = re.compile(r"(?:([0-9]{1,5}):)?([0-9]{1,5})")


@dataclass(frozen=True)
class PortAddress:
    """A port of a run's node.

    Attributes:
        run_id: The run.
        node: The node's rank.
        port: The port; its existence is checked on connect.
    """

    run_id: str
    node: int
    port: int


@dataclass(frozen=True)
class PortSession:
    """The session of a key.

    Attributes:
        address: The port.
        user: The user who opened it.
        cookies: The program's cookies.
    """

    address: PortAddress
    user: User
    cookies: ProgramCookies = field(default_factory=ProgramCookies)


def parse_address(run_id: str, port: str) -> PortAddress:
    """Parse a port: a number, or a node's rank and a number such as 1:6006.

    Raises:
        InvalidInputError: It is invalid.
    """
    match = _ADDRESS.fullmatch(port)
    if match is None:
        raise InvalidInputError(
            f"'{port[:40]}' is not a port; use a number, or a node rank and a number, such as 1:6006",
            detail={"field": "port"},
        )
    return PortAddress(run_id, int(match[1] or 0), int(match[2]))


class PortKeys:
    """The tickets and keys of one server."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._tickets: _SecretStore[_Ticket] = _SecretStore(_MAX_TICKETS, TICKET_TTL_S, now)
        self._sessions: _SecretStore[PortSession] = _SecretStore(_MAX_KEYS, IDLE_TIMEOUT_S, now)

    def issue(self, username: str, address: PortAddress) -> str:
        """Issue a ticket that opens this port once for this user, within `TICKET_TTL_S`."""
        return self._tickets.add(_Ticket(username, address))

    def redeem(self, ticket: str, user: User, address: PortAddress) -> str:
        """Redeem a ticket for a key. The ticket is used up, even if it does not match.

        Raises:
            DeniedError: No such ticket for this user and port.
        """
        entry = self._tickets.pop(ticket)
        if entry != _Ticket(user.username, address):
            raise denied_error()
        return self._sessions.add(PortSession(address, user))

    def find(self, key: str, address: PortAddress) -> PortSession:
        """The session of a key; updates its last use.

        Raises:
            DeniedError: No such key for this port.
        """
        session = self._sessions.touch(key)
        if session is None or session.address != address:
            raise denied_error()
        return session


def denied_error() -> DeniedError:
    """The error for a missing or invalid ticket or key."""
    return DeniedError(
        "This address does not open the port",
        code="port_not_opened",
        hint="Open the port from the page of the run in JupyterLab: Ports and shells, Open port.",
    )


@dataclass(frozen=True)
class _Ticket:
    username: str
    address: PortAddress


_T = TypeVar("_T")


class _SecretStore(Generic[_T]):
    """Items by secret. Stores only the secrets' SHA-256, so that lookup timing reveals nothing about a secret."""

    def __init__(self, limit: int, seconds: float, now: Callable[[], float]) -> None:
        self._items: OrderedDict[bytes, tuple[float, _T]] = OrderedDict()
        self._limit = limit
        self._seconds = seconds
        self._now = now

    def add(self, item: _T) -> str:
        """Add an item; returns its secret. When full, drops the least recently used item."""
        secret = secrets.token_urlsafe(32)
        self._items[_digest(secret)] = (self._now(), item)
        while len(self._items) > self._limit:
            self._items.popitem(last=False)
        return secret

    def pop(self, secret: str) -> _T | None:
        """Remove and return an item."""
        used_at, item = self._items.pop(_digest(secret), (0.0, None))
        return item if self._now() - used_at <= self._seconds else None

    def touch(self, secret: str) -> _T | None:
        """Return an item and update its last use."""
        item = self.pop(secret)
        if item is not None:
            self._items[_digest(secret)] = (self._now(), item)
        return item


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


# --------------------------------------------------------------------------------------------------
# The first script of a program's HTML pages: replaces features that the browser denies to a
# sandboxed page.

SCRIPT_PATH: Final = ".hyperpod/page.js"
"""The script's path below the key's URL: a file of the page's own origin passes a policy that forbids inline scripts."""

_MIN_BYTES = 1024
# A script before the doctype would switch the browser to quirks mode.
_DOCUMENT_START = re.compile(
    rb"(?:\xef\xbb\xbf)?(?:\s|<!--.*?-->)*(?:<!doctype[^>]*>)?", re.IGNORECASE | re.DOTALL
)


@cache
def page_script() -> bytes:
    """The script."""
    return (Path(__file__).parent / "port_page.js").read_bytes()


class PageStart:
    """Inserts the script's tag at the start of a streamed page.

    Args:
        prefix: The program's path, including the key.
    """

    def __init__(self, prefix: str) -> None:
        self.tag = f'<script src="{prefix}{SCRIPT_PATH}"></script>'.encode("latin-1", "replace")
        self._buffer: bytes | None = b""

    def feed(self, chunk: bytes) -> bytes:
        """The bytes that can be forwarded so far."""
        if self._buffer is None:
            return chunk
        self._buffer += chunk
        return self.end() if len(self._buffer) >= _MIN_BYTES else b""

    def end(self) -> bytes:
        """The remaining bytes."""
        buffer, self._buffer = self._buffer, None
        if buffer is None:
            return b""
        match = _DOCUMENT_START.match(buffer)
        insert_at = match.end() if match else 0
        return buffer[:insert_at] + self.tag + buffer[insert_at:]


def is_html(status: int, content_type: str, encoding: str) -> bool:
    """Whether a response is a complete HTML page that can be modified."""
    kind, _, parameters = content_type.lower().partition(";")
    return (
        kind.strip() == "text/html"
        and "utf-16" not in parameters
        and encoding.lower() in {"", "identity"}
        and status not in {204, 206, 304}
    )
