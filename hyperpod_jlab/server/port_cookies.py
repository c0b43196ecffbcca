"""Cookies that a program in a run sets: they stay in this server, since its sandboxed page has none and Jupyter's origin must not get them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http.cookies import CookieError, Morsel, SimpleCookie

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
