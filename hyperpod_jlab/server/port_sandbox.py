"""What both handlers of ports share: every answer, errors too, makes a sandboxed page, and no secret of an address gets into a log."""

from __future__ import annotations

import html
from http import HTTPStatus
from typing import Any, Final

from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.extension.handler import ExtensionHandlerMixin

from hyperpod_jlab.model.errors import HyperpodError
from hyperpod_jlab.server.base import API_PREFIX, AUTH_RESOURCE, ErrorShape
from hyperpod_jlab.server.port_headers import SANDBOX

PORT_PATTERN: Final = rf"{API_PREFIX}/runs/(?P<run_id>[^/]+)/ports/(?P<port>[^/]+)"
"""The path of a port."""
KEY_MARK: Final = "~"
"""Stands before the key in an address."""

_PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>{title}</title></head>
<body style="font: 16px/1.5 system-ui, sans-serif; max-width: 40em; margin: 3em auto; padding: 0 1em">
<h1 style="font-size: 1.3em">{title}</h1>
<p>{hint}</p>
</body>
</html>
"""


class SandboxedHandler(ExtensionHandlerMixin, ErrorShape, JupyterHandler):
    """Answers under the address of a port."""

    auth_resource = AUTH_RESOURCE
    _track_activity = False  # pages ask again and again by themselves

    @property
    def content_security_policy(self) -> str:
        """No page under such an address has Jupyter's origin, whatever is configured for others."""
        return SANDBOX

    def set_default_headers(self) -> None:
        """What every answer has, in place of what Jupyter adds to its own pages."""
        self.set_header("Content-Security-Policy", self.content_security_policy)
        self.set_header("Referrer-Policy", "no-referrer")
        self.set_header("X-Content-Type-Options", "nosniff")

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """A short page for a person, the one shape of errors for programs."""
        self.set_header("Cache-Control", "no-store")
        if not self.is_page:
            super().write_error(status_code, **kwargs)
            return
        error = (kwargs.get("exc_info") or (None, None))[1]
        if isinstance(error, HyperpodError):
            self.set_status(error.status)
            title, hint = error.message, error.hint or ""
        else:
            title, hint = HTTPStatus(status_code).phrase, str(getattr(error, "reason", "") or "")
        self.log.warning("%s %s: %s", self.request.method, self.request.path, title)
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.finish(_PAGE.format(title=html.escape(title), hint=html.escape(hint)))

    @property
    def is_page(self) -> bool:
        """Whether the browser asks for what it will show, in a tab or a frame."""
        headers = self.request.headers
        wanted = headers.get("Sec-Fetch-Dest")
        if wanted is not None:
            return wanted in {"document", "iframe", "frame"}
        return self.request.method == "GET" and "text/html" in headers.get("Accept", "")

    def hide(self, path: str) -> None:
        """Go on as if this had been the request's address: the server's log, also that of faults, has what stands there."""
        self.request.path = self.request.uri = path
