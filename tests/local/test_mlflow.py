"""Runs in MLflow: a real server, runs that call it and runs that do not, and a server that fails in every way."""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from hyperpod_jlab.core.config import Settings
from hyperpod_jlab.core.errors import DeniedError, NotFoundError, RefusedError, UnreachableError
from hyperpod_jlab.core.run import Run
from hyperpod_jlab.core.run_id import new_run_id
from hyperpod_jlab.core.spec import MlflowOptions
from hyperpod_jlab.features.mlflow import service
from hyperpod_jlab.features.mlflow.models import RunMlflow
from hyperpod_jlab.features.mlflow.service import link_to, read_mlflow
from hyperpod_jlab.launcher.bundle_files import AttemptPaths
from hyperpod_jlab.launcher.mlflow_api import MlflowApi, MlflowFault
from hyperpod_jlab.launcher.mlflow_sender import MlflowNumbers, MlflowSender
from hyperpod_jlab.storage.records import BundleReader
from testbed.aws.endpoint import Endpoint
from testbed.aws.example import client_environment
from testbed.aws.mlflow import add_mlflow
from testbed.mlflow import MlflowGate, MlflowServer, Mode
from tests.aws.conftest import REGION, endpoint, no_aws, patient_mlflow
from tests.local.conftest import LocalCluster

__all__ = ["endpoint", "no_aws", "patient_mlflow"]

# The server alone may take 90 s to start.
pytestmark = [pytest.mark.timeout(300), pytest.mark.usefixtures("patient_mlflow")]

UNTIL_GO = """
import os, pathlib, time
def may_go():
    time.sleep(0.05)
    return pathlib.Path("go-" + os.environ["HYPERPOD_ATTEMPT"]).exists()
"""
"""What scripts wait with: the sender has a few seconds after their end, which are not enough for all requests when the machine is busy."""

TRAIN = f"""{UNTIL_GO}
for step in range(40):
    print(f"step {{step}} loss {{1 / (step + 1)}} accuracy {{step / 40}}", flush=True)
while not may_go():
    pass
print("step 40 loss nan", flush=True)
"""

STEPS = f"""{UNTIL_GO}
step = 0
while not may_go():
    print(f"step {{step}} loss {{1 / (step + 1)}}", flush=True)
    step += 1
"""

CALLS = f"""{UNTIL_GO}
import mlflow
with mlflow.start_run() as run:
    mlflow.log_param("lr", 0.1)
    mlflow.log_metric("loss", 0.5, step=3)
    print("step 7 accuracy 0.75", flush=True)
    while not may_go():
        pass
"""


@pytest.fixture(scope="module")
def server() -> Iterator[MlflowServer]:
    with MlflowServer() as made:
        # The first request of each kind takes longest.
        run = made.post("runs/create", {"experiment_id": "0"})["run"]["info"]["run_id"]
        number = {"key": "loss", "value": 1, "timestamp": 1, "step": 1}
        made.post("runs/log-batch", {"run_id": run, "metrics": [number]})
        made.post("runs/update", {"run_id": run, "status": "FINISHED"})
        made.runs_of("none")
        made.history(run, "loss")
        yield made


@pytest.fixture
def gate(server: MlflowServer) -> Iterator[MlflowGate]:
    with MlflowGate(server.url) as made:
        yield made


async def train(local: LocalCluster, uri: str, text: str = TRAIN, **spec: Any) -> str:
    """Submit a script whose numbers go to MLflow. After a failure the sender has no more time than `stop_grace`."""
    (local.folder / "train.py").write_text(text)
    options = {"tracking_uri": uri, "experiment": "toy", "log_numbers": True}
    mlflow = {**options, **spec.pop("mlflow", {})}
    source = {"kind": "script", "path": "train.py"}
    return await local.submit(source=source, name="toy-run", mlflow=mlflow, stop_grace=20, **spec)


async def of_run(local: LocalCluster, run_id: str) -> RunMlflow:
    return await read_mlflow(local.hyperpod, await local.hyperpod.runs.get(run_id))


async def alarms(local: LocalCluster, run_id: str) -> list[str]:
    metrics = await asyncio.to_thread(local.hyperpod.metrics.get, run_id)
    await asyncio.to_thread(metrics.refresh)
    found = metrics.summary(ended=False).alarms
    return [one.message for one in found if one.code == "mlflow"]


def node_log(local: LocalCluster, run_id: str) -> str:
    return (local.records(run_id) / "logs/attempt-1/node-0.log").read_text()


def go(local: LocalCluster, run_id: str, attempt: int = 1) -> None:
    """Let the script of an attempt end."""
    (local.hyperpod.runs.bundle(run_id).folder / "work" / f"go-{attempt}").touch()


async def until_sent(
    local: LocalCluster, server: MlflowServer, run_id: str, attempt: int = 1
) -> None:
    """Wait until the server has numbers of a running attempt."""

    def there(run: Run) -> bool:
        assert not run.status.ended, run.status
        return any(
            server.history(one["info"]["run_id"], "loss")
            for one in server.runs_of(run_id)
            if tags_of(one)["hyperpod.attempt"] == str(attempt)
        )

    await local.until(run_id, there, deadline=100)


def tags_of(run: dict[str, Any]) -> dict[str, str]:
    return {one["key"]: one["value"] for one in run["data"]["tags"]}


async def test_numbers_of_code_that_does_not_call_mlflow(
    local: LocalCluster, server: MlflowServer
) -> None:
    run_id = await train(local, server.url)
    await until_sent(local, server, run_id)
    go(local, run_id)
    await local.ended(run_id)
    (found,) = server.runs_of(run_id)
    assert (found["info"]["status"], found["info"]["run_name"]) == ("FINISHED", "toy-run")
    metrics = local.hyperpod.metrics.get(run_id)
    metrics.refresh()
    for name, last in (("loss", (40, None)), ("accuracy", (39, 39 / 40))):
        ((series,), _) = metrics.read([name])
        read = [(step, value) for step, _, value in series.points]
        assert read[-1] == last
        sent = sorted(server.history(found["info"]["run_id"], name))
        assert [(step, None if math.isnan(value) else value) for step, value in sent] == read
    tags = tags_of(found)
    assert (tags["hyperpod.run_id"], tags["hyperpod.cluster"], tags["hyperpod.attempt"]) == (
        *(run_id, "local", "1"),
    )
    assert f"hpj show {run_id}" in tags["mlflow.note.content"]
    assert "MLflow" not in node_log(local, run_id)


async def test_code_that_calls_mlflow_is_found_and_gets_the_numbers_too(
    local: LocalCluster, server: MlflowServer
) -> None:
    run_id = await train(local, server.url, CALLS, environment={"python": sys.executable})
    while (
        shown := (await of_run(local, run_id)).mlflow
    ) is None or "accuracy" not in shown.metrics:
        assert not (await local.hyperpod.runs.get(run_id)).status.ended
        await asyncio.sleep(0.1)
    go(local, run_id)
    await local.ended(run_id)
    (raw,) = server.runs_of(run_id)
    known = (await of_run(local, run_id)).mlflow
    assert known is not None
    assert (known.run_id, known.name, known.status, known.attempt) == (
        *(raw["info"]["run_id"], "toy-run", "FINISHED", 1),
    )
    assert known.params == {"lr": "0.1"}
    assert {name: (one.value, one.step) for name, one in known.metrics.items()} == {
        "loss": (0.5, 3),
        "accuracy": (0.75, 7),
    }
    assert known.url == (await link_to(local.hyperpod, run_id)).url
    assert known.url == (f"{server.url}/#/experiments/{known.experiment_id}/runs/{known.run_id}")


def test_a_name_that_mlflow_refuses_is_changed_or_does_not_hold_up_the_others(
    server: MlflowServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run = server.post("runs/create", {"experiment_id": "0"})["run"]["info"]["run_id"]
    api, folder = MlflowApi(server.url, {}, timeout=30.0), str(tmp_path)
    sender = MlflowSender(AttemptPaths(folder, folder, 1, 0), {})
    sender._api, sender._mlflow_run = api, run
    values = dict.fromkeys(("good", "a//b", "/x/./y/", "../z/..", "..", ".../up"), 1)
    for step in (1, 2):
        record = {"rank": 0, "time": 1, "step": step, "values": values}
        sent = MlflowNumbers().convert(record)
        sender._send([*sent, {**sent[0], "key": "../bad"}])
    for name in ("good", "a/b", "x/y", "z", "_", "up"):
        assert [step for step, _ in server.history(run, name)] == [1, 2]
    assert capfd.readouterr().out.count("the numbers of ../bad are not in MLflow") == 1
    server.post("runs/delete", {"run_id": run})
    with pytest.raises(MlflowFault, match="active"):
        sender._send([{"key": "good", "value": 1, "timestamp": 1, "step": 3}])


@pytest.mark.parametrize(("end", "status"), [("fail", "FAILED"), ("cancel", "KILLED")])
async def test_how_a_run_ends_is_told(
    local: LocalCluster, server: MlflowServer, end: str, status: str
) -> None:
    run_id = await train(local, server.url, STEPS + "raise SystemExit(3)")
    await until_sent(local, server, run_id)
    if end == "cancel":
        await local.hyperpod.runs.act(run_id, "cancel")
    else:
        go(local, run_id)
    await local.ended(run_id)
    (found,) = server.runs_of(run_id)
    assert found["info"]["status"] == status


@pytest.mark.parametrize("number", [0, 1])
async def test_numbers_to_a_server_of_sagemaker(
    local: LocalCluster, server: MlflowServer, endpoint: Endpoint, number: int
) -> None:
    add_mlflow(endpoint.account, REGION, server.url)
    arn = endpoint.account.mlflow[REGION][number].arn
    url = os.environ["AWS_ENDPOINT_URL"]
    variables = client_environment(url, REGION) | {"SAGEMAKER_MLFLOW_CUSTOM_ENDPOINT": url}
    environment = {"python": sys.executable, "variables": variables}
    run_id = await train(local, arn, environment=environment)
    await until_sent(local, server, run_id)
    go(local, run_id)
    await local.ended(run_id)
    assert await alarms(local, run_id) == []
    (found,) = server.runs_of(run_id)
    assert found["info"]["status"] == "FINISHED"
    assert server.history(found["info"]["run_id"], "loss")


async def test_parameters_of_a_notebook(local: LocalCluster, server: MlflowServer) -> None:
    cell = {
        "cell_type": "code",
        "id": "a",
        "metadata": {"tags": ["parameters"]},
        "source": "lr = 1",
    }
    text = f"{UNTIL_GO}\nprint('step 1 loss', lr, flush=True)\nwhile not may_go():\n    pass"
    train = {"cell_type": "code", "id": "b", "metadata": {}, "source": text}
    cells = [{**one, "outputs": [], "execution_count": None} for one in (cell, train)]
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (local.folder / "toy.ipynb").write_text(json.dumps(notebook))
    run_id = await local.submit(
        source={
            "kind": "notebook",
            "path": "toy.ipynb",
            "parameters": {"lr": 0.5, "data": "small"},
        },
        mlflow={"tracking_uri": server.url, "log_numbers": True},
    )
    await until_sent(local, server, run_id)
    go(local, run_id)
    await local.ended(run_id)
    known = (await of_run(local, run_id)).mlflow
    assert known is not None
    assert known.params == {"lr": "0.5", "data": "small"}
    assert known.metrics["loss"].value == 0.5


async def test_each_attempt_has_a_run_and_one_that_was_left_is_ended(
    local: LocalCluster, server: MlflowServer
) -> None:
    text = TRAIN + "os._exit(1 if os.environ['HYPERPOD_ATTEMPT'] == '1' else 0)"
    run_id = new_run_id()
    experiment = server.post("experiments/create", {"name": run_id})["experiment_id"]
    tags = {"run_id": run_id, "attempt": "0", "log_numbers": "true"}  # as of a node that was lost
    server.post(
        "runs/create",
        {
            "experiment_id": experiment,
            "tags": [{"key": f"hyperpod.{key}", "value": value} for key, value in tags.items()],
        },
    )
    options = {"experiment": run_id}
    await train(local, server.url, text, run_id=run_id, mlflow=options, max_restarts=1)
    for attempt in (1, 2):
        await until_sent(local, server, run_id, attempt)
        go(local, run_id, attempt)
    await local.ended(run_id)
    found = {tags_of(one)["hyperpod.attempt"]: one for one in server.runs_of(run_id)}
    assert {attempt: one["info"]["status"] for attempt, one in found.items()} == {
        "0": "FAILED",
        "1": "FAILED",
        "2": "FINISHED",
    }
    known = (await of_run(local, run_id)).mlflow
    assert known is not None
    assert known.attempt == 2


@pytest.mark.parametrize("mode", ["gone", pytest.param("hanging", marks=pytest.mark.full)])
async def test_a_server_that_fails_in_mid_run_gets_all_numbers_once_it_is_back(
    local: LocalCluster, server: MlflowServer, gate: MlflowGate, mode: Mode
) -> None:
    run_id = await train(local, gate.url, STEPS)
    await until_sent(local, server, run_id)
    gate.mode = mode
    while not (said := await alarms(local, run_id)):
        assert not (await local.hyperpod.runs.get(run_id)).status.ended
        await asyncio.sleep(0.1)
    assert said[0].startswith("MLflow at 127.0.0.1")
    gate.mode = "open"
    gate.released.set()
    gate.released.clear()
    while await alarms(local, run_id):
        assert not (await local.hyperpod.runs.get(run_id)).status.ended
        await asyncio.sleep(0.1)
    go(local, run_id)
    assert (await local.ended(run_id)).state == "succeeded"
    (found,) = server.runs_of(run_id)
    steps = sorted(step for step, _ in server.history(found["info"]["run_id"], "loss"))
    assert steps == list(range(len(steps)))
    assert found["info"]["status"] == "FINISHED"
    said = re.findall("the run goes on|MLflow takes numbers again", node_log(local, run_id))
    # A server that is slow is one that fails, too: there may be more than one pair.
    assert said == ["the run goes on", "MLflow takes numbers again"] * max(1, len(said) // 2)


@pytest.mark.parametrize("mode", ["failing", "denied", "hanging"])
async def test_a_server_that_never_answers_is_a_finding_and_no_reason_to_fail(
    local: LocalCluster, gate: MlflowGate, monkeypatch: pytest.MonkeyPatch, mode: Mode
) -> None:
    gate.mode = mode
    run_id = await train(local, gate.url)
    while not await alarms(local, run_id):
        assert not (await local.hyperpod.runs.get(run_id)).status.ended
        await asyncio.sleep(0.1)
    go(local, run_id)
    assert (await local.ended(run_id)).state == "succeeded"
    if mode == "hanging":
        monkeypatch.setattr(service, "TIMEOUT_S", 1.5)
    (said,) = await alarms(local, run_id)
    assert "MLflow" in said
    known = await of_run(local, run_id)
    assert known.mlflow is None
    assert known.problem is not None
    assert known.problem.startswith("MLflow")
    assert known.tracking_uri == gate.url
    with pytest.raises(UnreachableError, match="MLflow"):
        await link_to(local.hyperpod, run_id)


async def test_a_run_that_mlflow_does_not_know_has_no_link(
    local: LocalCluster, server: MlflowServer
) -> None:
    run_id = await local.submit("true", mlflow={"tracking_uri": server.url})
    await local.ended(run_id)
    with pytest.raises(NotFoundError, match="MLflow has no run of") as missing:
        await link_to(local.hyperpod, run_id)
    assert "--log-numbers" in str(missing.value.hint)


async def test_a_password_is_used_and_stands_nowhere(
    local: LocalCluster, server: MlflowServer, gate: MlflowGate
) -> None:
    run_id = await train(
        local,
        gate.url,
        environment={"secrets": {"MLFLOW_TRACKING_TOKEN": ""}},
        # As a Secret of Kubernetes that was made of a file.
        secrets={"MLFLOW_TRACKING_TOKEN": "s3cret-token\n"},
    )
    await until_sent(local, server, run_id)
    go(local, run_id)
    await local.ended(run_id)
    assert {headers.get("Authorization") for _, headers in gate.asked} == {"Bearer s3cret-token"}
    bundle = local.hyperpod.runs.bundle(run_id).folder
    files = [path for path in bundle.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if b"s3cret-token" in path.read_bytes()]


async def test_the_users_variables_and_the_clusters_configuration_win(
    local: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    configured = {
        "mlflow": {"tracking_uri": "http://all:5000", "experiment": "all"},
        "clusters": {"local": {"mlflow": {"tracking_uri": "http://local:5000"}}},
    }
    settings = Settings.model_validate(configured)
    submitter = local.hyperpod.submitter
    monkeypatch.setattr(submitter._engines, "settings", settings)

    async def resolved(**spec: Any) -> dict[str, Any]:
        preview = await submitter.preview(local.request("true", **spec))
        found = preview.plan.get("mlflow") or {}
        return {name: found.get(name) for name in ("tracking_uri", "experiment")}

    assert await resolved() == {"tracking_uri": "http://local:5000", "experiment": "all"}
    own = {"mlflow": {"tracking_uri": "http://own:5000", "experiment": "own"}}
    assert await resolved(**own) == own["mlflow"]
    none = {"tracking_uri": None, "experiment": None}
    assert await resolved(mlflow={"tracking_uri": "none"}) == none
    for uri, expected in (("http://mine:5000", "http://mine:5000"), ("file:/tmp/mlruns", None)):
        variables = {"variables": {"MLFLOW_TRACKING_URI": uri}}
        assert (await resolved(environment=variables))["tracking_uri"] == expected
    run_id = await local.submit(
        "env",
        mlflow={"tracking_uri": "http://own:5000"},
        environment={"variables": {"MLFLOW_EXPERIMENT_NAME": "mine"}},
    )
    await local.ended(run_id)
    said = dict(line.split("=", 1) for line in local.log(run_id).splitlines() if "=" in line)
    assert said["MLFLOW_TRACKING_URI"] == "http://own:5000"
    assert said["MLFLOW_EXPERIMENT_NAME"] == "mine"
    assert json.loads(said["MLFLOW_RUN_CONTEXT"])["hyperpod.attempt"] == "1"


async def test_what_is_set_for_mlflow_in_vain_is_refused(local: LocalCluster) -> None:
    with pytest.raises(RefusedError, match="no tracking server is set"):
        await local.submit("true", mlflow={"log_numbers": True})
    with pytest.raises(RefusedError, match="no MLflow tracking server is set"):
        await local.submit("true", mlflow={"experiment": "toy"})
    variables = {"MLFLOW_TRACKING_URI": "HTTP://bob:s3cret@mlflow:5000"}
    with pytest.raises(RefusedError, match="would be stored") as refused:
        await local.submit("true", environment={"variables": variables})
    assert "s3cret" not in str(refused.value)
    run_id = await local.submit("true")
    assert (await of_run(local, run_id)).tracking_uri is None
    with pytest.raises(NotFoundError, match="has no MLflow server"):
        await link_to(local.hyperpod, run_id)


async def test_a_server_named_by_another_user_gets_no_password_of_this_one(
    local: LocalCluster, gate: MlflowGate, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = await local.submit("true", mlflow={"tracking_uri": gate.url})
    await local.ended(run_id)
    monkeypatch.setattr(BundleReader, "is_own", False)
    known = await of_run(local, run_id)
    assert known.problem is not None
    assert "another user" in known.problem
    with pytest.raises(DeniedError):
        await link_to(local.hyperpod, run_id)
    assert gate.asked == []


async def test_readers_of_a_server_that_hangs_are_limited(
    local: LocalCluster, gate: MlflowGate
) -> None:
    run_id = await local.submit("true", mlflow={"tracking_uri": gate.url})
    await local.ended(run_id)
    gate.mode = "hanging"
    readers = [asyncio.ensure_future(of_run(local, run_id)) for _ in range(12)]
    for one in islice(asyncio.as_completed(readers), 4):  # the others hang
        await one
    gate.released.set()
    answers = await asyncio.gather(*readers)
    assert all(one.problem is not None for one in answers)
    assert len(gate.asked) <= 8


def test_what_is_no_mlflow_server_is_named() -> None:
    from testbed.loopback import Handler, Loopback

    class Page(Handler):
        def take(self) -> None:
            self.answer(200, b"<html>")

    with Loopback(Page) as other:
        api = MlflowApi(other.url, {})
        with pytest.raises(MlflowFault, match="did not answer as an MLflow server does"):
            api.search(["0"], "x")
    with pytest.raises(MlflowFault, match="refuses connections"):
        api.search(["0"], "x")


@pytest.mark.parametrize(
    "changes",
    [
        {"MLFLOW_TRACKING_TOKEN": "s3cr3t\nmore"},
        {"MLFLOW_TRACKING_TOKEN": "s3cr3t\u2026"},
        {"MLFLOW_TRACKING_URI": "http://me:s3cr3t@127.0.0.1:9"},
        {"MLFLOW_TRACKING_URI": "http://me:s3cr3t/s3cr3t@127.0.0.1:9"},
        {"MLFLOW_TRACKING_URI": "databricks://me:s3cr3t@profile"},
        {"MLFLOW_TRACKING_URI": "databricks://s3cr3t", "S3CR3T": "s3cr3t\n"},
    ],
)
def test_a_password_stands_in_no_message(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], changes: dict[str, str]
) -> None:
    (tmp_path / "launch.json").write_text(json.dumps({"secrets": ["S3CR3T"]}))
    folder = str(tmp_path)
    sender = MlflowSender(
        AttemptPaths(folder, folder, 1, 0),
        {"MLFLOW_TRACKING_URI": "http://127.0.0.1:9", **changes},
    )
    sender._pending = [{"key": "loss", "value": 1, "timestamp": 1, "step": 1}]
    assert not sender._turn()
    said = capfd.readouterr().out
    assert "the run goes on" in said
    assert "s3cr3t" not in said + str(sender._problem)


@pytest.mark.parametrize(
    ("uri", "kept"),
    [
        (" HTTP://mlflow:5000/x ", "http://mlflow:5000/x"),
        ("http://[::1]:5000", "http://[::1]:5000"),
        ("none", "none"),
        ("http://mlflow:65536", None),
        ("http://bob:p/w@mlflow", None),
        ("arn:aws-us-gov:sagemaker:us-gov-west-1:111122223333:mlflow-app/a", ""),
        ("arn:aws-evil:sagemaker:us-west-2:111122223333:mlflow-app/a", None),
    ],
)
def test_what_names_a_server(uri: str, kept: str | None) -> None:
    if kept is None:
        with pytest.raises(ValidationError):
            MlflowOptions(tracking_uri=uri)
    else:
        assert MlflowOptions(tracking_uri=uri).tracking_uri == (kept or uri)


def test_a_redirect_does_not_carry_the_password_along(tmp_path: Path) -> None:
    from testbed.loopback import Handler, Loopback

    asked: list[str] = []

    class Elsewhere(Handler):
        def take(self) -> None:
            asked.append(self.path)
            self.answer(302, headers={"Location": "/elsewhere"})

    with Loopback(Elsewhere) as other:
        api = MlflowApi(other.url, {"MLFLOW_TRACKING_TOKEN": "s3cret"})
        with pytest.raises(MlflowFault, match="redirects"):
            api.get("experiments/get-by-name", {"experiment_name": "x"})
    assert len(asked) == 1
