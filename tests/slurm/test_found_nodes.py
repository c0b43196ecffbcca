"""Login nodes that AWS names, and which of them each person takes."""

from __future__ import annotations

import os
import time

import pytest

from hyperpod_jlab.core.errors import HyperpodError
from hyperpod_jlab.engines.slurm import ssh as module
from hyperpod_jlab.engines.slurm.login_nodes import LoginNodeDiscovery, LoginNodes, current_user_key, rotate_hosts
from hyperpod_jlab.engines.slurm.ssh import Ssh, build_transport
from testbed.aws.studio import SimulatedStudio
from tests.slurm.login_fixtures import REGION, cluster, endpoint, names
from tests.slurm.ssh_fixtures import cluster_config, make_logins

__all__ = ["cluster", "endpoint"]

HOSTS = ["login-1", "login-2", "login-3"]
ASKED = ["sagemaker:DescribeCluster", "sagemaker:ListClusterNodes"]


def asked(endpoint):
    found = [call.action for call in endpoint.calls]
    endpoint.calls.clear()
    return found


def age(tmp_path, seconds):
    """What was found is so old."""
    (file,) = (tmp_path / "cache" / "hyperpod-jlab" / "slurm").glob("login-*.json")
    os.utime(file, (time.time() - seconds,) * 2)


# ------------------------------------------------------------------------------------------------ sharing out


def test_people_are_shared_out_and_each_stays_where_they_are():
    people = [f"person-{number}" for number in range(300)]
    first = [rotate_hosts(HOSTS, person)[0] for person in people]
    assert first == [rotate_hosts(HOSTS, person)[0] for person in people]
    assert all(first.count(host) > 60 for host in HOSTS)
    # Whose login node is down go on to the next one after it.
    for person in people:
        order = rotate_hosts(HOSTS, person)
        at = HOSTS.index(order[0])
        assert order == [HOSTS[(at + step) % 3] for step in range(3)]
    assert rotate_hosts([], "anybody") == []


def test_in_studio_a_space_is_the_person(tmp_path, monkeypatch, endpoint):
    studio = SimulatedStudio(tmp_path, REGION)
    studio.write(endpoint.account)
    before = current_user_key()
    for name, value in studio.environment.items():
        monkeypatch.setenv(name, value)
    assert current_user_key() == "d-example/work" != before


async def test_configured_login_nodes_are_shared_out_too(tmp_path, monkeypatch):
    monkeypatch.setenv("RESOURCE_METADATA_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("LOGNAME", "carol")
    with make_logins(tmp_path / "ssh", 3) as logins:
        ssh = build_transport(cluster_config(logins))
        try:
            output = await ssh.run(["sh", "-c", "set -- $SSH_CONNECTION; echo $4"])
        finally:
            await ssh.close()
    port = int(output.out)
    (used,) = [node.name for node in logins.nodes if node.port == port]
    assert used == rotate_hosts(logins.names, "carol")[0]


# ------------------------------------------------------------------------------------------------ what AWS names


async def test_the_login_nodes_are_found_and_asked_for_once(endpoint, cluster, tmp_path):
    found = await LoginNodeDiscovery("ml").get()
    assert (found.hosts, found.note) == (names(cluster, "doors"), None)
    assert asked(endpoint) == ASKED
    assert await LoginNodeDiscovery("ml").get() == found
    assert await LoginNodeDiscovery("ml").get(refresh=True) == found  # it was asked for just now
    assert asked(endpoint) == []
    age(tmp_path, 61)
    assert await LoginNodeDiscovery("ml").get() == found
    assert asked(endpoint) == []
    assert await LoginNodeDiscovery("ml").get(refresh=True) == found
    assert asked(endpoint) == ASKED
    age(tmp_path, 901)
    await LoginNodeDiscovery("ml").get()
    assert asked(endpoint) == ASKED


async def test_only_those_that_run(cluster):
    gone, left = (node for node in cluster.nodes if node.group == "doors")
    gone.status = "Failure"
    assert len((await LoginNodeDiscovery("ml").get()).hosts) == 1
    left.status = "Pending"
    with pytest.raises(HyperpodError, match="no login node of ml is running") as caught:
        await LoginNodeDiscovery(cluster.arn).get()
    assert caught.value.code == "no_login_nodes"
    assert f"{gone.instance_id} is Failure" in caught.value.message


async def test_without_a_login_group_it_is_the_controller_and_that_is_said(cluster):
    cluster.groups = [group for group in cluster.groups if group.name != "doors"]
    cluster.nodes = [node for node in cluster.nodes if node.group != "doors"]
    found = await LoginNodeDiscovery("ml").get()
    assert found.hosts == names(cluster, "head")
    assert found.note == "ml has no instance group of login nodes, so its controller is used"


async def test_a_cluster_of_which_aws_does_not_say_it(endpoint, cluster):
    for group in cluster.groups:
        group.slurm_node_type = None
    endpoint.account.add_cluster("eks", REGION, orchestrator=endpoint.account.eks("eks", REGION))
    said = {
        "ml": ("have no Slurm roles", "login_nodes = "),
        "eks": ("it is not a Slurm cluster", 'orchestrator = "kubernetes"'),
    }
    for name, (words, hint) in said.items():
        with pytest.raises(HyperpodError, match=words) as caught:
            await LoginNodeDiscovery(name).get()
        assert caught.value.code == "no_login_nodes"
        assert hint in (caught.value.hint or "")


async def test_aws_that_refuses_or_is_silent(endpoint, tmp_path):
    endpoint.faults.deny("sagemaker:ListClusterNodes")
    with pytest.raises(HyperpodError) as caught:
        await LoginNodeDiscovery("ml").get()
    assert caught.value.code == "missing_right"
    assert "AWS does not list the login nodes of ml: you do not have the permission sagemaker:ListClusterNodes" in caught.value.message  # fmt: skip
    assert "or set them in the configuration" in (caught.value.hint or "")
    endpoint.faults.denied.clear()
    found = await LoginNodeDiscovery("ml").get()
    age(tmp_path, 3600)
    endpoint.faults.deny("sagemaker:DescribeCluster")
    assert await LoginNodeDiscovery("ml").get() == found  # better than nothing


class Moved(LoginNodeDiscovery):
    """A cluster whose login nodes were replaced after they had been found."""

    def __init__(self, *found):
        super().__init__("ml")
        self._found = list(found)
        self.times = 0

    async def get(self, *, refresh=False):
        self.times += 1
        return self._found[-1 if refresh else 0]


async def test_login_nodes_that_were_replaced_are_found_anew(endpoint, tmp_path, monkeypatch):
    with make_logins(tmp_path / "ssh", 2) as logins:
        old, new = logins.nodes
        moved = Moved(LoginNodes((old.name,), "a note"), LoginNodes((new.name,), None))
        monkeypatch.setattr(module, "LoginNodeDiscovery", lambda _: moved)
        ssh = Ssh(cluster_config(logins, login_nodes=[], hyperpod="ml"))
        try:
            assert (await ssh.run(["true"])).code == 0
            assert list(ssh.notes) == ["a note"]
            old.kill()
            output = await ssh.run(["sh", "-c", "set -- $SSH_CONNECTION; echo $4"])
            assert int(output.out) == new.port
            assert moved.times == 2
            assert list(ssh.notes) == []
            new.kill()
            with pytest.raises(HyperpodError) as caught:
                await ssh.run(["true"])
            assert new.name in caught.value.message
        finally:
            await ssh.close()
