"""Ports of runs in the browser: who may open them, what the address opens, and what passes in either direction."""

from __future__ import annotations

import json
import logging
import socket

import pytest
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler

from hyperpod_jlab.engines.local.engine import LocalOrchestrator
from hyperpod_jlab.server.port_keys import PortKeys
from hyperpod_jlab.server.port_proxy import SANDBOX
from tests import ports_here

OPENED = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "navigate"}
PAGE = {"Sec-Fetch-Dest": "document"}


class Program(RequestHandler):
    """Says what it was asked; a page, where one is asked for."""

    def get(self, path):
        for line in filter(None, self.get_query_argument("set", "").split("|")):
            name, _, value = line.partition(":")
            self.add_header(name, value)
        if path == "page":
            self.finish("<!doctype html><title>x</title>" + "<p>y" * 1000)
        elif path == "away":
            self.redirect("/there?x=1")
        else:
            request = self.request
            said = {"method": request.method, "uri": request.uri, "body": request.body.decode()}
            self.finish({**said, "headers": list(request.headers.get_all())})

    post = put = delete = patch = options = get

    def check_xsrf_cookie(self):
        """None."""


@pytest.fixture
async def program(monkeypatch):
    """A program on a port of this machine, which the embedded cluster lets in."""
    monkeypatch.setattr(LocalOrchestrator, "ports", ports_here.PortsHere())
    (socket,) = bind_sockets(0, "127.0.0.1")
    server = HTTPServer(Application([("/(.*)", Program)]))
    server.add_sockets([socket])
    yield socket.getsockname()[1]
    server.stop()
    await server.close_all_connections()


@pytest.fixture
async def run_id(api, tmp_path):
    """A run whose program runs: the run is running a moment before."""
    started = tmp_path / "started"
    run = await api.submit(f"touch {started}; sleep 60")
    await api.until(run["run_id"], lambda run: run["state"] == "running" and started.exists())
    return run["run_id"]


class Browser:
    """One who has logged in with cookies, and has the port open."""

    def __init__(self, api, fetch, run_id, port):
        self.api, self.fetch, self.run_id, self.port = api, fetch, run_id, port
        self.cookies = {}
        self.key = ""

    @property
    def place(self):
        return f"runs/{self.run_id}/ports/{self.port}"

    async def ticket(self):
        """Click on Open port."""
        self.cookies = await self.api.browser()
        xsrf = dict(pair.split("=", 1) for pair in self.cookies["Cookie"].split("; "))["_xsrf"]
        headers = {**self.cookies, "X-XSRFToken": xsrf}
        status, opened = await self.api.request("POST", f"{self.place}/open", {}, headers=headers)
        assert status == 200, opened
        assert opened["path"] == f"{self.place}/"
        return opened["ticket"]

    async def enter(self, ticket, **headers):
        """The first request."""
        words = ("hyperpod", "api", "v1", *self.place.split("/"), "")
        return await self.fetch(
            *words,
            params={"ticket": ticket},
            headers={**self.cookies, **(headers or OPENED)},
            raise_error=False,
            follow_redirects=False,
        )

    async def open(self):
        """Have a key."""
        response = await self.enter(await self.ticket())
        assert response.code == 303, response.body
        self.key = response.headers["Location"].rstrip("/").rpartition("/")[2]
        return self

    async def ask(self, path="x", verb="GET", body=None, query=None, **headers):
        """A request of the program's page, which has no cookies."""
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        words = ("hyperpod", "api", "v1", *self.place.split("/"), self.key, *path.split("/"))
        return await self.fetch(
            *words,
            method=verb,
            body=body,
            params=query or {},
            headers={"Authorization": "", "Origin": "null", **headers},
            raise_error=False,
            follow_redirects=False,
            allow_nonstandard_methods=True,
        )


@pytest.fixture
async def browser(api, jp_fetch, run_id, program):
    """A browser that has the program open."""
    return await Browser(api, jp_fetch, run_id, program).open()


def said(response):
    """What the program was asked; its headers by their small names."""
    assert response.code == 200, response.body
    answer = json.loads(response.body)
    return {**answer, "headers": {name.lower(): value for name, value in answer["headers"]}}


def is_sandboxed(response):
    policies = response.headers.get_list("Content-Security-Policy")
    return SANDBOX in policies and "allow-same-origin" not in SANDBOX


async def test_a_ticket_opens_its_port_once(browser):
    assert said(await browser.ask("a/b", query={"q": "1"}))["uri"] == "/a/b?q=1"
    ticket = await browser.ticket()
    assert (await browser.enter(ticket)).code == 303
    again = await browser.enter(ticket)
    assert (again.code, is_sandboxed(again)) == (403, True)
    assert json.loads(again.body)["code"] == "port_not_opened"


async def test_a_ticket_is_for_its_user_its_run_and_its_port(browser, api, program):
    right = {"run_id": browser.run_id, "port": program}
    another = {"cookies": await api.browser()}
    for wrong in ({"run_id": "other"}, {"port": f"1:{program}"}, another):
        ticket = await browser.ticket()
        vars(browser).update(wrong)
        assert (await browser.enter(ticket)).code == 403
        vars(browser).update(right)


async def test_a_key_is_for_its_run_and_its_port(browser, program):
    key = browser.key
    for name, value in (("run_id", "other"), ("port", f"1:{program}"), ("port", 80)):
        before = getattr(browser, name)
        setattr(browser, name, value)
        assert (await browser.ask()).code == 403
        setattr(browser, name, before)
    for browser.key in ("~", "~x", f"{key}x", key[:-1], f"~{'é' * 10}"):
        response = await browser.ask()
        assert (response.code, is_sandboxed(response)) == (403, True)
    browser.key = key
    assert (await browser.ask()).code == 200


@pytest.mark.parametrize("verb", ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH"])
async def test_without_ticket_and_key_nothing_passes_for_a_user_either(browser, verb):
    body = "x" if verb in {"POST", "PUT", "PATCH"} else None
    for path in ("", "/", "/index.html", "/?ticket=wrong"):
        words = f"{browser.place}{path}".partition("?")
        query = {"ticket": "wrong"} if words[1] else {}
        response = await browser.api.raw(verb, words[0], body, query=query)
        assert (response.code, is_sandboxed(response)) == (403, True)


async def test_who_comes_without_a_key_reads_what_to_do(browser):
    headers = {**browser.cookies, **OPENED, **PAGE}
    response = await browser.api.raw("GET", f"{browser.place}/", headers=headers)
    assert (response.code, is_sandboxed(response)) == (403, True)
    assert b"from the page of the run in JupyterLab" in response.body
    assert "text/html" in response.headers["Content-Type"]


async def test_who_is_not_logged_in_gets_no_key(browser):
    ticket = await browser.ticket()
    browser.cookies = {"Authorization": ""}
    response = await browser.enter(ticket)
    assert response.code == 302
    assert "/login" in response.headers["Location"]
    assert ticket not in response.headers["Location"]


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"Sec-Fetch-Site": "same-origin"}, 303),
        ({"Sec-Fetch-Site": "none"}, 303),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Referer": "http://{host}/lab"}, 303),
        ({"Referer": "http://evil.example/{host}"}, 403),
        ({"Accept": "*/*"}, 403),
        ({"Sec-Fetch-Site": "same-origin", "Origin": "http://evil.example"}, 403),
    ],
)
async def test_other_sites_cannot_use_a_ticket_on_plain_http_either(browser, headers, code):
    ticket = await browser.ticket()
    host = browser.cookies["Host"]
    filled = {name: value.replace("{host}", host) for name, value in headers.items()}
    assert (await browser.enter(ticket, **filled)).code == code


async def test_other_sites_cannot_use_a_key(browser):
    for origin in ("http://evil.example", f"http://{browser.cookies['Host']}"):
        response = await browser.ask(Origin=origin)
        assert response.code == 403
        assert "Access-Control-Allow-Origin" not in response.headers


async def test_the_authorizer_is_asked_for_execute_each_time(browser, authorizer):
    ticket = await browser.ticket()
    authorizer.asked = []
    authorizer.answer = False
    assert (await browser.ask()).code == 403
    assert (await browser.enter(ticket)).code == 403
    status, _ = await browser.api.request("POST", f"{browser.place}/open", {})
    assert status == 403
    assert authorizer.asked == [("execute", "hyperpod")] * 3


async def test_every_answer_is_a_sandboxed_page_that_only_the_page_itself_may_read(browser):
    for path, query in (
        ("page", {}),
        ("away", {}),
        ("x", {"set": "Content-Type:image/svg+xml"}),
        ("x", {"set": "Content-Security-Policy:sandbox allow-same-origin allow-scripts"}),
        (".hyperpod/page.js", {}),
    ):
        response = await browser.ask(path, query=query)
        assert response.code < 400, response.body
        assert is_sandboxed(response)
        assert response.headers["Access-Control-Allow-Origin"] == "null"
        assert response.headers["Referrer-Policy"] == "no-referrer"
    assert "Access-Control-Allow-Origin" not in (await browser.ask(Origin="")).headers


async def test_a_preflight_is_answered_here(browser):
    asked = {"Access_Control_Request_Method": "PUT", "Access_Control_Request_Headers": "x-mine"}
    response = await browser.ask("x", "OPTIONS", **asked)
    assert (response.code, is_sandboxed(response)) == (204, True)
    assert response.headers["Access-Control-Allow-Methods"] == "PUT"
    assert response.headers["Access-Control-Allow-Headers"] == "x-mine"
    assert said(await browser.ask("x", "PUT", "body", X_Mine="1"))["body"] == "body"


@pytest.mark.parametrize(
    "header",
    [
        "Service-Worker-Allowed:/",
        'Clear-Site-Data:"cookies"',
        "Strict-Transport-Security:max-age=1000",
        "Set-Cookie:_xsrf=evil; Path=/",
        "Alt-Svc:clear",
        "NEL:{}",
        "Report-To:{}",
        "WWW-Authenticate:Basic",
        "Cross-Origin-Opener-Policy:same-origin",
        "Access-Control-Allow-Headers:x",
        "X-Frame-Options:DENY",
        "Link:</x>; rel=preload",
    ],
)
async def test_headers_that_reach_beyond_the_page_stay_here(browser, header):
    response = await browser.ask(query={"set": f"{header}|X-Own:1"})
    assert response.code == 200
    assert header.partition(":")[0] not in response.headers
    assert response.headers["X-Own"] == "1"
    assert "X-Own" in response.headers["Access-Control-Expose-Headers"]


async def test_jupyters_secrets_do_not_reach_the_program(browser, jp_serverapp):
    token = jp_serverapp.identity_provider.token
    response = await browser.ask(
        "x",
        "POST",
        "body",
        query={"a": "1", "token": token},
        Cookie="_xsrf=secret; username-x=secret",
        Authorization=f"token {token}",
        Referer=f"http://x/?token={token}",
        X_XSRFToken="secret",
    )
    asked = said(response)
    assert (asked["uri"], asked["body"]) == ("/x?a=1", "body")
    assert "secret" not in str(asked)
    assert token not in str(asked)
    assert asked["headers"]["origin"] == f"http://localhost:{browser.port}"


async def test_cookies_of_the_program_are_kept_for_it(browser):
    await browser.ask(query={"set": "Set-Cookie:own=1; Path=/a|Set-Cookie:all=2; HttpOnly"})
    assert said(await browser.ask("a/b"))["headers"]["cookie"] == "own=1; all=2"
    assert said(await browser.ask("ab"))["headers"]["cookie"] == "all=2"
    await browser.ask(query={"set": "Set-Cookie:all=; Max-Age=0"})
    assert "cookie" not in said(await browser.ask("ab"))["headers"]


async def test_a_page_gets_the_stand_ins_for_what_a_sandbox_forbids(browser):
    response = await browser.ask("page", Sec_Fetch_Dest="document")
    text = response.body.decode()
    before, tag, after = text.partition("<script src=")
    assert (before, bool(tag)) == ("<!doctype html>", True)
    assert after.split('"')[1].endswith(f"/{browser.key}/.hyperpod/page.js")
    assert int(response.headers["Content-Length"]) == len(response.body)
    assert text.endswith("<p>y" * 1000)
    for path, dest in (("page", "empty"), ("x", "document")):
        assert b"page.js" not in (await browser.ask(path, Sec_Fetch_Dest=dest)).body
    script = await browser.ask(".hyperpod/page.js")
    assert "javascript" in script.headers["Content-Type"]


async def test_redirects_and_the_port_itself_lead_below_the_key(browser):
    response = await browser.ask("away")
    assert response.headers["Location"].endswith(f"/{browser.key}/there?x=1")
    key = browser.key
    words = ("hyperpod", "api", "v1", *browser.place.split("/"), key)
    response = await browser.fetch(*words, raise_error=False, follow_redirects=False)
    assert (response.code, response.headers["Location"].endswith(f"/{key}/")) == (302, True)


async def test_no_service_worker_is_handed_out(browser):
    assert (await browser.ask("sw.js", Service_Worker="script")).code == 403


async def test_no_key_and_no_ticket_gets_into_the_log(browser, caplog, program, monkeypatch):
    caplog.set_level(logging.DEBUG)
    ticket = await browser.ticket()
    await browser.enter(ticket)
    for origin in ("null", "http://evil.example"):
        await browser.ask("some/where", Origin=origin)
    monkeypatch.setattr(PortKeys, "find", lambda *_: 1 / 0)
    assert (await browser.ask("some/where")).code == 500
    text = "\n".join(record.getMessage() + str(record.exc_text) for record in caplog.records)
    assert "some/where" in text
    assert browser.key.strip("~") not in text
    assert ticket not in text


async def test_a_closed_port_says_so_before_a_tab_opens(browser, program):
    del program
    status, error = await browser.api.request("POST", f"runs/{browser.run_id}/ports/9/open", {})
    assert (status, error["code"]) == (422, "nothing_listens")
    for port in ("eighty", "0", "99999", "18080@evil"):
        path = f"runs/{browser.run_id}/ports/{port}/open"
        status, error = await browser.api.request("POST", path, {})
        assert (status, error["code"]) == (400, "invalid_input")


async def test_a_run_of_this_machine_opens_only_its_own_ports(api, run_id):
    access = await api.get(f"runs/{run_id}/access")
    assert (access["ports"], access["shells"]) == (True, [])
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        status, error = await api.request("POST", f"runs/{run_id}/ports/{port}/open", {})
    assert (status, error["code"]) == (422, "other_program")
    status, error = await api.request("POST", "runs/20260101-000000-aaaaaa/ports/80/open", {})
    assert (status, error["code"]) == (404, "no_such_run")
