"""A real browser (Chromium) on a real Jupyter server.

A pytest run of its own (`scripts/ui-test.sh`): Playwright keeps an event loop running, which the suites with asyncio do not bear.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab_server import LabServer, lab_server
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]
VIEWPORT = {"width": 1400, "height": 900}
#: A busy machine is slow, not wrong.
TIMEOUT_MS = 20_000
expect.set_options(timeout=TIMEOUT_MS)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option that renews the pictures of the docs."""
    parser.addoption("--take-pictures", action="store_true", help="replace docs/images/pages (test_pictures.py)")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's Chromium, driven by Playwright."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    assert chromium, "Chromium is missing; scripts/ui-test.sh installs it"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=QUIET, headless=True)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabServer]:
    """A JupyterLab that the tests of a session share."""
    with lab_server(tmp_path_factory.mktemp("lab") / "home") as server:
        yield server


@pytest.fixture
def own_lab(tmp_path: Path) -> Iterator[LabServer]:
    """A JupyterLab of the test's own, to be killed and started again."""
    with lab_server(tmp_path / "home") as server:
        yield server


@pytest.fixture(scope="session")
def notebook7(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabServer]:
    """A Notebook 7."""
    with lab_server(tmp_path_factory.mktemp("notebook") / "home", "notebook") as server:
        yield server


@pytest.fixture
def console() -> list[str]:
    """Errors and warnings that the page writes to its console."""
    return []


@pytest.fixture
def page(browser: Browser, console: list[str], request: pytest.FixtureRequest) -> Iterator[Page]:
    """A fresh page; a screenshot is left behind when the test fails."""
    context = browser.new_context(viewport=VIEWPORT)
    page = context.new_page()
    page.set_default_timeout(TIMEOUT_MS)

    def note(message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            console.append(f"{message.type}: {message.text}")

    page.on("console", note)
    page.on("pageerror", lambda error: console.append(f"exception: {error.stack or error}"))
    yield page
    failed = getattr(request.node, "failed", False)
    if failed:
        folder = Path(__file__).parent / "test-results"
        folder.mkdir(exist_ok=True)
        page.screenshot(path=folder / f"{request.node.name}.png")
    context.close()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Journeys in a browser may run a second time. What breaks a Kubernetes cluster is no test for one of the user's (see tests/kubernetes/cluster.py)."""
    for item in items:
        item.add_marker(pytest.mark.flaky(reruns=1))
    if os.environ.get("HYPERPOD_TEST_KUBECONFIG"):
        breaking = [item for item in items if item.get_closest_marker("own_cluster")]
        config.hook.pytest_deselected(items=breaking)
        items[:] = [item for item in items if item not in breaking]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Let fixtures know that their test failed."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if report.when == "call" and report.failed:
        item.failed = True  # type: ignore[attr-defined]
