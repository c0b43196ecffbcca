"""Every page in light, dark, a small window and at 150 %, compared with its picture in the docs (docs/images/pages).

After a wanted change: `cd ui-tests && python -m pytest test_pictures.py --take-pictures`, look at what changed, commit it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hyperpod_lab import REGION, hyperpod_lab
from lab_page import CLUSTER_PAGE, DIALOG, PANEL, RUN_PAGE, execute, open_lab, use_theme
from lab_server import LabServer
from notebooks import code_cell, write_notebook
from pictures import MAX_SHARE, STORED, differing_share, load_picture, store_picture
from PIL import Image
from playwright.sync_api import Browser, Page, expect
from slurm_lab import config_for, wait_for_job

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from testbed.aws.example_telemetry import add_telemetry
from tests.slurm.cluster import SlurmTestbed, running, standard_options

SLURM = "ml-slurm"
LIGHT, DARK = "JupyterLab Light", "JupyterLab Dark"
#: By name: the theme and the size of the window. At a zoom of 150 % a window of 1440x900 has 960x600 CSS pixels.
VARIANTS = {
    "light": (LIGHT, 1440, 900),
    "dark": (DARK, 1440, 900),
    "small": (LIGHT, 1000, 700),
    "zoomed": (LIGHT, 960, 600),
}
#: Parts that depend on the moment and on how quick the machine is: the order of lines, the ticks of axes.
UNSTABLE = "#jp-main-statusbar, .jp-HyperPod-TimeLine, .jp-HyperPod-LogList, .uplot"
#: How long nothing may move before a picture is taken.
STILL_MS = 400
#: How long the data of the pages may take that were opened last.
LOAD_MS = 4000

TRAIN = """\
import os, time
rank = int(os.environ["RANK"])
for epoch in range(4):
    print(f"epoch {epoch}  loss {2.3 * 0.8**epoch + 0.01 * rank:.3f}", flush=True)
    if rank == 1 and epoch == 2:
        print("WARNING: the gradient norm is large", flush=True)
    time.sleep(0.8)
"""
LOAD_CELL = "def load(path):\n    return open(path).read()"


@dataclass(frozen=True)
class World:
    """A Lab with a few runs, of which none changes while pictures are taken."""

    server: LabServer
    trained: str
    failed: str
    waiting: str


def prepare(server: LabServer, slurm: SlurmTestbed) -> World:
    """Jobs of others and runs of one's own in every state."""
    notebook = write_notebook(
        server.work,
        "digits.ipynb",
        [code_cell("epochs = 3"), code_cell(LOAD_CELL), code_cell("data = load('digits.csv')")],
    )
    (server.work / "train.py").write_text(TRAIN)
    drain = ("update", "nodename=node4", "state=drain", "reason=GPU 3 has fallen off the bus")
    slurm.exec("ctl", "scontrol", *drain)
    for options, user in (
        (("-pbatch", "-t8:00:00", "--gpus-per-node=5", "-Jlm-7b"), "bob"),
        (("-pbatch", "-t2:00:00", "--gpus-per-node=2", "-Jeval"), "alice"),
    ):
        words = ("sbatch", "--parsable", "--chdir=/tmp", "--output=/dev/null", *options)
        job = slurm.exec("ctl", *words, "--wrap=sleep 3600", user=user).strip()
        wait_for_job(slurm, job, "RUNNING")
    on_slurm = ("--cluster", SLURM, "--queue", "dev")
    size = ("--nodes", "2", "--gpus-per-node", "4", "--launcher", "python")
    server.hpj("submit", "-c", "sleep 3600", *on_slurm, *size, "--name", "pretrain")
    large = ("--nodes", "2", "--gpus-per-node", "8", "--time-limit", "40m", "--launcher", "python")
    waiting = server.hpj("submit", "train.py", *on_slurm, *large, "--name", "train-large")
    ranks = ("--nodes", "2", "--processes-per-node", "2", "--launcher", "python")
    trained = server.hpj("submit", "train.py", *ranks, "--name", "train-digits", "--wait")
    server.hpj("submit", "-c", "echo 65536 tokens", "--name", "tokenize", "--wait")
    server.hpj("submit", "-c", "true", "--array", "0-3", "--name", "sweep", "--wait")
    failed = server.hpj("submit", notebook, "--name", "digits")
    while '"state": "failed"' not in server.hpj("show", failed, "--json"):
        time.sleep(0.2)
    return World(server, trained.splitlines()[0], failed, waiting)


# --------------------------------------------------------------------------------------------------
# How each page is opened; run again for each variant.


def in_run(run_id: Callable[[World], str], tab: str) -> Callable[[Page, World], None]:
    def show(page: Page, world: World) -> None:
        execute(page, "hyperpod:open-run", {"runId": run_id(world)})
        page.locator(f"{RUN_PAGE}:visible").get_by_role("tab", name=tab, exact=True).click()

    return show


def in_cluster(cluster: str, tab: str) -> Callable[[Page, World], None]:
    def show(page: Page, world: World) -> None:
        execute(page, "hyperpod:open-cluster", {"cluster": cluster})
        shown = page.locator(f"{CLUSTER_PAGE}:visible")
        shown.get_by_role("tab", name=tab, exact=True).click()
        expect(shown.get_by_role("tabpanel")).to_be_visible()

    return show


def by_command(command: str, visible: str) -> Callable[[Page, World], None]:
    def show(page: Page, world: World) -> None:
        execute(page, command, keep=False)
        expect(page.locator(f"{visible}:visible").first).to_be_visible()

    return show


def submit_form(page: Page, world: World) -> None:
    execute(page, "docmanager:open", {"path": "digits.ipynb"}, keep=False)
    page.locator(".jp-Notebook:visible .jp-CodeCell .cm-content").first.click()
    page.keyboard.press("Control+Shift+Enter")
    form = page.locator(DIALOG)
    expect(form.get_by_text("Ready to submit")).to_be_visible()


def notebook(page: Page, world: World) -> None:
    execute(page, "docmanager:open", {"path": "digits.ipynb"}, keep=False)
    expect(page.locator(".jp-Notebook:visible").get_by_text("digits on local").first).to_be_visible()
    expect(page.get_by_text("| Idle")).to_be_visible()


PAGES: dict[str, Callable[[Page, World], None]] = {
    "launcher": by_command("launcher:create", ".jp-Launcher"),
    "notebook": notebook,
    "cluster-overview": in_cluster(SLURM, "Overview"),
    "cluster-jobs": in_cluster(SLURM, "Jobs"),
    "cluster-queues": in_cluster(SLURM, "Queues"),
    "cluster-nodes": in_cluster(SLURM, "Nodes"),
    "hyperpod-overview": in_cluster("ml-cluster", "Overview"),
    "hyperpod-nodes": in_cluster("ml-cluster", "Nodes"),
    "hyperpod-metrics": in_cluster("research-eks", "Metrics"),
    "hyperpod-events": in_cluster("research-eks", "Events"),
    "run-overview": in_run(lambda world: world.trained, "Overview"),
    "run-log": in_run(lambda world: world.trained, "Log"),
    "run-code": in_run(lambda world: world.trained, "Code"),
    "run-settings": in_run(lambda world: world.trained, "Settings"),
    "run-failed": in_run(lambda world: world.failed, "Overview"),
    "run-waiting": in_run(lambda world: world.waiting, "Overview"),
    "runs": by_command("hyperpod:open-runs", ".jp-HyperPod-RunsPage"),
    "usage": by_command("hyperpod:open-usage", ".jp-HyperPod-UsagePage canvas"),
    "storage": by_command("hyperpod:open-storage", ".jp-HyperPod-Section"),
    "doctor": by_command("hyperpod:open-doctor", ".jp-HyperPod-Doctor button:text-is('Run again')"),
    "admin": by_command("hyperpod:open-admin", ".jp-HyperPod-Admin"),
    "submit": submit_form,
}


#: A picture, and where its unstable parts are.
Taken = tuple[Image.Image, list[tuple[int, int, int, int]]]


def take(page: Page, world: World) -> Iterator[tuple[str, Taken]]:
    """All pictures, by name."""
    for show in PAGES.values():  # loads them; from then on they have their data
        show(page, world)
        page.wait_for_timeout(STILL_MS)
        page.keyboard.press("Escape")
    page.wait_for_timeout(LOAD_MS)
    for variant, (theme, width, height) in VARIANTS.items():
        page.set_viewport_size({"width": width, "height": height})
        use_theme(page, theme)
        for name, show in PAGES.items():
            show(page, world)
            page.mouse.move(width // 2, height - 2)
            page.wait_for_timeout(STILL_MS)
            picture = load_picture(page.screenshot(caret="hide", animations="disabled"))
            yield f"{name}-{variant}", (picture, unstable_boxes(page))
            page.keyboard.press("Escape")


def unstable_boxes(page: Page) -> list[tuple[int, int, int, int]]:
    """Left, top, right and bottom of each part that is not compared."""
    boxes = [part.bounding_box() for part in page.locator(f":is({UNSTABLE}):visible").all()]
    return [
        (int(box["x"]), int(box["y"]), int(box["x"] + box["width"]), int(box["y"] + box["height"]))
        for box in boxes
        if box is not None
    ]


@pytest.fixture(scope="module")
def pictures(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Taken]]:
    """All pages, as they are now."""
    folder = tmp_path_factory.mktemp("pictures")
    with running(*standard_options()) as slurm:
        local = '[clusters.local]\nslots = 4\npython = "/usr/bin/python3"\n'
        config = f'default_cluster = "local"\n{config_for(slurm, name=SLURM)}{local}'
        with hyperpod_lab(folder / "home", config) as (server, endpoint):
            add_telemetry(endpoint.account, REGION)
            world = prepare(server, slurm)
            context = browser.new_context(reduced_motion="reduce")
            page = context.new_page()
            page.set_default_timeout(20_000)
            open_lab(page, server)
            # No row of twenty tabs above each page.
            execute(page, "application:set-mode", {"mode": "single-document"}, keep=False)
            execute(page, "hyperpod:show-panel", keep=False)
            expect(page.locator(PANEL).get_by_text("ml-cluster")).to_be_visible()
            yield dict(take(page, world))
            context.close()
            server.cancel_all()


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_looks_as_in_the_docs(
    name: str, variant: str, pictures: dict[str, Taken], request: pytest.FixtureRequest
) -> None:
    picture, boxes = pictures[f"{name}-{variant}"]
    stored = STORED / f"{name}-{variant}.png"
    if request.config.getoption("--take-pictures"):
        store_picture(picture, stored)
        return
    expected = load_picture(stored)
    for box in boxes:
        for one in (picture, expected):
            one.paste("grey", box)
    share = differing_share(picture, expected)
    if share > MAX_SHARE:
        folder = Path(__file__).parent / "test-results"
        folder.mkdir(exist_ok=True)
        actual = folder / stored.name
        picture.save(actual)
        pytest.fail(f"{share:.1%} of the blocks differ: compare {actual} with {stored}")


def test_the_docs_show_every_page_and_nothing_else_is_stored() -> None:
    names = {f"{name}-{variant}.png" for name in PAGES for variant in VARIANTS}
    assert {path.name for path in STORED.glob("*.png")} == names
    text = (STORED.parents[1] / "pages.md").read_text()
    assert [name for name in sorted(names) if f"images/pages/{name}" not in text] == []


def test_a_broken_layout_is_seen() -> None:
    """Each of these pictures has one fault that a person sees at once."""
    intact = load_picture(STORED / "cluster-jobs-light.png")
    width, height = intact.size
    wider_panel = intact.copy()
    wider_panel.paste(intact.crop((280, 0, width - 60, height)), (340, 0))
    without_column = intact.copy()
    without_column.paste(intact.crop((700, 150, width - 40, 480)), (560, 150))
    white_card = load_picture(STORED / "cluster-overview-dark.png")
    white_card.paste("white", (305, 130, 455, 230))
    for broken in (wider_panel, without_column):
        assert differing_share(intact, broken) > MAX_SHARE
    assert differing_share(load_picture(STORED / "cluster-overview-dark.png"), white_card) > MAX_SHARE
    assert differing_share(intact, load_picture(STORED / "cluster-jobs-dark.png")) > MAX_SHARE
