"""The extension is there, and quiet."""

from __future__ import annotations

from lab_page import execute, open_lab
from lab_server import LabServer
from playwright.sync_api import Page


def errors(console: list[str]) -> list[str]:
    """Errors, and those warnings that are about us: the application has some of its own."""
    about_us = ("hyperpod", "shared singleton", "unsatisfied version")
    return [
        line for line in console if not line.startswith("warning: ") or any(words in line.lower() for words in about_us)
    ]


def test_lab(page: Page, lab: LabServer, console: list[str]) -> None:
    open_lab(page, lab)
    page.wait_for_function("window.jupyterapp !== undefined")
    assert execute(page, "hyperpod:show-version")
    assert errors(console) == []


def test_notebook7(page: Page, notebook7: LabServer, console: list[str]) -> None:
    open_lab(page, notebook7)
    page.wait_for_function("window.jupyterapp !== undefined")
    assert execute(page, "hyperpod:show-version")
    # Notebook 7.6 itself throws once at its start, with no other extension too.
    assert [line for line in errors(console) if "hyperpod" in line.lower()] == []
