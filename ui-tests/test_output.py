"""A cell with `%%hyperpod`: its output is the live log, whatever restarts."""

from __future__ import annotations

from lab_page import CARD, expect_state, log_lines, open_notebook, restart_kernel, run_all, save, wait_for_line
from lab_server import LabServer
from notebooks import LOAD, code_cell, counting, run_output, saved_outputs, write_notebook
from playwright.sync_api import Page, Request, WebSocket, expect

LINES = 500


def expected(count: int) -> list[str]:
    return [f"line {number}" for number in range(count)]


def test_live_log_outlives_all_restarts(page: Page, own_lab: LabServer) -> None:
    cells = [code_cell(LOAD), code_cell(counting(LINES, 0.04))]
    name = write_notebook(own_lab.work, "counting.ipynb", cells)
    open_notebook(page, own_lab, name)
    run_all(page)
    card = page.locator(CARD)
    wait_for_line(page, "line 5")
    expect_state(card, "running")
    expect(card.locator(".jp-HyperPod-LogRow").last).to_be_visible()

    restart_kernel(page)
    seen = len(log_lines(page))
    wait_for_line(page, f"line {seen + 20}")

    save(page)
    saved = saved_outputs(own_lab.work, name)
    assert "line 1" not in saved
    assert str(own_lab.home) not in saved

    page.reload()
    wait_for_line(page, "line 0")
    seen = len(log_lines(page))
    wait_for_line(page, f"line {seen + 20}")

    own_lab.kill()
    own_lab.start()
    wait_for_line(page, f"line {LINES - 1}", timeout=60_000)
    assert log_lines(page) == expected(LINES)
    expect_state(card, "succeeded")


def test_untrusted_notebook_asks_only_on_a_click(page: Page, lab: LabServer) -> None:
    run_id = lab.hpj("submit", "-c", "echo hello from the run", "--wait")
    cells = [
        code_cell("real", run_output(run_id)),
        code_cell("nothing", {"version": 1, "run_id": "../../etc"}),
        code_cell("gone", run_output("gone-run")),
        code_cell("newer", {"version": 2}),
    ]
    name = write_notebook(lab.work, "untrusted.ipynb", cells)
    asked: list[str] = []

    def note(request: Request | WebSocket) -> None:
        # The sidebar asks for the numbers of the user's own runs, whatever notebook is open.
        if "hyperpod/api" in request.url and "/training/summaries" not in request.url:
            asked.append(request.url)

    page.on("request", note)
    page.on("websocket", note)
    open_notebook(page, lab, name)
    button = page.get_by_role("button", name=f"Show the log of run {run_id}")
    expect(button).to_be_visible()
    expect(page.get_by_text("does not name a run")).to_be_visible()
    expect(page.get_by_text("a newer version")).to_be_visible()
    page.wait_for_timeout(500)
    assert [url for url in asked if run_id in url or "/logs" in url] == []

    button.click()
    wait_for_line(page, "hello from the run")
    expect_state(page.locator(CARD).first, "succeeded")
    page.get_by_role("button", name="Show the log of run gone-run").click()
    expect(page.get_by_text("Run gone-run not found. It was removed")).to_be_visible()


def test_card_out_of_sight_asks_for_nothing(page: Page, lab: LabServer) -> None:
    far = [code_cell("# far\n" * 60) for _ in range(3)]
    cells = [code_cell(LOAD), code_cell(counting(150, 0.1)), *far]
    name = write_notebook(lab.work, "far.ipynb", cells)
    sockets: list[str] = []
    sent: list[str] = []

    def listen(socket: WebSocket) -> None:
        if socket.url.partition("?")[0].endswith("/hyperpod/api/v1/logs"):
            sockets.append(socket.url)
            socket.on("framesent", lambda data: sent.append(str(data)))

    page.on("websocket", listen)
    open_notebook(page, lab, name)
    run_all(page)
    scroller = page.locator(".jp-WindowedPanel-outer").first
    scroller.evaluate("node => (node.scrollTop = 0)")
    wait_for_line(page, "line 3")
    # Another view of the same run, on the same socket.
    scroller.evaluate("node => (node.scrollTop = node.scrollHeight)")
    page.wait_for_timeout(2000)
    before = len(log_lines(page))
    page.wait_for_timeout(1000)
    assert len(log_lines(page)) == before
    scroller.evaluate("node => (node.scrollTop = 0)")
    wait_for_line(page, f"line {before + 10}")
    assert log_lines(page) == expected(len(log_lines(page)))
    page.locator(CARD).get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Cancel run").click()
    expect_state(page.locator(CARD), "cancelled")
    assert len(sockets) <= 2, "at most the one socket of the page, opened again after a pause"
    assert any("subscribe" in text for text in sent)


def test_log_frozen_into_the_output(page: Page, lab: LabServer) -> None:
    cells = [code_cell(LOAD), code_cell(counting(3, 0, "--nodes 2 --launcher python"))]
    name = write_notebook(lab.work, "frozen.ipynb", cells)
    open_notebook(page, lab, name)
    run_all(page)
    card = page.locator(CARD)
    expect_state(card, "succeeded")
    expect(card.get_by_role("button", name="All ranks")).to_be_visible()
    card.get_by_role("button", name="More actions").press("Enter")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    frozen = page.locator(".jp-OutputArea-output", has_text="last 500 lines")
    expect(frozen).to_contain_text("1| line 2")
    save(page)
    assert "1| line 2" in saved_outputs(lab.work, name)
