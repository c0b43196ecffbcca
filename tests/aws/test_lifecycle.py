"""The testbed's clusters live: seen through the API, on a clock that the tests move."""

from __future__ import annotations

from datetime import timedelta

import boto3
import pytest

from testbed.aws.lifecycle import Lifecycle, Timings
from tests.aws.conftest import REGION

MINUTE = timedelta(minutes=1)


class Machines:
    """Records what is asked of them."""

    def __init__(self):
        self.orders = []

    def start(self, node):
        self.orders.append(("start", node.address))

    def stop(self, node):
        self.orders.append(("stop", node.address))


@pytest.fixture
def advance(endpoint):
    return endpoint.account.timeline.advance


@pytest.fixture
def api(endpoint):
    return Api()


class Api:
    """What AWS tells of the cluster."""

    def __init__(self):
        self._client = boto3.client("sagemaker", region_name=REGION)

    def cluster(self):
        told = self._client.describe_cluster(ClusterName="c")
        groups = {
            one["InstanceGroupName"]: (one["Status"], one["CurrentCount"], one["TargetCount"])
            for one in told["InstanceGroups"]
        }
        return told["ClusterStatus"], groups

    def failure(self):
        return self._client.describe_cluster(ClusterName="c").get("FailureMessage")

    def nodes(self):
        told = self._client.list_cluster_nodes(ClusterName="c", MaxResults=100)
        return told["ClusterNodeSummaries"]

    def states(self):
        return [one["InstanceStatus"]["Status"] for one in self.nodes()]


@pytest.fixture
def make(endpoint):
    def made(count=2, begun=True, hosts=None, timings=None, **more):
        status = "InService" if begun else "Creating"
        cluster = endpoint.account.add_cluster("c", REGION, status=status, **more)
        group = cluster.add_group("w", "ml.g5.xlarge", count if begun else 0, status=status)
        group.target = count
        return Lifecycle(endpoint.account.timeline, cluster, timings, hosts)

    return made


def test_a_cluster_is_created(make, api, advance):
    make(begun=False)
    assert api.cluster() == ("Creating", {"w": ("Creating", 2, 2)})
    assert api.states() == ["Pending", "Pending"]
    advance(19 * MINUTE)
    assert api.cluster()[0] == "Creating"
    advance(MINUTE)
    assert api.cluster() == ("InService", {"w": ("InService", 2, 2)})
    assert api.states() == ["Running", "Running"]


def test_a_creation_that_fails_is_rolled_back_and_failed(make, api, advance):
    life = make(begun=False)
    life.fail_starts("w", "Lifecycle scripts did not run successfully.")
    advance(20 * MINUTE)
    assert api.cluster() == ("RollingBack", {"w": ("Creating", 2, 2)})
    advance(2 * MINUTE)
    assert api.cluster() == ("Failed", {"w": ("Failed", 0, 2)})
    assert api.failure() == "Lifecycle scripts did not run successfully."
    advance(60 * MINUTE)
    assert api.nodes() == []


@pytest.mark.parametrize(("provisioning", "meanwhile"), [(None, "Updating"), ("Continuous", "InService")])
def test_it_grows_and_shrinks(make, api, advance, provisioning, meanwhile):
    life = make(provisioning=provisioning)
    first = [one["InstanceId"] for one in api.nodes()]
    life.scale("w", 4)
    assert api.cluster() == (meanwhile, {"w": ("Updating", 4, 4)})
    assert sorted(api.states()) == ["Pending", "Pending", "Running", "Running"]
    advance(20 * MINUTE)
    assert api.cluster() == ("InService", {"w": ("InService", 4, 4)})
    life.scale("w", 2)
    assert api.states().count("ShuttingDown") == 2
    advance(2 * MINUTE)
    assert api.cluster() == ("InService", {"w": ("InService", 2, 2)})
    assert [one["InstanceId"] for one in api.nodes()] == first


def test_growth_that_fails_is_rolled_back_to_what_was_there(make, api, advance):
    life = make()
    life.scale("w", 3)
    life.fail_starts("w", "no capacity")
    advance(20 * MINUTE)
    assert api.cluster()[0] == "RollingBack"
    advance(2 * MINUTE)
    assert api.cluster() == ("InService", {"w": ("InService", 2, 2)})
    assert api.failure() == "no capacity"


def test_with_continuous_provisioning_it_is_tried_again(make, api, advance):
    life = make(provisioning="Continuous")
    life.scale("w", 3)
    life.fail_starts("w", "no capacity")
    advance(20 * MINUTE)
    assert api.cluster()[0] == "InService"
    assert sorted(api.states()) == ["Pending", "Running", "Running", "ShuttingDown"]
    advance(20 * MINUTE)
    assert api.cluster() == ("InService", {"w": ("InService", 3, 3)})
    life.fail(life.cluster.nodes[0], "EC2 health check failed")
    told = boto3.client("sagemaker", region_name=REGION).list_cluster_events(ClusterName="c")
    words = [one["Description"].partition(" ")[2].partition(" ")[2] for one in told["Events"]]
    launched = "is being launched."
    assert sorted(words) == ["failed to start.", "has failed.", launched, launched, "is running."]


def test_a_failed_node_is_replaced_by_a_new_instance_at_its_address(make, api, advance):
    machines = Machines()
    life = make(hosts=machines)
    old, other = api.nodes()
    life.fail(life.cluster.nodes[0], "EC2 health check failed")
    assert api.states() == ["Failure", "Running"]
    advance(timedelta(seconds=15))
    both = {one["InstanceId"]: one for one in api.nodes()}
    (new,) = set(both) - {old["InstanceId"], other["InstanceId"]}
    assert both[old["InstanceId"]]["InstanceStatus"] == {"Status": "ShuttingDown", "Message": "EC2 health check failed"}
    assert both[new]["InstanceStatus"]["Status"] == "Pending"
    assert both[new]["PrivateDnsHostname"] == old["PrivateDnsHostname"]
    assert both[new]["LaunchTime"] > old["LaunchTime"]
    advance(20 * MINUTE)
    assert {one["InstanceId"] for one in api.nodes()} == {new, other["InstanceId"]}
    assert api.states() == ["Running", "Running"]
    assert machines.orders == [("stop", "10.0.0.1"), ("start", "10.0.0.1")]
    assert api.cluster()[0] == "InService"


def test_without_recovery_and_for_a_controller_nothing_is_replaced(endpoint, make, api, advance):
    life = make(node_recovery="None")
    life.fail(life.cluster.nodes[0], "gone")
    advance(60 * MINUTE)
    assert api.states() == ["Failure", "Running"]
    life.cluster.node_recovery = "Automatic"
    life.cluster.groups[0].slurm_node_type = "Controller"
    life.fail(life.cluster.nodes[1], "gone")
    advance(60 * MINUTE)
    assert api.states() == ["Failure", "Failure"]


def test_a_reboot_keeps_the_instance(make, api, advance):
    machines = Machines()
    life = make(hosts=machines)
    first = [one["InstanceId"] for one in api.nodes()]
    life.cluster.nodes[0].status = "Pending"  # as an operation of the API does
    assert api.states() == ["Pending", "Running"]
    advance(2 * MINUTE)
    assert api.states() == ["Running", "Running"]
    assert [one["InstanceId"] for one in api.nodes()] == first
    assert machines.orders == [("stop", "10.0.0.1"), ("start", "10.0.0.1")]


def test_a_deep_health_check_comes_before_a_node_runs(make, api, advance):
    make(begun=False, timings=Timings(checked=30 * MINUTE))
    assert api.states() == ["Pending", "Pending"]
    advance(20 * MINUTE)
    assert set(api.states()) == {"DeepHealthCheckInProgress"}
    assert api.cluster()[0] == "Creating"
    advance(30 * MINUTE)
    assert api.cluster()[0] == "InService"


def test_timings_can_be_made_short():
    short = Timings().times(1 / 60)
    assert (short.started, short.detected) == (timedelta(seconds=20), timedelta(seconds=0.25))
