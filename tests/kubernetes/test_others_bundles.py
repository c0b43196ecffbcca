"""Bundles of another user, who may write anything into them: nothing is done by what they say, and nothing is written there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NoReturn

import pytest

from hyperpod_jlab.core.config import KubernetesCluster
from hyperpod_jlab.core.errors import DeniedError, NotFoundError, RefusedError, StorageDeniedError, StorageError
from hyperpod_jlab.core.validation import parse
from hyperpod_jlab.engines.kubernetes.api.rights import ClusterConnection
from hyperpod_jlab.engines.kubernetes.engine import KubernetesOrchestrator
from hyperpod_jlab.engines.kubernetes.kinds.batch_job import BatchJob
from hyperpod_jlab.engines.kubernetes.kinds.choice import KINDS
from hyperpod_jlab.engines.kubernetes.observe.pod_log import LogFile, make_folder
from hyperpod_jlab.engines.kubernetes.observe.pod_logs import mark_done
from hyperpod_jlab.engines.kubernetes.observe.poll import RunLocation, RunSnapshot
from hyperpod_jlab.engines.kubernetes.observe.runs import RunTracker
from hyperpod_jlab.engines.kubernetes.observe.verdicts import find_launch_error
from hyperpod_jlab.engines.kubernetes.submit.create import check_own_object
from hyperpod_jlab.engines.kubernetes.submit.sent import read_sent
from hyperpod_jlab.engines.kubernetes.targets import run_target
from hyperpod_jlab.storage.partition import Partition
from hyperpod_jlab.storage.records import BundleReader
from tests.kubernetes.test_verdicts import NOW, pod
from tests.storage.bundles import make_bundle
from tests.storage.users import AS_ROOT, give_away, others_bundle

pytestmark = AS_ROOT

RUN = "nightly"
CONFIG = parse(KubernetesCluster, {"orchestrator": "kubernetes"})
MANIFEST = """
apiVersion: batch/v1
kind: Job
metadata: {{name: {name}, namespace: {namespace}, labels: {{hyperpod-jlab/run-id: nightly}}, annotations: {{hyperpod-jlab/user: ada}}}}
spec: {{}}
"""


class NoConnection(ClusterConnection):
    """A cluster that must not be asked."""

    async def client(self) -> NoReturn:
        raise AssertionError("the cluster was asked")


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    (tmp_path / "fsx").mkdir()
    return Partition(tmp_path / "fsx", shared=True)


@pytest.fixture
def foreign(partition: Partition) -> BundleReader:
    others_bundle(partition.root, RUN, {})
    return with_manifest(BundleReader(partition, RUN))


def with_manifest(bundle: BundleReader, name: str = "run-nightly", namespace: str = "team") -> BundleReader:
    (bundle.folder / "manifest.yaml").write_text(MANIFEST.format(name=name, namespace=namespace))
    return bundle


def contents(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))


def where(native: bool = False) -> RunLocation:
    kind = next(kind for kind in KINDS if kind.name == BatchJob.name)
    return RunLocation(RUN, kind, "team", "run-nightly", native)


async def test_no_pods_log_is_fetched_into_another_users_bundle(foreign: BundleReader) -> None:
    watch = RunTracker(NoConnection(CONFIG))
    before = contents(foreign.folder)
    assert await watch.catch_up(foreign, 1.0) is False
    seen = {RUN: RunSnapshot(None, (pod(0, "Running", None),), NOW)}
    _, undone, _ = watch._observe_all([(foreign, where(native=True))], seen)
    assert undone == set()
    assert contents(foreign.folder) == before
    await watch.close()


def test_no_records_are_written_into_another_users_bundle(foreign: BundleReader) -> None:
    watch = RunTracker(NoConnection(CONFIG))
    before = contents(foreign.folder)
    watch._observe_one(foreign, where(native=True), RunSnapshot(None, (pod(0),), NOW))
    mark_done(foreign)
    assert contents(foreign.folder) == before
    with pytest.raises(StorageDeniedError):
        make_folder(foreign, foreign.records / "spool")


@pytest.mark.parametrize("action", ["cancel", "hold", "release", "requeue", "submit", "shells"])
async def test_nothing_that_another_users_bundle_names_is_acted_on(
    partition: Partition, foreign: BundleReader, action: Any
) -> None:
    acting = KubernetesOrchestrator("hpc", CONFIG, partition)

    class Client:
        """The API server must not be asked."""

    async def client() -> Any:
        return Client()

    acting._connection.client = client
    doing = {"submit": lambda: acting.submit(foreign), "shells": lambda: acting.shells.shells(foreign)}.get(
        action, lambda: acting.actions.act(action, foreign)
    )
    with pytest.raises(DeniedError) as caught:
        await doing()
    assert caught.value.code == "foreign_run"
    await acting.close()


def test_a_log_that_is_a_link_or_a_pipe_is_not_written(tmp_path: Path) -> None:
    bundle = BundleReader(Partition(tmp_path), RUN)
    folder = bundle.records / "logs" / "attempt-1"
    folder.mkdir(parents=True)
    (tmp_path / "bashrc").write_text("mine")
    for name in ("node-0.log", "node-1.idx"):
        (folder / name).symlink_to(tmp_path / "bashrc")
    os.mkfifo(folder / "node-2.log")
    for node in range(3):
        with pytest.raises(OSError, match=r"symbolic links|regular file|No such device"):
            LogFile(bundle, folder / f"node-{node}.log")
    assert (tmp_path / "bashrc").read_text() == "mine"


def test_a_folder_that_is_a_link_is_not_written_into(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    bundle = BundleReader(Partition(tmp_path), RUN)
    bundle.folder.mkdir(parents=True)
    (bundle.folder / "logs").symlink_to(tmp_path / "home")
    with pytest.raises(OSError, match=r"Not a directory|symbolic links"):
        LogFile(bundle, bundle.records / "logs" / "attempt-1" / "node-0.log")
    assert list((tmp_path / "home").iterdir()) == []


def found(**annotations: str) -> dict[str, Any]:
    return {"metadata": {"name": "run-nightly", "labels": {"hyperpod-jlab/run-id": RUN}, "annotations": annotations}}


OURS = {
    "kind": "Job",
    "metadata": {
        "name": "run-nightly",
        "namespace": "team",
        "labels": {"hyperpod-jlab/run-id": RUN},
        "annotations": {"hyperpod-jlab/user": "ada"},
    },
}


def test_another_users_job_of_the_same_run_id_is_not_taken_for_ones_own() -> None:
    assert check_own_object(found(**{"hyperpod-jlab/user": "ada"}), OURS)
    for theirs in (found(), found(**{"hyperpod-jlab/user": "bob"})):
        with pytest.raises(RefusedError) as caught:
            check_own_object(theirs, OURS)
        assert caught.value.code == "name_taken"


async def test_another_users_job_of_the_same_run_id_is_neither_found_nor_acted_on(partition: Partition) -> None:
    bundle = with_manifest(make_bundle(partition, RUN, code=None))
    theirs: dict[str, Any] = found(**{"hyperpod-jlab/user": "bob"})

    class Client:
        async def get(self, path: str, **_: Any) -> dict[str, Any]:
            return theirs

    async def client() -> Any:
        return Client()

    acting = KubernetesOrchestrator("hpc", CONFIG, partition)
    acting._connection.client = client
    assert await acting.find(bundle) is None
    with pytest.raises(NotFoundError):
        await run_target(Client(), bundle)  # type: ignore[arg-type]
    theirs["metadata"]["annotations"]["hyperpod-jlab/user"] = "ada"
    assert await acting.find(bundle) is not None
    await acting.close()


@pytest.mark.parametrize(
    ("name", "namespace"), [("../../secrets/x", "team"), ("run-x", "team/../kube-system"), ("a?b", "t")]
)
def test_a_name_that_leads_elsewhere_is_none(foreign: BundleReader, name: str, namespace: str) -> None:
    assert read_sent(foreign).name == "run-nightly"
    with pytest.raises(StorageError):
        read_sent(with_manifest(foreign, name, namespace))


def test_pipes_links_and_long_manifests_keep_nobody_waiting(foreign: BundleReader, tmp_path: Path) -> None:
    (foreign.folder / "manifest.yaml").write_text("a: " + "[" * 200_000)
    with pytest.raises(StorageError):
        read_sent(foreign)
    (foreign.folder / "manifest.yaml").write_text("[" * 20_000)
    with pytest.raises(StorageError):
        read_sent(foreign)
    (foreign.folder / "manifest.yaml").unlink()
    os.mkfifo(foreign.folder / "manifest.yaml")
    (foreign.folder / "status/unstarted").mkdir(parents=True)
    os.mkfifo(foreign.folder / "status/unstarted/node-0.json")
    give_away(foreign.folder)
    with pytest.raises(StorageError):
        read_sent(foreign)
    assert find_launch_error(foreign) is None
