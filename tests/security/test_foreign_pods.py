"""What a pod of another user's prints goes nowhere: no file of the reader's is written through a bundle that others made."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
import yaml

from hyperpod_jlab.engines.kubernetes.kinds.kind import RUN_LABEL
from tests.security.attacks import as_not_begun, plant, put, rewrite, runs_folders
from tests.security.conftest import Scene
from tests.security.kube_stand_in import StandIn, standing_in
from tests.security.people import LIMIT
from tests.security.server import serving

PRINTED = [b"echo pwned by a pod of bob > pwned #", b"more"]
RUN = "followed"


@pytest.fixture
def planted(scene: Scene) -> list[Path]:
    """Bob's run on Kubernetes, which runs; instead of logs and records there are links to files of alice's."""
    alice, bob = scene.alice, scene.bob
    bob.hpj("submit", "--no-project-files", "--wait", "--run-id", "template", "-c", "true").ok()
    template = bob.bundle("template")
    manifest = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": f"run-{RUN}", "namespace": "default", "labels": {RUN_LABEL: RUN}},
        "spec": {},
    }
    targets = (alice.home / ".bashrc", alice.home / "not-yet.txt", alice.home / "Documents")
    names = ["logs/attempt-1/node-0.rank-0.log", "logs/attempt-1/node-0.rank-0.idx"]
    names += ["logs/attempt-1/node-0.log", "spool"]

    def edit(place: Path) -> None:
        as_not_begun(place)
        put(place / "submission.json", json.dumps({"scheduler_id": "job-uid", "submitted_at": time.time()}))
        put(place / "manifest.yaml", yaml.safe_dump(manifest))
        rewrite(place / "bundle.json", cluster="pods", orchestrator="kubernetes")
        rewrite(place / "spec.json", source={"kind": "native", "path": "job.yaml"})
        (place / "logs/attempt-1").mkdir(parents=True)
        ends = (targets[0], targets[1], targets[0], targets[2])
        for name, target in zip(names, ends, strict=True):
            (place / name).symlink_to(target)

    head = {"created_at": time.time() - 60, "user": "alice"}
    folders = runs_folders(scene.partition, bob.uid)
    made: list[Path] = bob.do(lambda: plant(template, RUN, folders, edit=edit, head=head))
    assert made, "bob could lay his bundle nowhere"
    alice.more = "[clusters.pods]\norchestrator = 'kubernetes'\nnamespace = 'default'\nimage = 'i'\n"
    alice.configure()
    (alice.home / ".kube").mkdir()
    return made


def _written_by_alice(scene: Scene, planted: list[Path]) -> list[str]:
    return [
        str(path) for place in planted for path in (place, *place.rglob("*")) if path.lstat().st_uid == scene.alice.uid
    ]


def _was_asked(cluster: StandIn) -> bool:
    return any("/log" in path for path in cluster.asked)


def test_reading_anothers_run_writes_nothing(scene: Scene, planted: list[Path]) -> None:
    """Finding 6."""
    alice = scene.alice
    with standing_in(RUN, PRINTED, alice.home / ".kube" / "config") as cluster:
        before = scene.kept
        for words in (("show", RUN), ("logs", RUN), ("runs", "--all-users"), ("why", RUN)):
            alice.begin(*words).answer(2 * LIMIT).clean()
        assert scene.kept == before
        assert _written_by_alice(scene, planted) == []
        assert not _was_asked(cluster), "a log of another user's pod was fetched into that user's bundle"


def test_a_server_that_is_looked_at_does_not_follow_the_pods_of_others(scene: Scene, planted: list[Path]) -> None:
    """Finding 6: no click is needed."""
    alice = scene.alice
    with standing_in(RUN, PRINTED, alice.home / ".kube" / "config") as cluster:
        before = scene.kept
        with serving(alice) as server:
            end = time.monotonic() + LIMIT
            while time.monotonic() < end and scene.kept == before:
                assert server.ask("GET", "runs?limit=20&all_users=true")[0] == 200
                server.ask("GET", "runs?limit=20")
                server.ask("GET", f"runs/{RUN}")
                time.sleep(0.5)
        assert scene.kept == before
        assert _written_by_alice(scene, planted) == []
        assert not _was_asked(cluster)
