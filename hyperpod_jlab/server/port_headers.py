"""Headers on their way to a program in a run and back: Jupyter's own secrets stay here, and what the program sets stays in its place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

_HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_KEPT_HERE = frozenset(
    {"authorization", "content-length", "cookie", "host", "origin", "referer", "x-xsrftoken"}
)
_COOKIE = "hyperpod-port-"

_Headers = Iterable[tuple[str, str]]


def to_program(headers: _Headers, port: int, prefix: str) -> Iterator[tuple[bytes, bytes]]:
    """A request's headers as the program gets them: as if it had been asked on its own machine.

    Cookies are handed on only if the program itself has set them; Jupyter's, its token and its own addresses are not.
    """
    here = f"localhost:{port}"
    yield b"Host", here.encode()
    yield b"X-Forwarded-Prefix", prefix.encode("latin-1", "replace")
    for name, value in headers:
        lower = name.lower()
        if lower == "origin":
            yield b"Origin", f"http://{here}".encode()
        elif lower == "cookie" and (own := _own_cookies(value)):
            yield b"Cookie", own.encode("latin-1", "replace")
        elif lower not in _HOP_BY_HOP | _KEPT_HERE:
            yield name.encode("latin-1"), value.encode("latin-1", "replace")


def from_program(
    headers: Iterable[tuple[bytes, bytes]], port: int, prefix: str
) -> Iterator[tuple[str, str]]:
    """A response's headers as the browser gets them; cookies are the program's alone, under its own path."""
    for raw_name, raw_value in headers:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        lower = name.lower()
        if lower == "set-cookie":
            yield from (("Set-Cookie", line) for line in _placed(value, prefix))
        elif lower == "location":
            yield name, _location(value, port, prefix)
        elif lower not in _HOP_BY_HOP:
            yield name, value


def _own_cookies(line: str) -> str:
    pairs = (pair.strip() for pair in line.split(";"))
    return "; ".join(pair.removeprefix(_COOKIE) for pair in pairs if pair.startswith(_COOKIE))


def _placed(line: str, prefix: str) -> Iterator[str]:
    try:
        cookies = SimpleCookie(line)
    except CookieError:
        return
    for name, cookie in cookies.items():
        cookie.set(f"{_COOKIE}{name}", cookie.value, cookie.coded_value)
        cookie["path"] = prefix
        cookie["domain"] = ""
        yield cookie.OutputString()


def _location(value: str, port: int, prefix: str) -> str:
    """A redirect to the program itself leads back through here; others are its own business."""
    parts = urlsplit(value)
    ours = {f"localhost:{port}", f"127.0.0.1:{port}", ""}
    if parts.netloc not in ours or not parts.path.startswith("/"):
        return value
    rest = parts._replace(scheme="", netloc="", path=prefix + parts.path[1:])
    return rest.geturl()
