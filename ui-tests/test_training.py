"""What ranks print: curves, progress and alarms on the run's page and in the lists; runs compared."""

from __future__ import annotations

import secrets

from lab_page import PANEL, RUN_PAGE, execute, open_lab, open_run, run_tab, use_theme, violations
from lab_server import LabServer
from playwright.sync_api import Page, Request, expect

RUNS_PAGE = ".jp-HyperPod-RunsPage"
COMPARE_PAGE = ".jp-HyperPod-ComparePage"

TRAIN = """
import os, sys, time
rank, factor, steps = int(os.environ["RANK"]), float(sys.argv[1]), int(sys.argv[2])
for step in range(1, steps + 1):
    print(f"step {step}/{steps} loss {2 / step * factor + rank / 10:.4f} lr 1e-4", flush=True)
    time.sleep(0.02)
    if sys.argv[3:] and step == 40:
        for _ in range(4):
            print(f"step {step}/{steps} loss nan", flush=True)
        time.sleep(600)
"""


def test_curves_alarms_and_comparison(page: Page, lab: LabServer, console: list[str]) -> None:
    # The Lab is shared, and the test may run a second time: names of its own.
    mark = secrets.token_hex(2)
    (lab.work / "train_curves.py").write_text(TRAIN)
    options = ("submit", "train_curves.py", "--processes-per-node", "2", "--launcher", "python")
    for name, factor in (("first", "1"), ("second", "3")):
        lab.hpj(*options, "--name", f"{name}-{mark}", "--wait", "--", factor, "50")
    open_lab(page, lab)
    execute(page, "hyperpod:show-panel", keep=False)
    broken = lab.hpj(*options, "--name", f"broken-{mark}", "--", "1", "1000", "alarm")
    # The alarm reaches those who look elsewhere.
    notice = page.locator(".jp-toast-message, .jp-Notification-Toast").filter(has_text=f"broken-{mark}")
    expect(notice.first).to_contain_text("Loss is not finite", timeout=30_000)
    row = page.locator(PANEL).locator(".jp-HyperPod-Row").filter(has_text=f"broken-{mark}")
    expect(row).to_contain_text("loss NaN")
    shown = open_run(page, broken)
    expect(shown.locator(".jp-HyperPod-Alarms")).to_contain_text("loss is nan at step 40")
    expect(shown).to_contain_text("step 40 of 1000")
    run_tab(shown, "Overview")
    charts = shown.locator(".jp-HyperPod-Chart").filter(has_text="loss")
    expect(charts.first.locator("canvas")).to_be_visible()
    expect(charts.first.get_by_role("row", name="Rank 1")).to_contain_text("NaN")
    shown.get_by_label("Log scale").check()
    shown.get_by_role("button", name="Time", exact=True).click()
    expect(charts.first.locator("canvas")).to_be_visible()
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        use_theme(page, theme)
        assert violations(page, RUN_PAGE) == []
    lab.hpj("cancel", broken)
    execute(page, "hyperpod:open-runs", {"unfiltered": True}, keep=False)
    runs = page.locator(RUNS_PAGE)
    cell = runs.locator("tr").filter(has_text=f"second-{mark}").locator('[data-column="numbers"]')
    expect(cell).to_contain_text("loss 0.")
    for name in ("first", "second"):
        runs.get_by_label(f"Select {name}-{mark}", exact=True).set_checked(True)
    runs.get_by_role("button", name="Compare 2").click()
    compared = page.locator(COMPARE_PAGE)
    chart = compared.locator(".jp-HyperPod-Chart").filter(has_text="loss").first
    expect(chart.locator("canvas")).to_be_visible()
    expect(chart.get_by_role("row", name=f"second-{mark}")).to_be_visible()
    expect(compared.get_by_role("row", name="args")).to_contain_text('["3","50"]')
    expect(compared).to_contain_text("The code is the same.")
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        use_theme(page, theme)
        assert violations(page, COMPARE_PAGE) == []
    assert console == []


def is_kept(request: Request) -> bool:
    """Whether the order of the runs is written into the workspace."""
    body = request.post_data or ""
    wanted = ('"metric":"loss"', '"isFalling":true', '"sort":"numbers"')
    return request.method == "PUT" and all(words in body for words in wanted)


def test_runs_are_sorted_by_a_number_and_nan_is_said(page: Page, lab: LabServer, console: list[str]) -> None:
    mark = secrets.token_hex(2)
    prints = {
        "low": "step 1 loss 0.25 accuracy 0.5",
        "high": "step 1 loss 1.5 accuracy 0.75",
        "none": "step 1 loss nan",
    }
    for name, line in prints.items():
        lab.hpj("submit", "-c", f"echo '{line}'", "--name", f"{name}-{mark}", "--wait")
    open_lab(page, lab)
    execute(page, "hyperpod:open-runs", {"unfiltered": True}, keep=False)
    runs = page.locator(RUNS_PAGE)
    runs.get_by_label("Filter runs").fill(mark)
    numbers = runs.locator('td[data-column="numbers"]')
    expect(numbers).to_have_text(["loss NaN", "loss 1.5", "loss 0.25"])
    head = runs.locator('th[data-column="numbers"]')
    choose = head.get_by_role("button", name="Choose the number to show")
    # Without a mouse.
    choose.focus()
    page.keyboard.press("Enter")
    item = page.locator(".lm-Menu-item").filter(has_text="accuracy")
    expect(item).to_be_visible()
    while not item.evaluate("node => node.classList.contains('lm-mod-active')"):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(choose).to_be_focused()
    expect(numbers).to_have_text(["", "0.75", "0.5"])
    head.get_by_role("button", name="accuracy").click()
    expect(numbers).to_have_text(["0.5", "0.75", ""])
    expect(head).to_have_attribute("aria-sort", "ascending")
    choose.click()
    page.locator(".lm-Menu-item").filter(has_text="loss").click()
    expect(numbers).to_have_text(["0.25", "1.5", "NaN"])
    with page.expect_response(lambda answer: is_kept(answer.request)):
        head.get_by_role("button", name="loss").click()
        expect(numbers).to_have_text(["1.5", "0.25", "NaN"])
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        use_theme(page, theme)
        assert violations(page, RUNS_PAGE) == []
    # The choice outlives the page.
    page.reload()
    command = "hyperpod:open-runs"
    page.wait_for_function(f"window.jupyterapp?.commands.hasCommand('{command}')")
    execute(page, command, keep=False)
    expect(head.get_by_role("button", name="loss")).to_be_visible()
    expect(head).to_have_attribute("aria-sort", "descending")
    for name in ("low", "none"):
        runs.get_by_label(f"Select {name}-{mark}", exact=True).set_checked(True)
    runs.get_by_role("button", name="Compare 2").click()
    compared = page.locator(COMPARE_PAGE)
    row = compared.get_by_role("row", name="loss").filter(has_text="0.25 (0.25")
    expect(row.get_by_role("cell", name="NaN", exact=True)).to_be_visible()
    row = compared.get_by_role("row", name="accuracy")
    expect(row.get_by_role("cell", name="\N{EN DASH}", exact=True)).to_be_visible()
    execute(page, "hyperpod:open-runs", {"unfiltered": True}, keep=False)
    choose.click()
    page.locator(".lm-Menu-item").filter(has_text="Newest Number of Each Run").click()
    assert console == []
