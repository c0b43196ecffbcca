"""The first request for a port of a run: with a ticket from a click in JupyterLab it leads to the address that has the key."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from tornado.web import HTTPError

from hyperpod_jlab.server.base import guarded, process_of
from hyperpod_jlab.server.port_keys import denied, place_of
from hyperpod_jlab.server.port_sandbox import KEY_MARK, PORT_PATTERN, SandboxedHandler

DOOR_PATTERN: Final = rf"{PORT_PATTERN}(?:/.*)?"


class PortDoor(SandboxedHandler):
    """Lets in who has a ticket. All else without a key ends here: links of other sites, bookmarks, other methods."""

    _ticket = ""

    async def prepare(self) -> None:  # type: ignore[override]  # as Jupyter's own APIHandler
        """As all of Jupyter's handlers; a check of the site takes the place of the XSRF cookie."""
        self._ticket = self.get_query_argument("ticket", "")
        self.hide(self.request.path)
        await super().prepare()

    def check_xsrf_cookie(self) -> None:
        """Nothing is done for a request other than GET."""

    @guarded("execute")
    async def get(self, run_id: str, port: str) -> None:
        """Turn a ticket into a key."""
        place = place_of(run_id, port)
        if self.request.method != "GET" or not self._ticket:
            raise denied()
        self._check_site()
        assert self.current_user is not None
        keys = process_of(self).port_keys
        key = keys.redeem(self._ticket, self.current_user, place)
        self.set_header("Cache-Control", "no-store")
        start = self.request.path.rstrip("/")
        self.redirect(f"{start}/{KEY_MARK}{key}/", status=HTTPStatus.SEE_OTHER)

    post = put = patch = delete = head = options = get

    def _check_site(self) -> None:
        """A ticket is used by JupyterLab's own page, or by the user's own hand. Browsers say nothing of sites on plain HTTP: then the Referer has to."""
        site = self.request.headers.get("Sec-Fetch-Site")
        ours = self.check_referer() if site is None else site in {"same-origin", "none"}
        if not ours or not self.check_origin():
            raise HTTPError(403, reason="Other sites do not open a port of a run")
