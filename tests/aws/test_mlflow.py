"""MLflow of SageMaker: lists, links, and requests that are signed as sagemaker-mlflow signs them."""

from __future__ import annotations

import asyncio
import json
import os

import pytest

from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.core.validation import parse
from hyperpod_jlab.features.mlflow.api import MlflowApi, MlflowFault, find_sagemaker_server
from hyperpod_jlab.features.mlflow.service import suggest_servers
from hyperpod_jlab.run.services import Hyperpod
from testbed.aws.mlflow import MlflowHost, add_mlflow
from tests.aws.conftest import REGION

pytestmark = pytest.mark.usefixtures("patient_mlflow")

LISTS = ("sagemaker:ListMlflowApps", "sagemaker:ListMlflowTrackingServers")


@pytest.fixture
def account(endpoint, monkeypatch):
    add_mlflow(endpoint.account, REGION)
    monkeypatch.setenv("SAGEMAKER_MLFLOW_CUSTOM_ENDPOINT", os.environ["AWS_ENDPOINT_URL"])
    return endpoint


def test_the_list_of_servers(account, hpj):
    account.account.mlflow[REGION] += [
        MlflowHost(f"more-{number}", f"arn:aws:sagemaker:{REGION}:111122223333:mlflow-app/m{number}", True)
        for number in range(120)
    ]
    found = hpj("mlflow", "servers", "--json").ok().json
    assert len(found["servers"]) == 122
    assert found["notes"] == []
    shared = found["servers"][-2]
    assert (shared["name"], shared["kind"], shared["version"]) == (*("shared", "tracking-server", "3.10.0"),)
    # What is listed can be given to a run.
    for one in found["servers"]:
        spec = {"source": {"kind": "command", "command": "true"}, "mlflow": {"tracking_uri": one["arn"]}}
        assert parse(JobSpec, spec).mlflow.tracking_uri == one["arn"]
    assert "arn:aws:sagemaker" in hpj("mlflow", "servers").ok().out


def test_without_one_right_the_rest_is_listed(account, hpj):
    account.faults.deny(LISTS[0])
    found = hpj("mlflow", "servers", "--json").ok().json
    assert [one["kind"] for one in found["servers"]] == ["tracking-server"]
    assert LISTS[0] in found["notes"][0]
    account.faults.deny(LISTS[1])
    assert hpj("mlflow", "servers", "--json").error["code"] == "missing_right"


@pytest.mark.parametrize("number", [0, 1])
def test_a_run_of_a_server_of_sagemaker(account, hpj, number):
    server = account.account.mlflow[REGION][number]
    hpj("submit", "--cluster", "local", "--command", "true", "--follow", "--mlflow", server.arn).ok()
    shown = hpj("show", "last", "--json").ok().json
    assert (shown["mlflow"]["run_id"], shown["mlflow_problem"]) == ("r1", None)
    link = hpj("mlflow", "link", "last", "--json").ok().json["url"]
    assert link.startswith(f"https://{server.name}.mlflow.example/auth?authToken=")
    assert link.endswith("#/experiments/0/runs/r1")
    server.status = "Deleted"
    account.account.mlflow[REGION].remove(server)
    assert "not found" in hpj("show", "last", "--json").ok().json["mlflow_problem"]
    assert hpj("mlflow", "link", "last", "--json").error["code"] == "no_mlflow"


def test_a_signature_is_of_the_whole_request(account, monkeypatch):
    server = account.account.mlflow[REGION][0]
    assert MlflowApi(server.arn, os.environ).find_experiment("a b/ü+&c") is None
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    with pytest.raises(MlflowFault, match="does not match the signature"):
        MlflowApi(server.arn, os.environ).find_experiment("x")


@pytest.mark.parametrize(
    ("resource", "address", "service"),
    [
        ("mlflow-tracking-server/a", "https://us-west-2.experiments.sagemaker.aws", "sagemaker-mlflow"),
        ("mlflow-app/app-A", "https://mlflow.sagemaker.us-west-2.app.aws", "sagemaker"),
    ],
)
def test_addresses_are_those_of_sagemaker_mlflow(resource, address, service):
    found = find_sagemaker_server(f"arn:aws:sagemaker:us-west-2:111122223333:{resource}", {})
    assert (found.address, found.service, found.region) == (address, service, "us-west-2")


@pytest.mark.parametrize(
    "uri",
    ["file:./mlruns", "http://user:word@host", "arn:aws:sagemaker:us-west-2:1:mlflow-app/a", "http://", "databricks"],
)
def test_what_is_no_server_is_refused(hpj, uri):
    done = hpj("submit", "--command", "true", "--dry-run", "--json", "--mlflow", uri)
    assert done.error["code"] == "invalid_spec"
    assert json.dumps(done.error).count("word@") == 0


def test_the_submit_form_suggests_them_for_clusters_in_aws(account, home, hpj):
    text = '[clusters.{name}]\norchestrator = "slurm"\n{more}\n'
    home.config.write_text(
        text.format(name="in-aws", more='hyperpod = "ml-cluster"') + text.format(name="mine", more="")
    )

    async def suggested(name, *, until_listed=False):
        hyperpod = Hyperpod()
        found = await suggest_servers(hyperpod, name)
        while until_listed and not found.servers:  # a slow answer is there the next time
            found = await suggest_servers(hyperpod, name)
        await hyperpod.close()
        return found

    arns = [one.arn for one in account.account.mlflow[REGION]]
    found = asyncio.run(suggested("in-aws", until_listed=True))
    assert [one.arn for one in found.servers] == arns
    assert asyncio.run(suggested("mine")).servers == []
    for action in LISTS:
        account.faults.deny(action)
    assert asyncio.run(suggested("in-aws")).servers == []
