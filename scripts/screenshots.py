"""Make the screenshots of the docs (docs/images/*.png): a real JupyterLab with real runs on the embedded cluster, on a real Slurm and a real Kubernetes, and with an AWS account of the testbed, in Chromium.

    python scripts/screenshots.py [local|notebook|mlflow|training|usage|jobs|slurm|kubernetes|hyperpod]    # all, when none is named

Needs what the browser tests need: `scripts/ui-test.sh` installs Chromium where it is missing. Slurm's and Kubernetes' need root.
"""

import re
import shutil
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from playwright.sync_api import Page, expect, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "ui-tests"))

from conftest import QUIET  # noqa: E402
from hyperpod_lab import REGION, hyperpod_lab  # noqa: E402
from kubernetes_lab import kubernetes_lab, some_namespace  # noqa: E402
from lab_page import (  # noqa: E402
    CARD,
    CLUSTER_PAGE,
    DIALOG,
    RUN_PAGE,
    execute,
    job_form,
    more_action,
    open_lab,
    open_notebook,
    run_all,
    run_tab,
    use_theme,
)
from lab_server import LabServer, lab_server  # noqa: E402
from notebooks import LOAD, code_cell, write_notebook  # noqa: E402
from past_runs import DAY_S, submit_in_the_past  # noqa: E402
from pictures import load_picture, store_picture  # noqa: E402
from slurm_lab import sbatch, slurm_lab, wait_for_job  # noqa: E402

from testbed.aws.example import add_people  # noqa: E402
from testbed.aws.example_telemetry import add_telemetry  # noqa: E402
from testbed.aws.studio import whole_file_system  # noqa: E402
from testbed.mlflow import MlflowServer  # noqa: E402
from tests.kubernetes.cluster import KubernetesTestbed  # noqa: E402
from tests.kubernetes.cluster import running as running_kubernetes  # noqa: E402
from tests.slurm.cluster import SlurmTestbed, running, standard_options  # noqa: E402

IMAGES = ROOT / "docs" / "images"
VIEWPORT = {"width": 1240, "height": 800}
SLOW_MS = 60_000
MOUNTS = Path("/proc/self/mountinfo")
CHOOSE = re.compile(r"^Select i-")
SLURM = "ml-slurm"
KUBERNETES = "ml-eks"
NAMESPACE = "hyperpod-ns-team-a"
EXAMPLES = ROOT / "examples" / "kubernetes"
#: A line that is in view once there are many; a busy machine may be far beyond.
LATER = re.compile(r"epoch +[1-9]\d")
INSTANCE_TYPE = "node.kubernetes.io/instance-type"

TRAINING = """\
import os
import time

rank = int(os.environ["RANK"])
for epoch in range(120):
    loss = 2.3 * 0.93**epoch + 0.01 * rank
    print(f"epoch {epoch:2d}  loss {loss:.4f}")
    time.sleep(0.25)
"""

#: Curves as a training has them: noise, a warm-up, and at a high learning rate a loss that is NaN in the end.
CURVES = """\
import itertools
import math
import os
import random
import sys
import time

peak, steps, broken = float(sys.argv[1]), int(sys.argv[2]), len(sys.argv) > 3
rank = int(os.environ["RANK"])
random.seed(rank + peak)
for step in itertools.count(1):
    rate = peak * min(step / 50, 1 - 0.9 * step / steps)
    loss = 1.9 + 8.5 * math.exp(-step * (0.006 + 12 * peak)) + random.gauss(0, 0.05)
    norm = 0.4 + 3 * math.exp(-step / 60) + abs(random.gauss(0, 0.1))
    if broken and step > 0.55 * steps:
        loss += 0.002 * (step - 0.55 * steps) ** 1.3
        norm += 0.02 * (step - 0.55 * steps)
    if broken and step > 0.62 * steps:
        loss = norm = math.nan
        time.sleep(0.2)
    tokens = random.gauss(9100 + 40 * rank, 60)
    print(
        f"step: {step}/{steps}  loss: {loss:.4f}  grad_norm: {norm:.3f}  lr: {rate:.3e}  tps: {tokens:.0f}",
        flush=True,
    )
    if step >= steps:
        break
    time.sleep(0.03)
"""

CELL = f"%%hyperpod --nodes 2 --processes-per-node 2 --launcher python --name train-digits\n{TRAINING}"
BROKEN = 'data = load("digits.csv")\n'


def prepare(server: LabServer) -> str:
    """Send runs of every kind; returns the id of the one whose page is shown."""
    # Not this machine's own environment: its path would stand in the pictures.
    with (server.home / "config.toml").open("a") as config:
        config.write('python = "/usr/bin/python3"\n')
    (server.work / "train.py").write_text(TRAINING)
    (server.work / "evaluate.py").write_text(BROKEN)
    server.hpj("submit", "-c", "echo 65536 tokens", "--name", "tokenize", "--wait")
    failed = server.hpj("submit", "evaluate.py", "--name", "evaluate")
    while '"state": "failed"' not in server.hpj("show", failed, "--json"):
        time.sleep(0.2)
    size = ("--nodes", "2", "--processes-per-node", "2", "--launcher", "python")
    return server.hpj("submit", "train.py", *size, "--name", "train-digits")


def shoot(page: Page, name: str) -> None:
    """Take a picture once nothing moves any more."""
    page.mouse.move(0, VIEWPORT["height"] - 1)
    page.wait_for_timeout(800)
    path = IMAGES / f"{name}.png"
    store_picture(load_picture(page.screenshot()), path)
    print(f"    {path.relative_to(ROOT)}: {path.stat().st_size // 1024} kB")


def shoot_run_page(page: Page, run_id: str) -> None:
    """The panel beside a run's page, in both themes."""
    execute(page, "hyperpod:show-panel", keep=False)
    execute(page, "hyperpod:open-run", {"runId": run_id})
    expect(page.locator(RUN_PAGE).get_by_text(LATER).first).to_be_visible(timeout=60_000)
    in_both_themes(page, "run-page")


def shoot_card(page: Page, server: LabServer) -> None:
    """A cell with the magic, its output the live log, in both themes."""
    name = write_notebook(server.work, "digits.ipynb", [code_cell(LOAD), code_cell(CELL)])
    open_notebook(page, server, name)
    run_all(page)
    expect(page.locator(CARD).get_by_text(LATER).first).to_be_visible(timeout=60_000)
    in_both_themes(page, "cell-output")


def shoot_dialog(page: Page, server: LabServer) -> None:
    """The submit dialog for a cell."""
    name = write_notebook(server.work, "train.ipynb", [code_cell(TRAINING)])
    open_notebook(page, server, name)
    page.locator(".jp-Notebook .jp-CodeCell .cm-content").first.click()
    page.keyboard.press("Control+Shift+Enter")
    expect(page.locator(DIALOG)).to_contain_text("Ready to submit")
    shoot(page, "submit-dialog")
    page.keyboard.press("Escape")


def prepare_slurm(server: LabServer, cluster: SlurmTestbed) -> str:
    """Jobs of several users, a node with a fault, and a run of two nodes that runs for two minutes; returns its id."""
    (server.work / "train.py").write_text(TRAINING.replace("sleep(0.25)", "sleep(2)"))
    drain = ("update", "nodename=node4", "state=drain", "reason=GPU 3 has fallen off the bus")
    cluster.exec("ctl", "scontrol", *drain)
    # The long queue's node, so that the run has the two others for itself.
    first = sbatch(cluster, "-pbatch", "-t8:00:00", "--gpus-per-node=5", "-Jlm-7b", user="bob")
    wait_for_job(cluster, first, "RUNNING")
    sbatch(cluster, "-pbatch", "-t2:00:00", "--gpus-per-node=2", "-Jeval", user="alice")
    sbatch(cluster, "-pbatch", "-t8:00:00", "--gpus-per-node=8", "-Jlm-70b", user="bob")
    size = ("--nodes", "2", "--processes-per-node", "2", "--gpus-per-node", "4", "--queue", "dev")
    words = ("--cluster", SLURM, *size, "--launcher", "python", "--name", "train-digits")
    return server.hpj("submit", "train.py", *words)


def shoot_slurm(page: Page, run_id: str) -> None:
    """A Slurm cluster's nodes, and a run in its second attempt, in both themes."""
    page.set_viewport_size({"width": 1500, "height": 720})
    execute(page, "hyperpod:show-panel", keep=False)
    execute(page, "hyperpod:open-run", {"runId": run_id})
    run_page = page.locator(RUN_PAGE)
    expect(run_page.get_by_text("epoch  2").last).to_be_visible(timeout=60_000)
    more_action(run_page, "Requeue")
    page.locator(".jp-Dialog").get_by_role("button", name="Requeue").click()
    # A requeued job waits for up to two minutes.
    expect(run_page.locator('[data-kind="attempt"]').last).to_be_visible(timeout=180_000)
    expect(run_page.get_by_text("epoch  1").last).to_be_visible(timeout=60_000)
    run_tab(run_page, "Overview").get_by_text("2 attempts").click()
    in_both_themes(page, "slurm-run")
    execute(page, "hyperpod:open-cluster", {"cluster": SLURM})
    cluster_page = page.locator(CLUSTER_PAGE)
    expect(cluster_page.locator(".jp-HyperPod-NodeMap canvas")).to_be_visible()
    in_both_themes(page, "slurm-overview")
    cluster_page.get_by_role("tab", name="Nodes").click()
    expect(cluster_page.get_by_text("drained")).to_be_visible()
    in_both_themes(page, "slurm-cluster")


def in_both_themes(page: Page, name: str) -> None:
    """A picture in light, another one in dark."""
    shoot(page, name)
    use_theme(page, "JupyterLab Dark")
    shoot(page, f"{name}-dark")
    use_theme(page, "JupyterLab Light")


def local_pictures(page: Page, folder: Path) -> None:
    """Those on the embedded cluster."""
    with lab_server(folder / "home") as server:
        run_id = prepare(server)
        open_lab(page, server)
        shoot_run_page(page, run_id)
        server.cancel_all()
        shoot_card(page, server)
        server.cancel_all()
        shoot_dialog(page, server)


#: A notebook with every kind of output, whose figure is worth a look.
CELLS = [
    "lr = 0.1",
    (
        "import numpy as np\nimport pandas as pd\n\nrandom = np.random.default_rng(0)\nsteps = np.arange(400)\n"
        "loss = 0.3 + 2 * np.exp(-steps * lr / 6) + random.normal(0, 0.02, 400)\nprint(f'lr {lr}: loss {loss[-1]:.3f}')"
    ),
    "table = pd.DataFrame({'split': ['train', 'valid', 'test'], 'accuracy': [0.981, 0.942, 0.939], 'loss': [0.31, 0.36, 0.37]})\ntable",
    "import matplotlib.pyplot as plt\n\nplt.figure(figsize=(7, 2.6))\nplt.plot(steps, loss)\nplt.xlabel('step')\nplt.ylabel('loss');",
]


def notebook_pictures(page: Page, folder: Path) -> None:
    """The executed notebook in a run's page."""
    with lab_server(folder / "notebook") as server:
        cells = [{"cell_type": "markdown", "metadata": {}, "source": "# Digits: training"}]
        cells += [code_cell(text) for text in CELLS]
        cells[1]["metadata"] = {"tags": ["parameters"]}
        name = write_notebook(server.work, "digits.ipynb", cells)
        run_id = server.hpj("submit", name, "--name", "digits", "-p", "lr=0.2", "--wait")
        open_lab(page, server)
        execute(page, "hyperpod:show-panel", keep=False)
        execute(page, "hyperpod:open-run", {"runId": run_id})
        run_page = page.locator(RUN_PAGE)
        run_tab(run_page, "Notebook")
        expect(run_page.locator("img[src^='data:image/png']")).to_be_visible(timeout=SLOW_MS)
        in_both_themes(page, "notebook-tab")


def training_pictures(page: Page, folder: Path) -> None:
    """A run with curves and an alarm, and two runs compared."""
    page.set_viewport_size({"width": 1240, "height": 1000})
    with lab_server(folder / "training") as server:
        with (server.home / "config.toml").open("a") as config:
            config.write('python = "/usr/bin/python3"\n')
        (server.work / "pretrain.py").write_text(CURVES)
        size = ("--nodes", "1", "--processes-per-node", "2", "--launcher", "python")
        words = ("submit", "pretrain.py", *size)
        for name, rate in (("lr-1e-4", "1e-4"), ("lr-6e-4", "6e-4")):
            server.hpj(*words, "--name", name, "--wait", "--", rate, "400")
        open_lab(page, server)
        execute(page, "hyperpod:show-panel", keep=False)
        run_id = server.hpj(*words, "--name", "lr-3e-3", "--", "3e-3", "1000", "broken")
        execute(page, "hyperpod:open-run", {"runId": run_id})
        run_page = page.locator(RUN_PAGE)
        expect(run_page.get_by_text("step: 50/").first).to_be_visible(timeout=SLOW_MS)
        run_tab(run_page, "Overview")
        expect(run_page.locator(".jp-HyperPod-Alarms")).to_be_visible(timeout=SLOW_MS)
        page.wait_for_timeout(3000)
        in_both_themes(page, "training-run")
        execute(page, "hyperpod:open-runs", {"unfiltered": True}, keep=False)
        runs = page.locator(".jp-HyperPod-RunsPage")
        for name in ("lr-1e-4", "lr-6e-4"):
            runs.get_by_label(f"Select {name}", exact=True).set_checked(True)
        runs.get_by_role("button", name="Compare 2").click()
        expect(page.locator(".jp-HyperPod-ComparePage canvas").first).to_be_visible()
        in_both_themes(page, "training-compare")
    page.set_viewport_size(VIEWPORT)


#: A training that calls MLflow.
TRACKED = """\
import math
import time

import mlflow

with mlflow.start_run():
    mlflow.log_params({"lr": 3e-4, "batch_size": 512, "model": "llama-1b", "optimizer": "adamw"})
    for step in range(1, 61):
        loss = 1.9 + 8.5 * math.exp(-step / 12)
        print(f"step: {step}/60  loss: {loss:.4f}", flush=True)
        mlflow.log_metrics({"loss": loss, "tokens_per_second": 9100 + 3 * step}, step=step)
        time.sleep(0.05)
"""


def mlflow_pictures(page: Page, folder: Path) -> None:
    """A run's page with what MLflow has of it."""
    page.set_viewport_size({"width": 1240, "height": 1000})
    with MlflowServer() as mlflow, lab_server(folder / "mlflow") as server:
        (server.work / "train.py").write_text(TRACKED)
        words = ("--name", "pretrain", "--mlflow", mlflow.url, "--mlflow-experiment", "llama")
        run_id = server.hpj("submit", "train.py", *words, "--wait")
        open_lab(page, server)
        execute(page, "hyperpod:show-panel", keep=False)
        execute(page, "hyperpod:open-run", {"runId": run_id})
        run_page = page.locator(RUN_PAGE)
        expect(run_page.get_by_text("step: 60/").first).to_be_visible(timeout=SLOW_MS)
        run_tab(run_page, "Overview")
        link = run_page.get_by_role("button", name="Open pretrain in MLflow")
        expect(link).to_be_visible(timeout=SLOW_MS)
        in_both_themes(page, "mlflow-run")
    page.set_viewport_size(VIEWPORT)


#: Notebooks, and how many hours they ran a day. A week has two days on which few people work.
USED = {"pretrain": 9.0, "finetune": 6.0, "evaluate": 3.0, "clean-data": 1.5, "explore": 1.0}


def usage_pictures(page: Page, folder: Path) -> None:
    """A month of usage by notebook: real runs, whose records are moved to other days."""
    home = folder / "usage"
    config = (
        f'[storage]\npath = "{home / "fsx"}"\n[clusters.local]\nslots = 4\npython = "/usr/bin/python3"\n'
        "[clusters.local.cost]\nnode_price = 12\n"
    )
    server = LabServer(home, config=config)
    random = Random(0)
    for day in range(29, 0, -1):
        is_weekend = datetime.fromtimestamp(time.time() - day * DAY_S, UTC).weekday() >= 5
        for name, hours in USED.items():
            if random.random() < (0.25 if is_weekend else 0.75):
                notebook = write_notebook(server.work, f"{name}.ipynb", [code_cell("print(1)")])
                ran = hours * random.uniform(0.3, 1.4)
                submit_in_the_past(server, notebook, days=day, hours=ran)
    try:
        server.start()
        open_lab(page, server)
        execute(page, "hyperpod:show-panel", keep=False)
        execute(page, "hyperpod:open-usage")
        usage = page.locator(".jp-HyperPod-UsagePage")
        expect(usage.locator("canvas")).to_be_visible(timeout=SLOW_MS)
        usage.get_by_label("By").select_option("Notebook")
        expect(usage.get_by_role("row", name="pretrain.ipynb")).to_be_visible(timeout=SLOW_MS)
        usage.get_by_role("button", name="Cost", exact=True).click()
        in_both_themes(page, "usage")
    finally:
        server.stop()


def job_pictures(page: Page, folder: Path) -> None:
    """The form of jupyter-scheduler, filled in."""
    config = f'[storage]\npath = "{folder / "jobs" / "fsx"}"\n[clusters.{SLURM}]\norchestrator = "slurm"\n'
    with lab_server(folder / "jobs", config=config, notebook_jobs=True) as server:
        write_notebook(server.work, "train.ipynb", [code_cell(TRAINING)])
        open_lab(page, server)
        parameters = {"epochs": "20", "--nodes": "4", "--time-limit": "2h"}
        form = job_form(page, "train.ipynb", f"HyperPod: {SLURM}", **parameters)
        form.get_by_label("Run job with input folder").check()
        in_both_themes(page, "notebook-jobs")


def slurm_pictures(page: Page, folder: Path) -> None:
    """Those on Slurm."""
    with running(*standard_options()) as cluster, slurm_lab(folder / "here", cluster, name=SLURM) as server:
        run_id = prepare_slurm(server, cluster)
        open_lab(page, server)
        shoot_slurm(page, run_id)


def prepare_kubernetes(server: LabServer, cluster: KubernetesTestbed) -> str:
    """The example's queue, a run on two nodes, and one that waits for quota; returns the first one's id."""
    (server.work / "train.py").write_text(TRAINING.replace("sleep(0.25)", "sleep(2)"))
    cluster.kubectl("label", "nodes", "--all", "--overwrite", f"{INSTANCE_TYPE}=ml.p5.48xlarge")
    cluster.kubectl("apply", "--server-side", "-f", EXAMPLES / "queue.yaml")
    words = ("--cluster", KUBERNETES, "--queue", "training", "--nodes", "2", "--launcher", "python")
    run_id = server.hpj(
        *("submit", "train.py", *words, "--gpus-per-node", "6", "--processes-per-node", "2"),
        *("--name", "train-digits"),
    )
    ranks = ("--gpus-per-node", "8", "--processes-per-node", "1")
    server.hpj("submit", "train.py", *words, *ranks, "--name", "train-large")
    return run_id


def shoot_kubernetes(page: Page, run_id: str) -> None:
    """A run on two pods with the ways into them, and quota, in both themes."""
    page.set_viewport_size({"width": 1500, "height": 720})
    execute(page, "hyperpod:show-panel", keep=False)
    execute(page, "hyperpod:open-run", {"runId": run_id})
    run_page = page.locator(RUN_PAGE)
    expect(run_page.get_by_text("epoch  2").last).to_be_visible(timeout=120_000)
    run_page.get_by_text("Shells", exact=True).click()
    expect(run_page.get_by_text("Shell on 1")).to_be_visible(timeout=60_000)
    in_both_themes(page, "kubernetes-run")
    execute(page, "hyperpod:open-cluster", {"cluster": KUBERNETES})
    page.locator(CLUSTER_PAGE).get_by_role("tab", name="Queues").click()
    expect(page.locator(".jp-HyperPod-Quotas").first).to_be_visible(timeout=60_000)
    in_both_themes(page, "kubernetes-queues")


def kubernetes_pictures(page: Page, folder: Path) -> None:
    """Those on Kubernetes."""
    parts = ("training-operator", "kueue")
    with (
        running_kubernetes("--gpus", "8", parts=parts) as cluster,
        some_namespace(cluster, NAMESPACE) as namespace,
        kubernetes_lab(folder / "eks", cluster, namespace, name=KUBERNETES) as server,
    ):
        run_id = prepare_kubernetes(server, cluster)
        open_lab(page, server)
        shoot_kubernetes(page, run_id)


def hyperpod_pictures(page: Page, folder: Path) -> None:
    """Those of HyperPod clusters, of the doctor and of the page for admins."""
    home = folder / "aws"
    config = f'[storage]\npath = "{home / "fsx"}"\n[clusters.local]\npython = "/usr/bin/python3"\n'
    mounts = folder / "mounts"
    mounts.write_text(MOUNTS.read_text())
    with hyperpod_lab(home, config, mounts=mounts) as (server, endpoint):
        add_telemetry(endpoint.account, REGION)
        open_lab(page, server)
        execute(page, "hyperpod:show-panel")
        execute(page, "hyperpod:open-cluster", {"cluster": "ml-cluster"})
        shown = page.locator(CLUSTER_PAGE)
        shown.get_by_role("tab", name="Nodes", exact=True).click()
        for at in (1, 2):
            shown.get_by_role("checkbox", name=CHOOSE).nth(at).check()
        expect(shown.get_by_role("button", name="Replace…")).to_be_enabled()
        in_both_themes(page, "hyperpod-nodes")
        execute(page, "hyperpod:open-metrics", {"cluster": "research-eks"})
        expect(page.locator(".jp-HyperPod-Chart canvas").first).to_be_visible(timeout=SLOW_MS)
        in_both_themes(page, "hyperpod-metrics")
        execute(page, "hyperpod:open-doctor")
        expect(page.get_by_role("button", name="Run again")).to_be_visible(timeout=SLOW_MS)
        in_both_themes(page, "doctor")
        add_people(endpoint.account)
        execute(page, "hyperpod:open-admin")
        page.get_by_role("radio", name="One folder per user profile").check()
        disk = folder / "whole"
        disk.mkdir()
        mounts.write_text(MOUNTS.read_text() + whole_file_system(disk))
        more = page.locator(".jp-HyperPod-Admin details summary")
        more.click()
        page.get_by_label("Create and check folders").select_option("here")
        page.get_by_label("Mount path of the whole file system").fill(str(disk))
        more.click()
        page.get_by_role("button", name="Preview changes").click()
        expect(page.get_by_role("heading", name="After", exact=True)).to_be_visible(timeout=SLOW_MS)
        in_both_themes(page, "admin")


def main() -> int:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        print("Chromium is missing; scripts/ui-test.sh installs it", file=sys.stderr)
        return 1
    wanted = sys.argv[1:] or [
        "local",
        "notebook",
        "mlflow",
        "training",
        "usage",
        "jobs",
        "slurm",
        "kubernetes",
        "hyperpod",
    ]
    IMAGES.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="hyperpod-"))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=QUIET, headless=True)
        page = browser.new_context(viewport=VIEWPORT).new_page()
        if "local" in wanted:
            local_pictures(page, folder)
        if "notebook" in wanted:
            notebook_pictures(page, folder)
        if "mlflow" in wanted:
            mlflow_pictures(page, folder)
        if "training" in wanted:
            training_pictures(page, folder)
        if "usage" in wanted:
            usage_pictures(page, folder)
        if "jobs" in wanted:
            job_pictures(page, folder)
        if "slurm" in wanted:
            slurm_pictures(page, folder)
        if "kubernetes" in wanted:
            kubernetes_pictures(page, folder)
        if "hyperpod" in wanted:
            hyperpod_pictures(page, folder)
        browser.close()
    shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
