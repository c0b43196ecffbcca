"""Folders by a session of Systems Manager on Slurm's controller, which stands in for it with a terminal of its own, and loses, turns round and repeats messages."""

from __future__ import annotations

import asyncio

import pytest

from hyperpod_jlab.admin.fsx.folders import RemoteFolderProvisioner, command, open_controller_task
from hyperpod_jlab.admin.lambdas.settings import StackSettings
from hyperpod_jlab.admin.lambdas.work import open_provisioner
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.core.errors import NotFoundError, RefusedError, UnreachableError
from testbed.aws.node_channel import NodeChannel
from tests.admin.conftest import DOMAIN, FILE_SYSTEM
from tests.admin.folder_cases import PLAIN, FolderCases, names
from tests.aws.conftest import REGION

__all__ = ["names"]

CLUSTER = "ml-cluster"
MOUNT = 'mount --bind "$1" "$1" && exec sh -c "$2"'
"""On the node something is mounted there, as the program wants it."""


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "fsx"
    folder.mkdir()
    return folder


@pytest.fixture
def cluster(account, root):
    """On Slurm, with two groups; the controller mounts the file system."""
    dns = f"{FILE_SYSTEM}.fsx.{REGION}.amazonaws.com"
    lustre = {"DnsName": dns, "MountName": "x5kjbbmv", "MountPath": str(root)}
    made = account.add_cluster(CLUSTER, REGION, orchestrator={"Slurm": {}})
    made.add_group("controller-machine", "ml.c5.large", 1, storage=[{"FsxLustreConfig": lustre}])
    made.add_group("workers", "ml.p5.48xlarge", 2)
    return made


@pytest.fixture
def node(account, cluster, root):
    words = ["unshare", "--mount", "sh", "-c", MOUNT, "sh", str(root)]
    with NodeChannel(account, words) as made:
        yield made


@pytest.fixture
async def errand(node):
    return await open_controller_task(Aws(), CLUSTER, None, FILE_SYSTEM)


@pytest.fixture
def keeper(errand):
    return RemoteFolderProvisioner(errand)


class TestFolders(FolderCases):
    """What holds of folders whoever looks after them."""


async def test_the_target_is_the_controller(errand, cluster, endpoint, root, keeper, names):
    (path,) = names()
    endpoint.calls.clear()
    assert await keeper.make({path: PLAIN}) == {path: None}
    assert (root / path[1:]).stat().st_uid == PLAIN.uid
    (started,) = [one for one in endpoint.calls if one.action == "ssm:StartSession"]
    (controller,) = [one for one in cluster.nodes if one.group == "controller-machine"]
    ident = cluster.arn.rpartition("/")[2]
    target = f"sagemaker-cluster:{ident}_controller-machine-{controller.instance_id}"
    assert started.given["Target"] == target
    assert errand.root == str(root)


async def test_the_channel_is_opened_with_a_signature(node, keeper):
    await keeper.look(["/"])
    (headers,) = node.headers
    assert f"/{REGION}/ssmmessages/aws4_request" in headers["authorization"]


async def test_messages_are_lost_turned_round_and_repeated(node, keeper, names):
    node.loses, node.turned = 2, True
    paths = names(40)
    assert await keeper.make(dict.fromkeys(paths, PLAIN)) == dict.fromkeys(paths)
    assert set((await keeper.look(paths)).values()) == {PLAIN}


async def test_names_are_data_and_no_part_of_the_command(node, keeper):
    odd = "/$(touch x) '; touch x; \"`touch x`"
    with pytest.raises(RefusedError):
        await keeper.look([odd + "\0"])
    assert await keeper.look([odd]) == {odd: None}
    assert not [one for one in node.ran if "touch" in one]
    assert max(map(len, node.ran)) < 1000


async def test_a_session_that_breaks_off_is_an_error_that_passes(node, keeper):
    node.breaks = 1
    with pytest.raises(UnreachableError):
        await keeper.look(["/"])
    assert await keeper.look(["/"])


async def test_sessions_that_are_to_be_encrypted_are_refused(node, keeper):
    node.actions = ["KMSEncryption", "SessionType"]
    with pytest.raises(RefusedError) as raised:
        await keeper.look(["/"])
    assert raised.value.code == "session_encrypted"


async def test_a_node_without_python_or_mount_says_so(node, keeper, root):
    node.words = ["sh", "-c"]
    with pytest.raises(RefusedError) as raised:
        await keeper.look(["/"])
    assert raised.value.code == "not_mounted"
    node.words = ["env", "PATH=/nowhere", "/bin/sh", "-c"]
    with pytest.raises(UnreachableError) as lost:
        await keeper.look(["/"])
    assert lost.value.code == "no_answer", str(lost.value)


async def test_who_the_controller_is(account, cluster):
    cluster.groups[0].slurm_node_type = "Controller"
    errand = await open_controller_task(Aws(), CLUSTER, "other", FILE_SYSTEM)
    assert errand is not None
    cluster.groups[0].slurm_node_type = None
    with pytest.raises(NotFoundError) as raised:
        await open_controller_task(Aws(), CLUSTER, "other", FILE_SYSTEM)
    assert "no instance group other" in str(raised.value)
    with pytest.raises(RefusedError) as refused:
        await open_controller_task(Aws(), CLUSTER, None, "fs-0fedcba9876543210")
    assert refused.value.code == "not_mounted"
    account.add_cluster("research-eks", REGION, orchestrator=account.eks("research", REGION))
    assert await open_controller_task(Aws(), "research-eks", None, None) is None


def test_the_command_is_whole_for_a_shell():
    assert "hpj-folders-1-2" not in command("hpj-folders-1-2")


async def test_two_at_once(keeper, names):
    paths = names(2)
    made = await asyncio.gather(*(keeper.make({path: PLAIN}) for path in paths))
    assert made == [{path: None} for path in paths]


async def test_a_function_whose_controller_is_gone_says_that_folders_are_out_of_reach(account):
    settings = StackSettings.from_properties(
        {"DomainId": DOMAIN, "ClusterName": "gone", "PartitionMode": "per-user"}
    )
    with pytest.raises(UnreachableError) as raised:
        async with open_provisioner(settings, Aws()):
            pass
    assert raised.value.code == "folders_out_of_reach"
