"""Who may use a port in the browser: a ticket for its first request, a key in its address for all others.

A page of a run is sandboxed (see `port_headers`), so the browser sends no cookies with what the page asks for. The key
takes their place: it opens one port of one node, says nothing to Jupyter, and is forgotten when the server stops.
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
# Cookies that a program in a run sets: they stay in this server, since its sandboxed page has none and Jupyter's origin must not get them.

_MOST = 64
_MOST_CHARACTERS = 4096


@dataclass(frozen=True)
class _Cookie:
    value: str
    until: float | None


class ProgramCookies:
    """The cookies of one opened port, by name and path; a few of a bounded size."""

    def __init__(self) -> None:
        self._cookies: dict[tuple[str, str], _Cookie] = {}

    def take(self, line: str) -> None:
        """Keep what a ``Set-Cookie`` says; what is no cookie, or too long, is left out."""
        try:
            found = SimpleCookie(line) if len(line) <= _MOST_CHARACTERS else SimpleCookie()
        except CookieError:
            return
        for name, cookie in found.items():
            path = cookie["path"] if cookie["path"].startswith("/") else "/"
            self._cookies.pop((name, path), None)
            until = _until(cookie)
            if until is None or until > time.time():
                self._cookies[name, path] = _Cookie(cookie.coded_value, until)
        while len(self._cookies) > _MOST:
            del self._cookies[next(iter(self._cookies))]

    def line(self, path: str) -> str:
        """The ``Cookie`` of a request for a path of the program, ``""`` for none."""
        now = time.time()
        return "; ".join(
            f"{name}={cookie.value}"
            for (name, place), cookie in self._cookies.items()
            if _covers(place, path) and (cookie.until is None or cookie.until > now)
        )


def _covers(place: str, path: str) -> bool:
    return path == place or path.startswith(place if place.endswith("/") else f"{place}/")


def _until(cookie: Morsel[str]) -> float | None:
    """When a cookie ends, in seconds of Unix time; None for the session's end."""
    try:
        if cookie["max-age"]:
            return time.time() + int(cookie["max-age"])
        if cookie["expires"]:
            return parsedate_to_datetime(cookie["expires"]).timestamp()
    except (ValueError, OverflowError):
        pass
    return None


TICKET_SECONDS: Final = 60.0
"""How long a ticket waits to be used."""
IDLE_SECONDS: Final = 8 * 3600.0
"""How long a key stays after its last request."""

_MOST_TICKETS = 64
_MOST_KEYS = 64
_PLACE = re.compile(r"(?:([0-9]{1,5}):)?([0-9]{1,5})")


@dataclass(frozen=True)
class PortAddress:
    """A port of a run's node.

    Attributes:
        run_id: The run.
        node: The node's rank.
        port: The port; whether there can be such a one is asked when it is connected.
    """

    run_id: str
    node: int
    port: int


@dataclass(frozen=True)
class PortSession:
    """What a key opens.

    Attributes:
        place: The port.
        user: Who opened it.
        cookies: Those that the program has set.
    """

    place: PortAddress
    user: User
    cookies: ProgramCookies = field(default_factory=ProgramCookies)


def place_of(run_id: str, port: str) -> PortAddress:
    """A port from its address: a number, or a node's rank and a number as 1:6006.

    Raises:
        InvalidInputError: It is none.
    """
    found = _PLACE.fullmatch(port)
    if found is None:
        raise InvalidInputError(
            f"'{port[:40]}' is not a port; use a number, or a node rank and a number, such as 1:6006",
            detail={"field": "port"},
        )
    return PortAddress(run_id, int(found[1] or 0), int(found[2]))


class PortKeys:
    """The tickets and keys of one server."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._tickets: _Bounded[_Ticket] = _Bounded(_MOST_TICKETS, TICKET_SECONDS, now)
        self._sessions: _Bounded[PortSession] = _Bounded(_MOST_KEYS, IDLE_SECONDS, now)

    def issue(self, username: str, place: PortAddress) -> str:
        """A ticket, with which this user can open this port once, within `TICKET_SECONDS`."""
        return self._tickets.add(_Ticket(username, place))

    def redeem(self, ticket: str, user: User, place: PortAddress) -> str:
        """The key for a ticket, which is used up, whether it fits or not.

        Raises:
            DeniedError: There is no such ticket for this user and port.
        """
        found = self._tickets.pop(ticket)
        if found != _Ticket(user.username, place):
            raise denied()
        return self._sessions.add(PortSession(place, user))

    def find(self, key: str, place: PortAddress) -> PortSession:
        """What a key opens; it has been used now.

        Raises:
            DeniedError: There is no such key for this port.
        """
        found = self._sessions.use(key)
        if found is None or found.place != place:
            raise denied()
        return found


def denied() -> DeniedError:
    """What whoever has no ticket and no key is told."""
    return DeniedError(
        "This address does not open the port",
        code="port_not_opened",
        hint="Open the port from the page of the run in JupyterLab: Ports and shells, Open port.",
    )


@dataclass(frozen=True)
class _Ticket:
    username: str
    place: PortAddress


_T = TypeVar("_T")


class _Bounded(Generic[_T]):
    """Things by secrets of which only the SHA-256 is kept: how long a look-up takes says nothing of a secret."""

    def __init__(self, most: int, seconds: float, now: Callable[[], float]) -> None:
        self._things: OrderedDict[bytes, tuple[float, _T]] = OrderedDict()
        self._most = most
        self._seconds = seconds
        self._now = now

    def add(self, thing: _T) -> str:
        """Keep a thing; its secret. Too many, and the one that was used longest ago goes."""
        secret = secrets.token_urlsafe(32)
        self._things[_digest(secret)] = (self._now(), thing)
        while len(self._things) > self._most:
            self._things.popitem(last=False)
        return secret

    def pop(self, secret: str) -> _T | None:
        """Take a thing out."""
        since, thing = self._things.pop(_digest(secret), (0.0, None))
        return thing if self._now() - since <= self._seconds else None

    def use(self, secret: str) -> _T | None:
        """A thing, which stays and counts as used now."""
        thing = self.pop(secret)
        if thing is not None:
            self._things[_digest(secret)] = (self._now(), thing)
        return thing


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


# --------------------------------------------------------------------------------------------------
# What a program's HTML pages get as their first script: stand-ins for what the browser forbids to a sandboxed page.

SCRIPT_PATH: Final = ".hyperpod/page.js"
"""Where the script is, below the key's address: a file of the page's own address passes a policy that forbids inline scripts."""

_ENOUGH = 1024
# A script before the doctype would put the page into the browser's quirks mode.
_BEFORE = re.compile(
    rb"(?:\xef\xbb\xbf)?(?:\s|<!--.*?-->)*(?:<!doctype[^>]*>)?", re.IGNORECASE | re.DOTALL
)


@cache
def page_script() -> bytes:
    """The script."""
    return (Path(__file__).parent / "port_page.js").read_bytes()


class PageStart:
    """Puts the script's tag at the start of a page whose bytes pass through.

    Args:
        prefix: The path of the program, key included.
    """

    def __init__(self, prefix: str) -> None:
        self.tag = f'<script src="{prefix}{SCRIPT_PATH}"></script>'.encode("latin-1", "replace")
        self._begun: bytes | None = b""

    def feed(self, chunk: bytes) -> bytes:
        """What can be sent on by now."""
        if self._begun is None:
            return chunk
        self._begun += chunk
        return self.end() if len(self._begun) >= _ENOUGH else b""

    def end(self) -> bytes:
        """What is left."""
        begun, self._begun = self._begun, None
        if begun is None:
            return b""
        found = _BEFORE.match(begun)
        place = found.end() if found else 0
        return begun[:place] + self.tag + begun[place:]


def is_html(status: int, content_type: str, encoding: str) -> bool:
    """Whether an answer is a whole page whose bytes can be added to."""
    kind, _, parameters = content_type.lower().partition(";")
    return (
        kind.strip() == "text/html"
        and "utf-16" not in parameters
        and encoding.lower() in {"", "identity"}
        and status not in {204, 206, 304}
    )
