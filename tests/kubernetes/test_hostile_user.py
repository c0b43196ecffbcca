"""Two users with one namespace and one partition, which no pod mounts: what bob's pods print goes nowhere at alice's.

`tests/security/test_foreign_pods.py` has more of it, with a stand-in for the cluster.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import pytest

from tests.kubernetes.cluster import KubernetesTestbed
from tests.security.attacks import put
from tests.security.conftest import Scene, make_scene, scene, stage, warm
from tests.security.people import LIMIT, Person
from tests.security.server import serving

__all__ = ["make_scene", "scene", "stage", "warm"]  # fixtures

DEADLINE = 120.0
RUN = "of-bob"
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: of-bob}
spec:
  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 0
      containers:
        - name: c
          image: IMAGE
          command: [sh, -c, "while :; do echo 'echo pwned > pwned #'; sleep 0.2; done"]
"""


@pytest.fixture
def users(scene: Scene, kubernetes_cluster: KubernetesTestbed, namespace: str) -> Scene:
    """alice and bob, each with a right to the namespace."""
    for person in (scene.alice, scene.bob):
        person.more = "\n".join(
            [
                "[clusters.k8s]",
                "orchestrator = 'kubernetes'",
                f"namespace = {json.dumps(namespace)}",
                f"image = {json.dumps(kubernetes_cluster.image)}",
            ]
        )
        person.configure()
        folder = person.home / ".kube"
        folder.mkdir()
        shutil.copy(kubernetes_cluster.user(person.name, namespace), folder / "config")
        for path in (folder, folder / "config"):
            os.chown(path, person.uid, person.uid)
    return scene


def _is_running(person: Person) -> bool:
    shown = person.hpj("show", RUN, "--json").ok().json
    return bool(shown["state"] == "running" and shown["attempts"])


def _lay_links(bundle: Path, home: Path) -> None:
    """In the place of everything that comes from pods: links to what is alice's."""
    for name in ("logs", "spool", "status/attempt-1"):
        shutil.rmtree(bundle / name, ignore_errors=True)
    (bundle / "logs").mkdir()
    (bundle / "logs/attempt-1").mkdir()
    (bundle / "logs/attempt-1/node-0.rank-0.idx").symlink_to(home / "times")
    for name in ("node-0.rank-0.log", "node-0.log"):
        (bundle / "logs/attempt-1" / name).symlink_to(home / ".bashrc")
    for name in ("spool", "status/attempt-1"):
        (bundle / name).symlink_to(home / "Documents")
    put(bundle / "submission.json", (bundle / "submission.json").read_text())
    for folder, _, files in os.walk(bundle):
        os.chmod(folder, 0o777)  # noqa: PTH101
        for name in files:
            path = Path(folder, name)
            if not path.is_symlink():
                path.chmod(0o666)


def test_what_the_pods_of_another_user_print_is_not_written(
    users: Scene, kubernetes_cluster: KubernetesTestbed
) -> None:
    """Finding 6."""
    alice, bob = users.alice, users.bob
    job = bob.project / "job.yaml"
    bob.do(lambda: job.write_text(JOB.replace("IMAGE", kubernetes_cluster.image)))
    bob.hpj("submit", "--cluster", "k8s", "--run-id", RUN, str(job)).ok()
    end = time.monotonic() + DEADLINE
    while not _is_running(bob):
        assert time.monotonic() < end, "bob's pod does not run"
        time.sleep(0.5)
    bundle = bob.bundle(RUN)
    bob.do(lambda: _lay_links(bundle, alice.home))
    before = users.kept
    for look in (("show", RUN), ("logs", RUN), ("runs", "--all-users"), ("why", RUN)):
        alice.hpj(*look).clean()
    assert users.kept == before
    with serving(alice) as server:
        end = time.monotonic() + LIMIT
        while time.monotonic() < end and users.kept == before:
            assert server.ask("GET", "runs?limit=20&all_users=true")[0] == 200
            server.ask("GET", f"runs/{RUN}")
            time.sleep(0.5)
    assert users.kept == before
    assert not [path for path in bundle.rglob("*") if path.lstat().st_uid == alice.uid]
    refused = alice.hpj("cancel", RUN, "--json").clean()
    assert refused.code != 0
    assert bob.hpj("show", RUN, "--json").ok().json["state"] == "running"
    bob.hpj("cancel", RUN).clean()
