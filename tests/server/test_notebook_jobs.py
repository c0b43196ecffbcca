"""Notebook jobs: a real jupyter-scheduler, with the configuration that our wheel installs, runs them on the embedded cluster."""

import asyncio
import json
import time
from pathlib import Path

import nbformat
import pytest
from jupyter_scheduler.executors import DefaultExecutionManager
from jupyter_scheduler.models import Status
from jupyter_scheduler.orm import Job
from jupyter_scheduler.scheduler import Scheduler
from traitlets.config import Config

from hyperpod_jlab.server.notebook_jobs.environments import HyperPodEnvironmentManager
from hyperpod_jlab.server.notebook_jobs.scheduler import HyperPodScheduler
from tests.server.conftest import DEADLINE

# Some wait several times for DEADLINE.
pytestmark = pytest.mark.timeout(300)

INSTALLED = Path(__file__).parents[2] / "jupyter-config/scheduler"
ENDS = {"COMPLETED", "FAILED", "STOPPED"}
LOCAL = "HyperPod: local"
SLEEP = "import time\ntime.sleep(600)"


@pytest.fixture
def jp_server_config(jp_server_config):
    """A server with jupyter-scheduler, which looks for due jobs each second."""
    config = json.loads((INSTALLED / "jupyter_jupyter_scheduler_config.json").read_text())
    config["BaseTaskRunner"] = {"poll_interval": 1}
    jp_server_config.merge(Config(config))
    jp_server_config.ServerApp.jpserver_extensions["jupyter_scheduler"] = True
    return jp_server_config


class Jobs:
    """jupyter-scheduler's REST API."""

    def __init__(self, fetch):
        self._fetch = fetch

    async def request(self, verb, *path, **body):
        data = json.dumps(body) if verb in {"POST", "PATCH"} else None
        answer = await self._fetch("scheduler", *path, method=verb, body=data)
        return json.loads(answer.body) if answer.body else None

    async def create(self, path, **fields):
        body = {"input_uri": path, "name": "a job", "output_formats": ["ipynb", "html"], **fields}
        answer = await self.request("POST", "jobs", **{"runtime_environment_name": LOCAL, **body})
        return answer["job_id"]

    async def until(self, job_id, *statuses):
        return await self.wait(lambda: self.request("GET", "jobs", job_id), statuses)

    async def wait(self, ask, statuses):
        deadline = time.monotonic() + DEADLINE
        while (job := await ask())["status"] not in statuses:
            assert time.monotonic() < deadline, f"never {statuses} in {DEADLINE} s; last: {job}"
            await asyncio.sleep(0.1)
        return job

    async def outputs(self, job, root):
        """The files in the job's folder, once all are downloaded, and the executed notebook."""
        await self.request("GET", "jobs", job["job_id"], "download_files")
        deadline = time.monotonic() + DEADLINE
        while not (now := await self.request("GET", "jobs", job["job_id"]))["downloaded"]:
            assert time.monotonic() < deadline, f"not downloaded in {DEADLINE} s: {now}"
            await asyncio.sleep(0.1)
        paths = {file["file_format"]: root / file["file_path"] for file in now["job_files"]}
        return paths["ipynb"].parent, nbformat.read(paths["ipynb"], as_version=4), paths


@pytest.fixture
def jobs(jp_fetch):
    return Jobs(jp_fetch)


@pytest.fixture
def root(jp_root_dir, monkeypatch):
    """The server's folder, and its working folder, as jupyter-scheduler's downloads need."""
    monkeypatch.chdir(jp_root_dir)
    return jp_root_dir


def write(path, *cells):
    """Write a notebook whose first cell has its parameters."""
    path.parent.mkdir(exist_ok=True)
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = nbformat.v4.new_notebook(metadata={"kernelspec": kernel})
    notebook.cells = [nbformat.v4.new_code_cell(cell) for cell in cells]
    notebook.cells[0].metadata["tags"] = ["parameters"]
    nbformat.write(notebook, path)


def printed(notebook):
    return [
        output.text
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if output.output_type == "stream"
    ]


async def test_parameters_options_and_the_input_folder_go_along_and_files_come_back(jobs, api, root):
    write(
        root / "project/train.ipynb",
        "lr, name, flag = 0.1, '', False",
        "import helper\nprint(lr, name, flag, helper.WORD)",
        "import os\nos.makedirs('out', exist_ok=True)\nopen('out/result.txt', 'w').write(os.environ['A'])",
    )
    notebook = nbformat.read(root / "project/train.ipynb", as_version=4)
    notebook.cells.append(nbformat.v4.new_markdown_cell("what it\nmeans"))
    nbformat.write(notebook, root / "project/train.ipynb")
    (root / "project/helper.py").write_text("WORD = 'helped'")
    offered = await jobs.request("GET", "runtime_environments")
    assert (offered[-1]["name"], offered[-1]["label"]) == (LOCAL, LOCAL)
    parameters = {"lr": "0.5", "name": "'x'", "flag": "True"}
    options = {"--time-limit": "10m", "--env": "A='1 2' B=3"}
    job_id = await jobs.create(
        "project/train.ipynb",
        package_input_folder=True,
        parameters={**parameters, **options},
        runtime_environment_parameters={"processes_per_node": 2},
    )
    job = await jobs.until(job_id, *ENDS)
    assert job["status"] == "COMPLETED", job["status_message"]
    folder, notebook, paths = await jobs.outputs(job, root)
    assert printed(notebook) == ["0.5 x True helped\n"]
    assert "0.5 x True helped" in paths["html"].read_text()
    assert "what it\nmeans" in paths["html"].read_text()
    assert (folder / "out/result.txt").read_text() == "1 2"
    run = await api.get(f"runs/{job_id}")
    assert (run["name"], run["state"], run["processes_per_node"]) == ("a job", "succeeded", 2)
    assert run["started_at"][:19] == time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(job["start_time"] // 1000))


async def test_jobs_that_fail_or_are_stopped_or_deleted_or_refused(jobs, api, root, jp_serverapp):
    write(root / "fails.ipynb", "print('before')", "1 / 0")
    write(root / "sleeps.ipynb", "print('before')", SLEEP)
    write(root / "picture.ipynb", "1")
    picture = nbformat.read(root / "picture.ipynb", as_version=4)
    picture.cells.append(nbformat.v4.new_markdown_cell("![](attachment:gone.png)"))
    nbformat.write(picture, root / "picture.ipynb")
    failing = await jobs.create("fails.ipynb")
    stopped = await jobs.create("sleeps.ipynb")
    deleted = await jobs.create("sleeps.ipynb")
    unmade = await jobs.create("picture.ipynb")  # nbconvert makes no HTML of it
    refused = await jobs.create("fails.ipynb", parameters={"--nodez": "2"})
    with jp_serverapp.web_app.settings["scheduler"].jobs.db_session() as session:
        row = Job(runtime_environment_name=LOCAL, input_filename="fails.ipynb", output_formats=[])
        row.name, row.status = "killed while it was submitted", Status.IN_PROGRESS
        session.add(row)
        session.commit()
        killed = row.job_id

    job = await jobs.until(failing, *ENDS)
    assert job["status"] == "FAILED"
    assert "ZeroDivisionError in cell 2 line 1: division by zero" in job["status_message"]
    _, notebook, _ = await jobs.outputs(job, root)
    assert printed(notebook) == ["before\n"]
    assert notebook.cells[1].outputs[0].ename == "ZeroDivisionError"

    for job_id in (stopped, deleted):
        await jobs.wait(lambda job_id=job_id: shown(api, job_id), {"running"})
    await jobs.request("PATCH", "jobs", stopped, status="STOPPED")
    await jobs.request("DELETE", "jobs", deleted)
    job = await jobs.until(stopped, *ENDS)
    assert (job["status"], job["status_message"]) == ("STOPPED", None)
    for job_id in (stopped, deleted):
        await jobs.wait(lambda job_id=job_id: shown(api, job_id), {"cancelled"})

    job = await jobs.until(unmade, *ENDS)
    assert job["status"] == "FAILED"
    assert job["status_message"].startswith("The run succeeded, but its files cannot be copied: ")
    assert "gone.png" in job["status_message"]

    job = await jobs.until(refused, *ENDS)
    assert job["status"] == "FAILED"
    assert job["status_message"] == "unknown option '--nodez' (did you mean '--nodes'?)"

    job = await jobs.until(killed, *ENDS)
    assert job["status"] == "FAILED"
    assert "JupyterLab was stopped before it was submitted" in job["status_message"]


async def shown(api, run_id):
    """The state of a run that may not have been submitted yet."""
    status, run = await api.request("GET", f"runs/{run_id}")
    return {"status": run["state"] if status == 200 else run["code"]}


async def test_schedules_start_runs_and_other_environments_stay_as_they_are(jobs, api, root):
    write(root / "a.ipynb", "x = 1", "print(x)")
    own = await jobs.request("GET", "runtime_environments")
    here = await jobs.create("a.ipynb", runtime_environment_name=own[0]["name"])
    definition = await jobs.request(
        "POST",
        "job_definitions",
        input_uri="a.ipynb",
        name="each second",
        runtime_environment_name=LOCAL,
        parameters={"x": "7"},
        output_formats=["ipynb"],
        schedule="* * * * * *",
        timezone="UTC",
    )
    deadline = time.monotonic() + DEADLINE
    while not (found := (await listed(jobs, definition["job_definition_id"]))):
        assert time.monotonic() < deadline, "the schedule never fires"
        await asyncio.sleep(0.1)
    await jobs.request("PATCH", "job_definitions", definition["job_definition_id"], active=False)
    job = await jobs.until(found[0]["job_id"], *ENDS)
    assert job["status"] == "COMPLETED", job["status_message"]
    _, notebook, _ = await jobs.outputs(job, root)
    assert printed(notebook) == ["7\n"]
    assert (await jobs.until(here, "COMPLETED", "FAILED"))["status"] == "COMPLETED"
    assert await shown(api, here) == {"status": "no_such_run"}


async def listed(jobs, definition_id):
    answer = await jobs._fetch("scheduler", "jobs", params={"job_definition_id": definition_id})
    return json.loads(answer.body)["jobs"]


@pytest.mark.parametrize(
    ("scheduler", "config", "expected"),
    [
        (HyperPodScheduler, {}, True),
        (HyperPodScheduler, {"execution_manager_class": DefaultExecutionManager}, False),
        (Scheduler, {}, False),
    ],
)
async def test_clusters_are_offered_only_where_jobs_can_run_on_them(cluster, tmp_path, scheduler, config, expected):
    environments = HyperPodEnvironmentManager()
    scheduler(
        root_dir=str(tmp_path),
        environments_manager=environments,
        db_url=f"sqlite:///{tmp_path}/jobs.sqlite",
        config=Config({"Scheduler": config}),
    )
    assert environments.has_clusters == expected
    names = [one.name for one in await environments.list_environments()]
    assert names  # jupyter-scheduler's own
    assert LOCAL not in names, "offered outside of a request, where no user is known"
