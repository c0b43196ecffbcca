"""Folders of the whole file system by a Job of a real Kubernetes cluster, with attacks and faults."""

from __future__ import annotations

import pytest

from hyperpod_jlab.admin.fsx.folders import RemoteFolderProvisioner
from hyperpod_jlab.admin.fsx.keepers import open_provisioner
from hyperpod_jlab.admin.fsx.request import ProvisionerOptions
from hyperpod_jlab.core.config import KubernetesCluster
from hyperpod_jlab.core.errors import DeniedError, InvalidInputError, NotFoundError, RefusedError, UnreachableError
from hyperpod_jlab.engines.kubernetes.api.rights import ClusterConnection
from hyperpod_jlab.engines.kubernetes.remote_task import KubernetesTaskRunner
from hyperpod_jlab.storage.partition import Partition
from testbed.aws.kubernetes_bed import pinned_image
from tests.admin.folder_cases import JobCases, as_it_is, names
from tests.kubernetes.session_fixtures import CLAIM, CLUSTER, settings_for

__all__ = ["names"]

RIGHTS = [
    {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create", "get", "delete"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
    {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]},
]
"""All that it takes, in one namespace."""


@pytest.fixture(scope="module")
def pinned(kubernetes_cluster):
    """The testbed's image by its digest."""
    return pinned_image(kubernetes_cluster.folder)


@pytest.fixture
async def keeper(kubernetes_cluster, namespace, pinned, monkeypatch):
    """Who has just the rights that it takes."""
    kubernetes_cluster.claim(namespace, CLAIM)
    user = kubernetes_cluster.user("admin", namespace, rules=RIGHTS)
    monkeypatch.setenv("KUBECONFIG", str(user))
    root = kubernetes_cluster.partition
    settings = settings_for(kubernetes_cluster, namespace, root, sub_path="team")
    place = ProvisionerOptions("kubernetes", image=pinned)
    async with open_provisioner(settings, Partition(root), place) as found:
        yield found


@pytest.fixture
async def errand(kubernetes_cluster, namespace, keeper, pinned):
    """Makes errands with other settings; the rights are the keeper's."""
    config = settings_for(kubernetes_cluster, namespace, kubernetes_cluster.partition, sub_path=None).clusters[CLUSTER]
    assert isinstance(config, KubernetesCluster)
    connection = ClusterConnection(config)
    yield lambda change=as_it_is, image=pinned, claim=CLAIM, **more: change(
        KubernetesTaskRunner(connection, namespace, claim, image, **more)
    )
    await connection.close()


@pytest.fixture
def root(kubernetes_cluster):
    return kubernetes_cluster.partition


@pytest.fixture
def jobs_sent(kubernetes_cluster, namespace):
    """Those that made a pod, by the events."""

    def count():
        events = kubernetes_cluster.get("events", namespace=namespace)["items"]
        named = {one["involvedObject"]["name"] for one in events if one["reason"] == "SuccessfulCreate"}  # fmt: skip
        return len([one for one in named if one.startswith("hpj-folders")])

    return count


@pytest.fixture
def jobs_left(kubernetes_cluster, namespace):
    return lambda: kubernetes_cluster.get("jobs", namespace=namespace)["items"]


@pytest.fixture
def kill_jobs(kubernetes_cluster, namespace):
    words = ("delete", "pods", "--all", "--grace-period=1", "--wait=false")
    return lambda: kubernetes_cluster.kubectl(*words, namespace=namespace)


class TestFolders(JobCases):
    """As for everybody who sends jobs."""

    killed = "its pod was removed|exit code"


async def test_a_program_that_fails_says_why(errand):
    def broken(errand):
        run = errand.run
        errand.run = lambda program, name: run("import sys; sys.exit('no $(HOME) here')", name)
        return errand

    with pytest.raises(RefusedError) as caught:
        await RemoteFolderProvisioner(errand(broken)).look(["/x"])
    assert caught.value.code == "job_failed"
    assert "exit code 1: no $(HOME) here" in caught.value.message


async def test_a_claim_that_is_not_there(errand, jobs_left):
    with pytest.raises(NotFoundError) as caught:
        await RemoteFolderProvisioner(errand(claim="nope")).look(["/x"])
    assert (caught.value.code, '"nope"' in caught.value.message) == ("no_claim", True)
    assert jobs_left() == []


async def test_an_image_that_no_node_can_have(errand):
    missing = f"localhost/testbed/nothing@sha256:{'0' * 64}"
    with pytest.raises(RefusedError) as caught:
        await RemoteFolderProvisioner(errand(image=missing)).look(["/x"])
    assert caught.value.code == "pod_cannot_start"


@pytest.mark.parametrize("image", ["python:3.11", "python", "a b@sha256:" + "0" * 64, ""])
async def test_an_image_must_be_named_by_its_digest(errand, image):
    with pytest.raises(InvalidInputError) as caught:
        errand(image=image)
    assert caught.value.code == "image_without_digest"


async def test_a_pod_that_finds_no_room_is_taken_back(errand, jobs_left, kubernetes_cluster, namespace):
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}  # fmt: skip
    kubernetes_cluster.create(quota, namespace=namespace)
    with pytest.raises(UnreachableError) as caught:
        await RemoteFolderProvisioner(errand(timeout=4.0)).look(["/x"])
    assert caught.value.code == "job_did_not_end"
    assert "no pod was created" in caught.value.message
    assert jobs_left() == []


async def test_a_missing_right_is_named(kubernetes_cluster, namespace, pinned, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", str(kubernetes_cluster.user("nobody", namespace, rules=RIGHTS[1:])))  # fmt: skip
    root = kubernetes_cluster.partition
    settings = settings_for(kubernetes_cluster, namespace, root, sub_path="team")
    place = ProvisionerOptions("kubernetes", image=pinned)
    async with open_provisioner(settings, Partition(root), place) as keeper:
        with pytest.raises(DeniedError) as caught:
            await keeper.look(["/x"])
    assert "create" in caught.value.message
    assert "jobs" in caught.value.message
