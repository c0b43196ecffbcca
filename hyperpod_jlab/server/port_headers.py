"""Headers on their way to a program in a run and back: Jupyter's own secrets stay here, and what the program says reaches its own page alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import urlsplit

SANDBOX: Final = "sandbox allow-scripts allow-forms allow-modals allow-popups allow-downloads"
"""The Content-Security-Policy of every answer.

Without ``allow-same-origin`` a page has an origin that equals no other: no cookies, no storage, no reading of Jupyter's pages or API. It holds for
frames and pop-ups that the page opens, too. No ``frame-ancestors`` stands beside it: such an origin never matches one, so a program could not show
frames of its own, and who does not know the key has nothing to frame.
"""

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
    # To the program its own page is no stranger; that it is sandboxed is ours to know.
    | {"sec-fetch-site"}
)
_FOR_THE_ORIGIN = frozenset(
    {
        # What would hold for all of Jupyter's address, or outlive the run:
        "accept-ch",
        "alt-svc",
        "clear-site-data",
        "critical-ch",
        "expect-ct",
        "nel",
        "origin-agent-cluster",
        "public-key-pins",
        "public-key-pins-report-only",
        "report-to",
        "reporting-endpoints",
        "service-worker-allowed",
        "set-cookie",
        "strict-transport-security",
        "www-authenticate",
        # What says who may read, frame or open the page, which is ours to say, and wrong for a sandboxed one:
        "access-control-allow-credentials",
        "access-control-allow-headers",
        "access-control-allow-methods",
        "access-control-allow-origin",
        "access-control-allow-private-network",
        "access-control-expose-headers",
        "access-control-max-age",
        "cross-origin-embedder-policy",
        "cross-origin-embedder-policy-report-only",
        "cross-origin-opener-policy",
        "cross-origin-opener-policy-report-only",
        "cross-origin-resource-policy",
        "link",
        "referrer-policy",
        "x-frame-options",
    }
)

_Headers = Iterable[tuple[str, str]]


def to_program(
    headers: _Headers, port: int, prefix: str, cookies: str, *, plain: bool = False
) -> Iterator[tuple[bytes, bytes]]:
    """A request's headers as the program gets them: as if it had been asked on its own machine.

    Args:
        headers: As the browser sent them. Its cookies are Jupyter's, and stay here with its token and its addresses.
        port: The program's.
        prefix: The path under which the browser sees the program.
        cookies: The program's own, ``""`` for none.
        plain: Ask for the body without a compression.
    """
    here = f"localhost:{port}"
    yield b"Host", here.encode()
    yield b"X-Forwarded-Prefix", prefix.encode("latin-1", "replace")
    if cookies:
        yield b"Cookie", cookies.encode("latin-1", "replace")
    for name, value in headers:
        lower = name.lower()
        if lower == "origin":
            yield b"Origin", f"http://{here}".encode()
        elif lower == "accept-encoding" and plain:
            yield b"Accept-Encoding", b"identity"
        elif lower not in _HOP_BY_HOP | _KEPT_HERE:
            yield name.encode("latin-1"), value.encode("latin-1", "replace")


def from_program(
    headers: Iterable[tuple[bytes, bytes]], port: int, prefix: str
) -> Iterator[tuple[str, str]]:
    """A response's headers as the browser gets them: what concerns the program's page alone."""
    for raw_name, raw_value in headers:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        lower = name.lower()
        if lower == "location":
            yield name, _location(value, port, prefix)
        elif lower == "content-security-policy":
            yield from ((name, policy) for policy in _own_policy(value))
        elif lower not in _HOP_BY_HOP | _FOR_THE_ORIGIN:
            yield name, value


def cookies_of(headers: Iterable[tuple[bytes, bytes]]) -> list[str]:
    """The values of a response's ``Set-Cookie``."""
    return [value.decode("latin-1") for name, value in headers if name.lower() == b"set-cookie"]


def readable(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """What lets a sandboxed page read an answer of its own program: its origin is called ``null``."""
    yield "Access-Control-Allow-Origin", "null"
    yield "Access-Control-Allow-Credentials", "true"
    if shown := ", ".join(sorted(set(names))):
        yield "Access-Control-Expose-Headers", shown


def _own_policy(value: str) -> Iterator[str]:
    """A program's policies without who may frame it (see `SANDBOX`), and with the workers that its page's first script makes (see `port_page`)."""
    for policy in value.split(","):
        rules: dict[str, list[str]] = {}
        for rule in policy.split(";"):
            if words := rule.split():
                rules.setdefault(words[0].lower(), words[1:])
        rules.pop("frame-ancestors", None)
        for name in ("worker-src", "child-src", "script-src", "default-src"):
            if name in rules:
                sources = [word for word in rules[name] if word.lower() != "'none'"]
                rules["worker-src"] = [*sources, "blob:"]
                break
        if rules:
            yield "; ".join(" ".join([name, *sources]) for name, sources in rules.items())


def _location(value: str, port: int, prefix: str) -> str:
    """A redirect to the program itself leads back through here; others are its own business."""
    parts = urlsplit(value)
    ours = {f"localhost:{port}", f"127.0.0.1:{port}", ""}
    if parts.netloc not in ours or not parts.path.startswith("/"):
        return value
    rest = parts._replace(scheme="", netloc="", path=prefix + parts.path[1:])
    return rest.geturl()
