"""Runs in MLflow: a real server, runs that call it and runs that do not, and a server that fails in every way."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from hyperpod_jlab.core.config import Settings
from hyperpod_jlab.core.errors import DeniedError, InvalidInputError, NotFoundError, RefusedError, UnreachableError
from hyperpod_jlab.core.spec import MlflowOptions
from hyperpod_jlab.features.mlflow import service
from hyperpod_jlab.features.mlflow.api import MlflowApi, MlflowFault
from hyperpod_jlab.features.mlflow.models import RunMlflow
from hyperpod_jlab.features.mlflow.service import link_to, read_mlflow
from hyperpod_jlab.storage.records import BundleReader
from testbed.mlflow import MlflowGate, MlflowServer, Mode
from tests.aws.conftest import patient_mlflow
from tests.local.conftest import LocalCluster

__all__ = ["patient_mlflow"]

# The server alone may take 90 s to start.
pytestmark = [pytest.mark.timeout(300), pytest.mark.usefixtures("patient_mlflow")]


@pytest.fixture(scope="module")
def server() -> Iterator[MlflowServer]:
    with MlflowServer() as made:
        made.runs_of("none")  # the first request of a kind takes longest
        yield made


@pytest.fixture
def gate(server: MlflowServer) -> Iterator[MlflowGate]:
    with MlflowGate(server.url) as made:
        yield made


CALLS = """
import os, pathlib, time
import mlflow
with mlflow.start_run() as run:
    mlflow.log_param("lr", 0.1)
    mlflow.log_metric("loss", 0.5, step=3)
    while not pathlib.Path("go").exists():
        time.sleep(0.05)
"""


async def train(local: LocalCluster, uri: str, **spec: Any) -> str:
    """Submit a script that calls MLflow."""
    (local.folder / "train.py").write_text(CALLS)
    environment = {"python": sys.executable, **spec.pop("environment", {})}
    return await local.submit(
        source={"kind": "script", "path": "train.py"},
        name="toy-run",
        mlflow={"tracking_uri": uri, "experiment": "toy"},
        environment=environment,
        **spec,
    )


async def of_run(local: LocalCluster, run_id: str) -> RunMlflow:
    return await read_mlflow(local.hyperpod, await local.hyperpod.runs.get(run_id))


def go(local: LocalCluster, run_id: str) -> None:
    """Let the script end."""
    (local.hyperpod.runs.bundle(run_id).folder / "work" / "go").touch()


async def test_code_that_calls_mlflow_is_found_while_it_runs_and_after_it(
    local: LocalCluster, server: MlflowServer
) -> None:
    run_id = await train(local, server.url)
    while not (shown := (await of_run(local, run_id)).mlflow) or not shown.metrics:
        assert not (await local.hyperpod.runs.get(run_id)).status.ended
        await asyncio.sleep(0.1)
    assert shown.status == "RUNNING"
    go(local, run_id)
    await local.ended(run_id)
    (raw,) = server.runs_of(run_id)
    known = (await of_run(local, run_id)).mlflow
    assert known is not None
    assert (known.run_id, known.name, known.status, known.attempt) == (
        *(raw["info"]["run_id"], "toy-run", "FINISHED", 1),
    )
    assert known.params == {"lr": "0.1"}
    assert {name: (one.value, one.step) for name, one in known.metrics.items()} == {"loss": (0.5, 3)}
    assert known.url == (await link_to(local.hyperpod, run_id)).url
    assert known.url == (f"{server.url}/#/experiments/{known.experiment_id}/runs/{known.run_id}")
    tags = {one["key"]: one["value"] for one in raw["data"]["tags"]}
    assert (tags["hyperpod.cluster"], tags["hyperpod.attempt"]) == ("local", "1")
    assert f"hpj show {run_id}" in tags["mlflow.note.content"]


async def test_of_several_attempts_the_newest_is_shown(local: LocalCluster, server: MlflowServer) -> None:
    run_id = await local.submit("true", mlflow={"tracking_uri": server.url})
    await local.ended(run_id)
    for attempt in ("2", "1"):
        tags = {"run_id": run_id, "attempt": attempt}
        listed = [{"key": f"hyperpod.{key}", "value": value} for key, value in tags.items()]
        server.post("runs/create", {"experiment_id": "0", "tags": listed})
    known = (await of_run(local, run_id)).mlflow
    assert known is not None
    assert known.attempt == 2


@pytest.mark.parametrize("mode", ["failing", "denied", "hanging"])
async def test_a_server_that_does_not_answer_is_a_problem_of_the_answer(
    local: LocalCluster, gate: MlflowGate, monkeypatch: pytest.MonkeyPatch, mode: Mode
) -> None:
    gate.mode = mode
    run_id = await local.submit("true", mlflow={"tracking_uri": gate.url})
    assert (await local.ended(run_id)).state == "succeeded"
    if mode == "hanging":
        monkeypatch.setattr(service, "TIMEOUT_S", 1.5)
    known = await of_run(local, run_id)
    assert known.mlflow is None
    assert known.problem is not None
    assert known.problem.startswith("MLflow")
    assert known.tracking_uri == gate.url
    with pytest.raises(UnreachableError, match="MLflow"):
        await link_to(local.hyperpod, run_id)


async def test_a_run_that_mlflow_does_not_know_has_no_link(local: LocalCluster, server: MlflowServer) -> None:
    run_id = await local.submit("true", mlflow={"tracking_uri": server.url})
    await local.ended(run_id)
    with pytest.raises(NotFoundError, match="MLflow has no run of") as missing:
        await link_to(local.hyperpod, run_id)
    assert "call mlflow" in str(missing.value.hint)


async def test_a_password_is_used_and_stands_nowhere(
    local: LocalCluster, gate: MlflowGate, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As a Secret of Kubernetes that was made of a file.
    token = "s3cret-token\n"
    run_id = await train(
        local,
        gate.url,
        environment={"secrets": {"MLFLOW_TRACKING_TOKEN": ""}},
        secrets={"MLFLOW_TRACKING_TOKEN": token.strip()},
    )
    go(local, run_id)
    await local.ended(run_id)
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", token)
    assert (await of_run(local, run_id)).mlflow is not None
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
        "env", mlflow={"tracking_uri": "http://own:5000"}, environment={"variables": {"MLFLOW_EXPERIMENT_NAME": "mine"}}
    )
    await local.ended(run_id)
    said = dict(line.split("=", 1) for line in local.log(run_id).splitlines() if "=" in line)
    assert said["MLFLOW_TRACKING_URI"] == "http://own:5000"
    assert said["MLFLOW_EXPERIMENT_NAME"] == "mine"
    assert json.loads(said["MLFLOW_RUN_CONTEXT"])["hyperpod.attempt"] == "1"


async def test_what_is_set_for_mlflow_in_vain_is_refused(local: LocalCluster) -> None:
    with pytest.raises(InvalidInputError, match="unknown field 'log_numbers'"):
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


async def test_readers_of_a_server_that_hangs_are_limited(local: LocalCluster, gate: MlflowGate) -> None:
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
    ("uri", "token"),
    [
        ("http://127.0.0.1:9", "s3cr3t\nmore"),
        ("http://127.0.0.1:9", "s3cr3t\u2026"),
        ("http://me:s3cr3t@127.0.0.1:9", ""),
        ("http://me:s3cr3t/s3cr3t@127.0.0.1:9", ""),
    ],
)
def test_a_password_stands_in_no_message(uri: str, token: str) -> None:
    with pytest.raises(MlflowFault) as fault:
        MlflowApi(uri, {"MLFLOW_TRACKING_TOKEN": token}).search(["0"], "x")
    assert "s3cr3t" not in fault.value.message


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
