"""Folders of the whole file system by a Job of a real Kubernetes cluster, with attacks and faults."""

from __future__ import annotations

import asyncio
import os
import stat

import pytest

from hyperpod_jlab.admin.folders import ROOT, FoldersThere
from hyperpod_jlab.admin.there import Folder
from hyperpod_jlab.model.config import KubernetesCluster
from hyperpod_jlab.model.errors import (
    DeniedError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    UnreachableError,
)
from hyperpod_jlab.orchestrators.kubernetes.api.connection import Connection
from hyperpod_jlab.orchestrators.kubernetes.errand import KubernetesErrand
from hyperpod_jlab.services.folder_keepers import FolderPlace, open_keeper
from hyperpod_jlab.storage.partition import Partition
from testbed.aws.kubernetes_bed import pinned_image
from tests.kubernetes.session_fixtures import CLAIM, CLUSTER, settings_for

PERSON, GROUP, JOBS = 200001, 1001, 1000
OPENED = Folder(
    PERSON,
    GROUP,
    0o700,
    acl=(("user", JOBS, 7),),
    default=(
        ("user", None, 7),
        ("user", JOBS, 7),
        ("user", PERSON, 7),
        ("group", None, 0),
        ("other", None, 0),
    ),
)
SHARED = Folder(PERSON, GROUP, 0o2775)
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
    place = FolderPlace("kubernetes", image=pinned)
    async with open_keeper(settings, Partition(root), place) as found:
        yield found


@pytest.fixture
def names(kubernetes_cluster):
    """Names of folders that no other test has; removed at the end."""
    made: list[str] = []

    def new(count=1):
        made.extend(f"/p{os.urandom(4).hex()}" for _ in range(count))
        return made[-count:]

    yield new
    for name in made:
        path = kubernetes_cluster.partition / name[1:]
        if path.is_symlink() or path.is_file():
            path.unlink()
        elif path.is_dir():
            path.rmdir()


def jobs_of(cluster, namespace):
    return cluster.get("jobs", namespace=namespace)["items"]


async def test_all_folders_of_a_plan_are_one_job_which_is_removed(
    keeper, kubernetes_cluster, namespace, names
):
    paths = names(500)
    assert set((await keeper.look([ROOT, *paths])).values()) >= {None}
    wanted = {**dict.fromkeys(paths, OPENED), paths[0]: SHARED}
    assert await keeper.make(wanted) == dict.fromkeys(paths)
    assert await keeper.look(paths) == wanted
    found = (kubernetes_cluster.partition / paths[1][1:]).stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (PERSON, GROUP, 0o770)
    assert jobs_of(kubernetes_cluster, namespace) == []
    events = kubernetes_cluster.get("events", namespace=namespace)["items"]
    made = {one["involvedObject"]["name"] for one in events if one["reason"] == "SuccessfulCreate"}
    assert len([one for one in made if one.startswith("hpj-folders")]) == 3


async def test_links_files_and_folders_of_others(keeper, kubernetes_cluster, names):
    link, file, theirs, good, middle = names(5)
    root = kubernetes_cluster.partition
    victim = root.parent / "victim"
    victim.mkdir(mode=0o711)
    (root / link[1:]).symlink_to(victim)
    (root / file[1:]).write_text("")
    (root / theirs[1:]).mkdir()
    os.chown(root / theirs[1:], 4711, 4711)
    (root / middle[1:]).symlink_to(".")
    made = await keeper.make(
        dict.fromkeys((link, file, theirs, good, f"{middle}/{good[1:]}x"), OPENED)
    )
    codes = [error and error.code for error in made.values()]
    assert codes == ["no_folder", "no_folder", "foreign_folder", None, "no_folder"]
    assert (victim.stat().st_uid, stat.S_IMODE(victim.stat().st_mode)) == (0, 0o711)
    victim.rmdir()


async def test_two_batches_at_once(keeper, names):
    wanted = dict.fromkeys(names(50), OPENED)
    for made in await asyncio.gather(keeper.make(wanted), keeper.make(wanted)):
        assert made == dict.fromkeys(wanted)


class Slow(KubernetesErrand):
    """Its program takes its time for each folder."""

    async def run(self, program, name):
        loop = '    for wanted in order["folders"]:\n'
        assert program.count(loop) == 1
        return await super().run(program.replace(loop, f"{loop}        time.sleep(0.1)\n"), name)


@pytest.fixture
async def errand(kubernetes_cluster, namespace, keeper):
    """Makes errands with other settings; the rights are the keeper's."""
    config = settings_for(
        kubernetes_cluster, namespace, kubernetes_cluster.partition, sub_path=None
    ).clusters[CLUSTER]
    assert isinstance(config, KubernetesCluster)
    connection = Connection(config)
    yield lambda image, kind=KubernetesErrand, claim=CLAIM, **more: kind(
        connection, namespace, claim, image, **more
    )
    await connection.close()


async def test_a_pod_that_is_killed_half_way_and_once_more(
    keeper, errand, pinned, kubernetes_cluster, namespace, names
):
    paths = names(80)
    root = kubernetes_cluster.partition
    making = asyncio.create_task(
        FoldersThere(errand(pinned, Slow)).make(dict.fromkeys(paths, OPENED))
    )
    while not (root / paths[4][1:]).exists():
        await asyncio.sleep(0.02)
        assert not making.done()
    await asyncio.to_thread(kubernetes_cluster.kubectl, "delete", "pods", "--all", "--grace-period=1", "--wait=false", namespace=namespace)  # fmt: skip
    with pytest.raises(RefusedError) as caught:
        await making
    assert caught.value.code == "job_failed"
    assert not (root / paths[-1][1:]).exists()
    assert await keeper.make(dict.fromkeys(paths, OPENED)) == dict.fromkeys(paths)
    assert jobs_of(kubernetes_cluster, namespace) == []


async def test_who_gives_up_takes_the_job_back(
    errand, pinned, kubernetes_cluster, namespace, names
):
    paths = names(80)
    making = asyncio.create_task(
        FoldersThere(errand(pinned, Slow)).make(dict.fromkeys(paths, OPENED))
    )
    while not (kubernetes_cluster.partition / paths[0][1:]).exists():
        await asyncio.sleep(0.02)
        assert not making.done()
    making.cancel()
    await asyncio.gather(making, return_exceptions=True)
    assert jobs_of(kubernetes_cluster, namespace) == []


async def test_an_answer_that_is_cut_off_is_none(errand, pinned, names):
    class Cut(KubernetesErrand):
        async def run(self, program, name):
            return (await super().run(program, name))[:-20]

    with pytest.raises(UnreachableError) as caught:
        await FoldersThere(errand(pinned, Cut)).make(dict.fromkeys(names(), OPENED))
    assert caught.value.code == "no_answer"


async def test_a_program_that_fails_says_why(errand, pinned):
    class Broken(KubernetesErrand):
        async def run(self, program, name):
            return await super().run("import sys; sys.exit('no $(HOME) here')", name)

    with pytest.raises(RefusedError) as caught:
        await FoldersThere(errand(pinned, Broken)).look(["/x"])
    assert caught.value.code == "job_failed"
    assert "exit code 1: no $(HOME) here" in caught.value.message


async def test_a_claim_that_is_not_there(errand, pinned, kubernetes_cluster, namespace):
    with pytest.raises(NotFoundError) as caught:
        await FoldersThere(errand(pinned, claim="nope")).look(["/x"])
    assert (caught.value.code, '"nope"' in caught.value.message) == ("no_claim", True)
    assert jobs_of(kubernetes_cluster, namespace) == []


async def test_an_image_that_no_node_can_have(errand):
    missing = f"localhost/testbed/nothing@sha256:{'0' * 64}"
    with pytest.raises(RefusedError) as caught:
        await FoldersThere(errand(missing)).look(["/x"])
    assert caught.value.code == "pod_cannot_start"


@pytest.mark.parametrize("image", ["python:3.11", "python", "a b@sha256:" + "0" * 64, ""])
async def test_an_image_must_be_named_by_its_digest(errand, image):
    with pytest.raises(InvalidInputError) as caught:
        errand(image)
    assert caught.value.code == "image_without_digest"


async def test_a_pod_that_finds_no_room_is_taken_back(
    errand, pinned, kubernetes_cluster, namespace
):
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}  # fmt: skip
    kubernetes_cluster.create(quota, namespace=namespace)
    with pytest.raises(UnreachableError) as caught:
        await FoldersThere(errand(pinned, patience=4.0)).look(["/x"])
    assert caught.value.code == "job_did_not_end"
    assert "no pod was made" in caught.value.message
    assert jobs_of(kubernetes_cluster, namespace) == []


async def test_a_missing_right_is_named(kubernetes_cluster, namespace, pinned, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", str(kubernetes_cluster.user("nobody", namespace, rules=RIGHTS[1:])))  # fmt: skip
    root = kubernetes_cluster.partition
    settings = settings_for(kubernetes_cluster, namespace, root, sub_path="team")
    place = FolderPlace("kubernetes", image=pinned)
    async with open_keeper(settings, Partition(root), place) as keeper:
        with pytest.raises(DeniedError) as caught:
            await keeper.look(["/x"])
    assert "create" in caught.value.message
    assert "jobs" in caught.value.message
