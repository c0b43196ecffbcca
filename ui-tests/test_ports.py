"""A port of a run in the browser: a page of the run gets nothing of Jupyter, and what it needs for itself works."""

from __future__ import annotations

import json
import re
import socket
import time
import urllib.request
from collections.abc import Iterator

import pytest
from lab_page import RUN_PAGE, expect_state, open_lab, open_run, run_tab
from lab_server import TOKEN, LabServer
from playwright.sync_api import Page, expect
from port_lab import port_lab, run_hostile


@pytest.fixture(scope="module")
def ports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabServer]:
    """A server whose runs have ports."""
    with port_lab(tmp_path_factory.mktemp("ports") / "home") as server:
        yield server


def test_a_page_of_a_run_gets_nothing_of_jupyter(page: Page, ports: LabServer) -> None:
    run_id, port = run_hostile(ports)
    opened = _open_port(page, ports, run_id, port)
    # The key is in the address; who opened the page cannot be reached from it.
    assert re.search(rf"/runs/{run_id}/ports/{port}/~[\w-]{{43}}/$", opened.url)
    opened.get_by_role("button", name="Go").click()
    shown = opened.locator("#result")
    expect(shown).not_to_be_empty(timeout=60_000)
    result = json.loads(shown.inner_text())
    got = {name: what for name, what in result["attacks"].items() if "refused" not in what[:10]}
    assert got == {}
    assert result["origin"] == "null"
    assert len(result["attacks"]) > 20
    assert TOKEN not in shown.inner_text()
    assert _api(ports, "terminals") == _api(ports, "kernels") == []
    own = result["own"]
    said = json.loads(own.pop("data").removeprefix("200 "))
    assert (said["method"], said["path"], said["body"]) == ("PUT", "/say?x=1", "b")
    assert json.loads(own.pop("worker"))["path"] == "/say"
    assert own == {
        "module": "a module",
        "storage": "bd2",
        "cookie": "b=2",
        "state": '{"at":1}',
        "frame": "from a frame",
        "socket": "echo",
    }
    # Who was logged in before still is, and has the cookies of before.
    page.reload()
    expect(page.locator("#main")).to_be_visible()
    assert all("evil" not in cookie["value"] for cookie in page.context.cookies())
    assert opened.url.partition("~")[2].partition("/")[0] not in ports.log
    assert not re.search("Uncaught exception .* /hyperpod/", ports.log)


def test_an_address_that_leads_nowhere_says_what_to_do(page: Page, ports: LabServer) -> None:
    run_id, port = run_hostile(ports)
    opened = _open_port(page, ports, run_id, port)
    before, _, _ = opened.url.partition("~")
    for address in (before, f"{before}~{'x' * 43}/", f"{before}?ticket=x"):
        answer = opened.goto(address)
        assert answer is not None
        assert answer.status == 403
        expect(opened.locator("body")).to_contain_text("Open the port from the page of the run")


def test_a_port_where_nothing_listens_opens_no_tab(page: Page, ports: LabServer) -> None:
    run_id = ports.hpj("submit", "--name", "quiet", "-c", "sleep 600")
    _show_ways(page, ports, run_id, 9)
    page.locator(RUN_PAGE).get_by_role("button", name="Open port").click()
    expect(page.locator(".Toastify__toast")).to_contain_text("no program listens on port 9")
    assert len(page.context.pages) == 1


def _open_port(page: Page, server: LabServer, run_id: str, port: int) -> Page:
    _until_it_listens(port)
    _show_ways(page, server, run_id, port)
    with page.context.expect_page() as opened:
        page.locator(RUN_PAGE).get_by_role("button", name="Open port").click()
    expect(opened.value.get_by_role("button", name="Go")).to_be_visible()
    return opened.value


def _show_ways(page: Page, server: LabServer, run_id: str, port: int) -> None:
    open_lab(page, server)
    shown = open_run(page, run_id)
    expect_state(shown, "running")
    run_tab(shown, "Overview").get_by_text("Ports and shells").click()
    shown.get_by_label("Port").fill(str(port))


def _until_it_listens(port: int) -> None:
    end = time.monotonic() + 30
    with socket.socket() as probe:
        while probe.connect_ex(("127.0.0.1", port)) != 0:
            assert time.monotonic() < end, "the program never listened"
            time.sleep(0.1)


def _api(server: LabServer, what: str) -> object:
    """A list of Jupyter's own API."""
    request = urllib.request.Request(
        f"{server.url}/api/{what}", headers={"Authorization": f"token {TOKEN}"}
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.loads(answer.read())
