"""Clusters of another region: chosen for the list, and named by the ARN in all that is asked of one cluster."""

from __future__ import annotations

import re

import pytest

from hyperpod_jlab.aws.session import Aws, forget_session, home_region, known_regions
from hyperpod_jlab.clusters.aws import HyperpodClusters, configured_as
from hyperpod_jlab.core.config import Settings
from hyperpod_jlab.core.hyperpod import HyperpodCluster, region_of
from hyperpod_jlab.server.routes import ROUTES
from testbed.aws.example import example_account
from tests.aws.conftest import REGION
from tests.aws.test_rest import at_aws, until_loaded
from tests.conftest import home  # noqa: F401 - the server's tests have another one than the command line's
from tests.server.conftest import *  # noqa: F403

ELSEWHERE = "eu-central-1"


@pytest.fixture
def twin(endpoint):
    """A cluster of another region, of the same name as one of those here."""
    endpoint.account = example_account(REGION)
    made = endpoint.account.add_cluster("ml-cluster", ELSEWHERE, orchestrator={"Slurm": {}})
    made.add_group("far-away", "ml.g5.xlarge", 2, slurm_node_type="Compute")
    return made


def test_an_arn_names_its_region():
    arn = "arn:aws-us-gov:sagemaker:us-gov-west-1:111122223333:cluster/abcdefghijkl"
    assert region_of(arn) == "us-gov-west-1"
    assert region_of("ml-cluster") is None
    assert region_of("arn:aws:eks:us-west-2:111122223333:cluster/x") is None
    assert region_of("arn:aws:sagemaker:evil.example/:111122223333:cluster/x") is None


@pytest.mark.parametrize("slash", ["/", "%2F"])
@pytest.mark.parametrize("colon", [":", "%3A"])
@pytest.mark.parametrize("behind", ["", "/nodes", "/logs/lines", "/nodes/actions/preview"])
def test_an_arn_in_a_path_is_one_part_of_it_as_it_comes(slash, colon, behind):
    """Browsers quote its slash, and a proxy on the way may take that back."""
    arn = f"arn{colon}aws{colon}sagemaker{colon}eu-central-1{colon}1{colon}cluster{slash}abc"
    path = f"clusters/{arn}{behind}"
    matches = {
        (route.path, match["cluster"])
        for route in ROUTES
        if (match := re.fullmatch(route.pattern, path)) and "cluster" in route.parameters
    }
    assert matches == {(f"clusters/{{cluster}}{behind}", arn)}


async def test_the_list_of_a_region(endpoint, twin, api):
    here = await until_loaded(api, "clusters")
    assert len(at_aws(here)) == 4
    there = await until_loaded(api, "clusters", region=ELSEWHERE)
    assert [row["name"] for row in there["clusters"]] == ["local", "ml-cluster"]
    found = there["clusters"][1]
    assert (found["hyperpod"]["arn"], found["hyperpod"]["region"]) == (twin.arn, ELSEWHERE)
    assert found["configure"] == f"hpj config add ml-cluster --region {ELSEWHERE}"
    again = await until_loaded(api, "clusters")
    assert at_aws(again) == at_aws(here)
    status, error = await api.request("GET", "clusters", query={"region": "x.example/"})
    assert (status, error["detail"]["field"]) == (400, "region")


async def test_the_cluster_of_another_region_is_not_the_configured_one(endpoint, twin, cluster, api):
    config = cluster / "config.toml"
    config.write_text('[clusters.train]\norchestrator = "slurm"\nhyperpod = "ml-cluster"\n')
    here = {row["name"]: row for row in (await until_loaded(api, "clusters"))["clusters"]}
    assert here["train"]["hyperpod"]["region"] == REGION
    answer = await until_loaded(api, "clusters", region=ELSEWHERE)
    there = {row["name"]: row for row in answer["clusters"]}
    assert list(there) == ["local", "ml-cluster", "train"]
    assert (there["ml-cluster"]["configured"], there["train"]["hyperpod"]) == (False, None)


async def test_what_is_asked_by_the_arn_is_asked_in_its_region(endpoint, twin, api):
    path = ("clusters", twin.arn)
    page = await until_loaded(api, path)
    assert (page["cluster"]["name"], page["cluster"]["configured"]) == ("ml-cluster", False)
    found = page["cluster"]["hyperpod"]
    assert (found["name"], found["region"]) == ("ml-cluster", ELSEWHERE)
    assert [group["name"] for group in found["groups"]] == ["far-away"]
    nodes = await until_loaded(api, (*path, "nodes"))
    assert {node["instance_group"] for node in nodes["nodes"]} == {"far-away"}
    await api.get((*path, "metrics"))
    body = {"action": "reboot", "nodes": [nodes["nodes"][0]["name"]]}
    status, plan = await api.request("POST", (*path, "nodes", "actions", "preview"), body)
    assert (status, plan["nodes"][0]["instance"]) == (200, nodes["nodes"][0]["name"])
    status, error = await api.request("GET", (*path, "logs"))
    assert (status, error["code"]) == (404, "no_log_group")
    assert twin.arn.rpartition("/")[2] in error["message"]
    assert {call.region for call in endpoint.calls} == {ELSEWHERE}
    # A proxy on the way may have decoded the slash.
    assert (await api.get(f"clusters/{twin.arn}"))["cluster"]["hyperpod"]["arn"] == twin.arn
    assert (await api.get(f"clusters/{twin.arn}/nodes"))["total"] == 2


async def test_a_name_in_the_configuration_is_no_cluster_of_another_region(endpoint, twin):
    assert home_region() == REGION
    named = {"orchestrator": "slurm", "hyperpod": "ml-cluster"}
    by_arn = {"orchestrator": "slurm", "hyperpod": twin.arn}
    settings = Settings.model_validate({"clusters": {"named": named, "by-arn": by_arn}})
    (far,) = await HyperpodClusters(settings, Aws(ELSEWHERE)).all_clusters()
    assert far.configured_as == ("by-arn",)
    near = {one.name: one for one in await HyperpodClusters(settings, Aws()).all_clusters()}
    assert near["ml-cluster"].configured_as == ("named",)


def test_an_eks_cluster_of_the_configuration_is_one_of_this_region(endpoint):
    config = {"orchestrator": "kubernetes", "eks": "research"}
    settings = Settings.model_validate({"clusters": {"research": config}})
    found = [
        configured_as(
            settings,
            HyperpodCluster("any", f"arn:{region}", region, "InService", eks_arn=f"arn:{region}:cluster/research"),
        )
        for region in (REGION, ELSEWHERE)
    ]
    assert found == [("research",), ()]


async def test_regions_to_choose_from(endpoint, api, no_aws):
    answer = await api.get("aws/regions")
    assert answer["default"] == REGION
    assert {REGION, ELSEWHERE, "us-east-1"} <= set(answer["regions"])
    assert endpoint.calls == []
    no_aws.setenv("AWS_REGION", "cn-north-1")
    forget_session()
    answer = await api.get("aws/regions")
    assert answer["default"] == "cn-north-1"
    assert answer["regions"] == ["cn-north-1", "cn-northwest-1"]
    no_aws.setenv("AWS_REGION", "zz-newer-9")
    forget_session()
    home_, regions = await known_regions()
    assert home_ == "zz-newer-9"
    assert REGION in regions
    no_aws.delenv("AWS_REGION")
    forget_session()
    assert (await api.get("aws/regions"))["default"] is None
