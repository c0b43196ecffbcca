"""The AWS calls of a page: none while it is hidden."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from hyperpod_lab import hyperpod_lab
from lab_page import CLUSTER_PAGE, PANEL, execute, hide_page, open_lab
from lab_server import LabServer
from playwright.sync_api import Page, Request, expect

from testbed.aws.endpoint import Endpoint

#: Pages ask the server each minute.
MINUTES = 10


@pytest.fixture
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LabServer, Endpoint]]:
    """An account that nobody has asked yet."""
    with hyperpod_lab(tmp_path_factory.mktemp("aws") / "home") as both:
        yield both


@pytest.fixture
def requests(page: Page) -> list[str]:
    """What the page asks our server on clusters and AWS."""
    found: list[str] = []

    def note(request: Request) -> None:
        if re.search(r"/hyperpod/api/v1/(clusters|aws)\b", request.url):
            found.append(request.url)

    page.on("request", note)
    return found


def pass_minutes(page: Page, minutes: int) -> None:
    """Let the page's timers believe that minutes went by."""
    for _ in range(minutes):
        page.clock.fast_forward(61_000)
        page.wait_for_timeout(200)


def test_a_hidden_page_asks_aws_for_nothing(
    account: tuple[LabServer, Endpoint], page: Page, requests: list[str]
) -> None:
    server, aws = account
    page.clock.install()
    open_lab(page, server)
    execute(page, "hyperpod:show-panel")
    execute(page, "hyperpod:open-cluster", {"cluster": "ml-cluster"})
    expect(page.locator(PANEL).get_by_text("g5.8xlarge")).to_be_visible()
    expect(page.locator(CLUSTER_PAGE).get_by_text("vision")).to_be_visible()
    requests.clear()
    pass_minutes(page, 2)
    assert len(requests) >= 2, "a page that is shown asks each minute, so the clock is moved well"

    hide_page(page)
    page.wait_for_timeout(500)
    requests.clear()
    before = len(aws.calls)
    pass_minutes(page, MINUTES)
    assert requests == []
    assert len(aws.calls) == before

    hide_page(page, hidden=False)
    execute(page, "application:toggle-left-area", keep=False)
    execute(page, "launcher:create", keep=False)
    expect(page.locator(PANEL)).to_be_hidden()
    expect(page.locator(CLUSTER_PAGE)).to_be_hidden()
    page.wait_for_timeout(500)
    requests.clear()
    before = len(aws.calls)
    pass_minutes(page, MINUTES)
    assert requests == []
    assert len(aws.calls) == before
