"""Metrics out of Amazon Managed Service for Prometheus: a real Prometheus behind the testbed's AWS, which computes each signature again."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from itertools import pairwise

import pytest

from hyperpod_jlab.aws.session import Aws, forget_session
from hyperpod_jlab.aws.signed import METER
from hyperpod_jlab.core.config import Settings
from hyperpod_jlab.core.errors import DeniedError, InvalidInputError, UnsupportedError
from hyperpod_jlab.features.metrics.models import METRICS, last_seconds
from hyperpod_jlab.features.metrics.prometheus import (
    ADDON,
    EKS_METRICS,
    SLURM_METRICS,
    Workspace,
    query_range,
    workspace_at,
    workspace_of_addon,
)
from hyperpod_jlab.features.metrics.service import NodeMetrics
from testbed.aws.observability import WORKSPACE, host_of, install_addon
from tests.aws.conftest import OBSERVED, REGION, observed_account

HOUR = 3600
ASK, FIND = "aps:QueryMetrics", "eks:DescribeAddon"


@pytest.fixture
def example(endpoint, prometheus):
    """The account, whose cluster `OBSERVED` has the add-on."""
    endpoint.account = observed_account()
    install_addon(*(endpoint.account, REGION, "observed"), os.environ["AWS_ENDPOINT_URL"], prometheus.url)
    return endpoint


@pytest.fixture
def observed(example):
    return next(one for one in example.account.clusters[REGION] if one.name == OBSERVED)


@pytest.fixture
def workspace(example):
    """The address of the workspace."""
    return f"{os.environ['AWS_ENDPOINT_URL']}/workspaces/{WORKSPACE}"


def with_slurm(workspace):
    """A configuration that names the workspace of the cluster with Slurm."""
    cluster = {"orchestrator": "slurm", "hyperpod": "ml-cluster", "prometheus": workspace}
    return Settings.model_validate({"clusters": {"ml": cluster}})


def asked(endpoint, action=ASK):
    return [call for call in endpoint.calls if call.action == action]


def lasts(found):
    return {name: round(course.values[-1], 1) for name, course in found.courses.items()}


async def test_a_cluster_on_eks_is_the_mean_of_its_own_nodes(example):
    found = await NodeMetrics(Aws(REGION)).read_cluster(OBSERVED, HOUR)
    assert (found.source, found.cluster, found.missing, found.notes) == ("Prometheus", OBSERVED, (), ())
    assert lasts(found) == {
        "gpu-utilization": 35.0,
        "gpu-memory": 37.5,
        "gpu-temperature": 46.0,
        "efa-received": 4e9,
        "efa-sent": 2e9,
        "efa-dropped": 0.0,
        "cpu": 25.0,
        "memory": 25.0,
        "healthy": 100.0,
        "deep-health-check": 0.0,
        "to-reboot": 0.0,
        "to-replace": 0.0,
        "nodes": 3.0,
    }
    gpu = found.courses["gpu-utilization"]
    assert round(gpu.values[0], 1) == 30.0
    times = [moment for moment, _ in gpu.points]
    assert {after - before for before, after in pairwise(times)} == {60}
    assert times[0] >= found.window.begin
    assert times[-1] + 60 <= found.window.end
    assert len(asked(example)) == len(EKS_METRICS) == 13
    assert asked(example, "cloudwatch:GetMetricData") == []


async def test_a_node_and_every_node(example, observed):
    service = NodeMetrics(Aws(REGION))
    name = observed.nodes[1].instance_id
    for spoken in (name, f"hyperpod-{name}"):
        one = await service.read_node(OBSERVED, spoken, HOUR)
        assert (one.node, one.source, one.missing) == (name, "Prometheus", ())
        assert lasts(one)["gpu-utilization"] == 35.0
        assert (lasts(one)["efa-received"], lasts(one)["memory"]) == (4e9, 25.0)
    rows = await service.read_nodes(OBSERVED, HOUR)
    assert {row.node: lasts(row)["gpu-utilization"] for row in rows} == {
        node.instance_id: 25.0 + 10 * at for at, node in enumerate(observed.nodes)
    }
    assert [row.node for row in rows] == sorted(node.instance_id for node in observed.nodes)
    assert len(await service.read_nodes(OBSERVED, HOUR, limit=2)) == 2
    assert len(asked(example, FIND)) == 1  # which workspace it is, is remembered


async def test_a_cluster_with_slurm_by_the_workspace_in_the_configuration(example, workspace):
    service = NodeMetrics(Aws(REGION), with_slurm(f"{workspace}/api/v1/remote_write"))
    found = await service.read_cluster("ml-cluster", HOUR)
    assert (found.source, found.missing) == ("Prometheus", ())
    assert found.courses.keys() == SLURM_METRICS.keys()
    told = lasts(found)
    assert (told["gpu-utilization"], told["efa-sent"], told["cpu"]) == (45.0, 2.5e9, 25.0)
    assert (told["jobs-running"], told["jobs-waiting"], told["gpus-idle"]) == (4.0, 3.0, 3.0)
    worker = example.account.clusters[REGION][0].nodes[2]
    one = await service.read_node("ml-cluster", host_of(worker), HOUR)
    assert (one.node, lasts(one)["gpu-utilization"]) == (worker.instance_id, 40.0)
    assert asked(example, FIND) == []


async def test_days_are_asked_in_as_many_periods(example):
    found = await NodeMetrics(Aws(REGION)).read_cluster(OBSERVED, 86400)
    assert found.window.period == 1440
    assert 1 <= len(found.courses["cpu"].points) <= 6  # there are two hours of measurements
    assert found.courses["gpu-utilization"].values[-1] == pytest.approx(33.5, abs=2.5)


async def test_the_signature_holds_a_session_s_token(example, no_aws):
    no_aws.setenv("AWS_SESSION_TOKEN", "token-of-a-session")
    forget_session()
    assert (await NodeMetrics(Aws(REGION)).read_cluster(OBSERVED, HOUR)).source == "Prometheus"


async def test_a_secret_that_is_another_s_is_refused(example, no_aws, workspace):
    no_aws.setenv("AWS_SECRET_ACCESS_KEY", "of-somebody-else")
    forget_session()
    with pytest.raises(DeniedError) as caught:
        await query_range(Aws(REGION), workspace_at(workspace, REGION), "up", last_seconds(HOUR))
    assert caught.value.code == "invalid_aws_credentials"
    assert "of-somebody-else" not in repr(caught.value.detail) + caught.value.message


async def test_a_wrong_clock_is_told(example, workspace):
    example.faults.clock = timedelta(minutes=20)
    with pytest.raises(DeniedError) as caught:
        await query_range(Aws(REGION), workspace_at(workspace, REGION), "up", last_seconds(HOUR))
    assert (caught.value.code, caught.value.detail["behind_s"]) == ("clock_skew", pytest.approx(1200, abs=5))


async def test_an_expression_that_is_none_and_a_workspace_that_is_not_there(example, workspace):
    aws, here = Aws(REGION), workspace_at(workspace, REGION)
    with pytest.raises(InvalidInputError, match=r"aps:QueryMetrics.*parse error"):
        await query_range(aws, here, "avg(", last_seconds(HOUR))
    gone = Workspace(here.url.replace(WORKSPACE, "ws-gone"), REGION)
    example.account.workspaces.clear()
    for one in (here, gone):
        with pytest.raises(Exception, match="Workspace not found"):
            await query_range(aws, one, "up", last_seconds(HOUR))


async def test_busy_for_a_moment_is_waited_for(example, workspace):
    example.faults.throttled[ASK] = 2
    window, before = last_seconds(HOUR), METER.total
    found = await query_range(Aws(REGION), workspace_at(workspace, REGION), "count(kube_node_info)", window)
    assert [one.points[-1][1] for one in found] == [9.0]
    assert len(asked(example)) == 3
    assert METER.total - before == 3


@pytest.mark.parametrize("denied", [ASK, FIND])
async def test_without_the_right_cloudwatch_is_asked_and_it_is_said(example, denied):
    example.faults.deny(denied)
    found = await NodeMetrics(Aws(REGION)).read_cluster(OBSERVED, HOUR)
    assert found.source == "CloudWatch"
    assert f"you do not have the permission {denied}" in found.notes[0]
    assert len(asked(example, "cloudwatch:GetMetricData")) == 1


async def test_what_cloudwatch_cannot_have_names_the_right(example, workspace):
    example.faults.deny(ASK)
    service = NodeMetrics(Aws(REGION), with_slurm(workspace))
    with pytest.raises(DeniedError) as caught:
        await service.read_nodes("ml-cluster", HOUR)
    assert caught.value.detail["right"] == {"action": ASK}


async def test_a_workspace_that_does_not_answer_or_has_nothing(example, workspace, unused_tcp_port):
    gone = f"http://127.0.0.1:{unused_tcp_port}/workspaces/{WORKSPACE}"
    found = await NodeMetrics(Aws(REGION), with_slurm(gone)).read_cluster("ml-cluster", HOUR)
    assert "aps did not answer" in found.notes[0]
    example.account.add_cluster("new-eks", REGION, orchestrator=example.account.eks("new", REGION))
    example.account.addons[REGION, "new", ADDON] = example.account.addons[REGION, "observed", ADDON]
    found = await NodeMetrics(Aws(REGION)).read_cluster("new-eks", HOUR)
    assert (found.source, "has no such metrics" in found.notes[0]) == ("CloudWatch", True)


@pytest.mark.parametrize(
    "url",
    [
        "ws-0123",
        "https://example.com/workspaces/ws-0123",
        "https://aps-workspaces.us-west-2.amazonaws.com.example.com/workspaces/ws-0123",
        "https://a@aps-workspaces.us-west-2.amazonaws.com/workspaces/ws-0123",
        "https://example.com?.amazonaws.com/workspaces/ws-0123",
        "https://example.com#.amazonaws.com/workspaces/ws-0123",
        "https://example.com\\.amazonaws.com/workspaces/ws-0123",
        "http://aps-workspaces.us-west-2.amazonaws.com/workspaces/ws-0123",
        "https://aps-workspaces.us-west-2.amazonaws.com/",
        "",
    ],
)
def test_nothing_signed_goes_to_an_address_that_is_not_aws(url, example, hpj, home):
    with pytest.raises(InvalidInputError, match="not the address of a workspace"):
        workspace_at(url, REGION)
    text = f'[clusters.ml]\norchestrator = "slurm"\nhyperpod = "ml-cluster"\nprometheus = {json.dumps(url)}\n'
    home.config.write_text(text)
    done = hpj("metrics", "--cluster", "ml-cluster", "--json")
    assert (done.code, done.error["detail"]["field"]) == (2, "prometheus")
    assert asked(example) == []


@pytest.mark.parametrize(
    ("host", "region"),
    [
        ("aps-workspaces.eu-central-1.amazonaws.com", "eu-central-1"),
        ("aps-workspaces.cn-north-1.amazonaws.com.cn", "cn-north-1"),
        ("aps-workspaces-fips.us-east-1.amazonaws.com", "us-east-1"),
        ("vpce-0a1b-2c3d.aps-workspaces.us-east-2.vpce.amazonaws.com", "us-east-2"),
    ],
)
@pytest.mark.parametrize("ending", ["", "/", "/api/v1/query", "/api/v1/remote_write"])
def test_addresses_of_workspaces(host, region, ending):
    url = f"https://{host}/workspaces/ws-01ab-cd"
    assert workspace_at(url + ending, "elsewhere") == Workspace(url, region)


@pytest.mark.parametrize(
    ("values", "region", "url"),
    [
        (
            "ampWorkspace:\n  prometheusEndpoint: https://aps-workspaces.us-east-1.amazonaws.com/workspaces/ws-1\n",
            *("us-east-1", "https://aps-workspaces.us-east-1.amazonaws.com/workspaces/ws-1"),
        ),
        (
            '{"ampWorkspace": {"arn": "arn:aws-cn:aps:cn-north-1:111122223333:workspace/ws-2"}}',
            *("cn-north-1", "https://aps-workspaces.cn-north-1.amazonaws.com.cn/workspaces/ws-2"),
        ),
        ('{"ampWorkspace": {"arn": "ws-2"}}', None, None),
        ('{"logging": {"enabled": true}}', None, None),
        ("[1, 2", None, None),
        ("", None, None),
    ],
)
async def test_the_configuration_of_the_add_on(example, values, region, url):
    example.account.addons[REGION, "observed", ADDON] = values
    found = await workspace_of_addon(Aws(REGION), "observed")
    assert found == (Workspace(url, region) if url else None)


async def test_an_add_on_with_an_address_elsewhere_is_said(example):
    values = {"ampWorkspace": {"prometheusEndpoint": "https://example.com/workspaces/ws-1"}}
    example.account.addons[REGION, "observed", ADDON] = json.dumps(values)
    with pytest.raises(UnsupportedError, match="not the address of a workspace"):
        await workspace_of_addon(Aws(REGION), "observed")
    found = await NodeMetrics(Aws(REGION)).read_cluster(OBSERVED, HOUR)
    assert (found.source, ADDON in found.notes[0]) == ("CloudWatch", True)


async def test_thousands_of_nodes_are_one_query_each(example, observed):
    """The largest group that SageMaker has had, of which three nodes are known to Prometheus."""
    group = observed.group_of(observed.nodes[0])
    for _ in range(6755):
        observed.add_node(group)
    found = await NodeMetrics(Aws(REGION)).read_cluster(OBSERVED, HOUR)
    assert (lasts(found)["gpu-utilization"], lasts(found)["nodes"]) == (35.0, 3.0)
    assert len(asked(example)) == len(EKS_METRICS)


def test_the_source_is_shown(example, hpj):
    lines = hpj("metrics", "--cluster", OBSERVED).ok().out.splitlines()
    assert lines[0].endswith("from Prometheus")
    assert lines[2].split()[:3] == ["gpu-utilization", "35", "%"]
    assert hpj("metrics", "--cluster", OBSERVED, "--json").ok().json["source"] == "Prometheus"
    other = hpj("metrics", "--cluster", "research-eks", "--json").ok().json
    assert (other["source"], other["metrics"]) == ("CloudWatch", [])


def test_every_metric_in_promql_is_one_of_ours():
    assert {*EKS_METRICS, *SLURM_METRICS} <= set(METRICS)
