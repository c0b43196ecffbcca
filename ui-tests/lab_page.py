"""What the tests do with a page of JupyterLab."""

from __future__ import annotations

from lab_server import LabServer
from playwright.sync_api import Page


def open_lab(page: Page, server: LabServer) -> None:
    """Open the application and wait until it is there."""
    page.goto(server.page_url)
    page.wait_for_selector("#jupyterlab-splash", state="detached")
    page.wait_for_selector(
        "#main .jp-FileBrowser, #main-panel, .jp-TreePanel, .jp-Launcher", state="attached"
    )


def execute(page: Page, command: str, arguments: dict[str, object] | None = None) -> object:
    """Execute a command of the application, as an agent does; returns its JSON answer."""
    return page.evaluate(
        "async ([id, args]) => (await window.jupyterapp.commands.execute(id, args)) ?? null",
        [command, arguments or {}],
    )
