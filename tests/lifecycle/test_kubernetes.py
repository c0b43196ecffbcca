"""From a space to a real Kubernetes as EKS: nothing but the package and the configuration is needed, and a kubeconfig comes when it is asked for."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import pytest

from testbed.aws.attached import order
from testbed.aws.kubernetes_bed import SCRIPT, AttachedKubernetes, kubernetes_bed
from testbed.aws.server import AwsServer
from testbed.aws.state import AccessEntry
from tests.aws.conftest import KEY, REGION, endpoint, no_aws
from tests.kubernetes.cluster import build
from tests.lifecycle.space import Space
from tests.lifecycle.test_in_space import message, returned, steps

pytestmark = pytest.mark.timeout(600)
"""They install and start things, on machines that have other work too."""

__all__ = ["endpoint", "no_aws"]

IMAGE = "localhost/testbed/python:3.11"


@pytest.fixture(scope="module")
def bed(package):
    build("training-operator")
    with tempfile.TemporaryDirectory(prefix="hpj-bed-") as folder:
        base = Path(folder)
        base.chmod(0o755)
        partition = base / "fsx" / "alice"
        partition.mkdir(parents=True)
        os.chown(partition, 1000, 100)
        for path in package.folder.iterdir():
            (partition / path.name).write_bytes(path.read_bytes())
        options = ("--training-operator", "--partition", str(partition.parent))
        with kubernetes_bed(base / "k", *options, nodes=1) as made:
            order(SCRIPT, made, "claim", "default")
            yield made


@pytest.fixture
def space(endpoint, no_aws, bed, base, conda):
    with AwsServer(endpoint) as server:
        entries = {"StudioRole": AccessEntry(("system:masters",))}
        with AttachedKubernetes(endpoint, server.url, bed, REGION, entries=entries) as made:
            variables = {
                "AWS_ENDPOINT_URL": server.url,
                "AWS_ACCESS_KEY_ID": KEY,
                "AWS_SECRET_ACCESS_KEY": "of-the-testbed",
            }
            partition = bed.parent / "fsx" / "alice"
            with Space(base / "space", partition, conda, variables=variables) as started:
                yield started
    assert made.problems == []


@pytest.mark.parametrize("kubeconfig", [False, True], ids=["no kubeconfig", "kubeconfig"])
def test_a_job_on_eks(space, script, kubeconfig):
    text = script(
        orchestrator="eks",
        cluster="research-eks",
        region=REGION,
        eks="research",
        image=IMAGE,
        claim="fsx",
        claim_mount="/fsx",
        package="/mnt/custom-file-systems/fsx_lustre/fs-0123456789abcdef0/",
        login_nodes=(),
        kubeconfig=kubeconfig,
    )
    returned(*space.lifecycle(text))
    status = space.ended()
    assert steps(status)["package"] == steps(status)["config"] == "done", space.log()
    done = space.run("hpj", "submit", "-c", "echo it is $HOSTNAME", "--wait", "--json", timeout=110)
    assert done.returncode == 0, done.stdout + done.stderr + space.log()
    run = json.loads(done.stdout)
    assert (run["cluster"], run["state"]) == ("research-eks", "succeeded")
    assert "it is " in space.run("hpj", "logs", run["run_id"]).stdout

    kept = space.home / ".kube" / "config"
    if not kubeconfig:
        assert steps(status)["access"] == "skipped"
        assert not kept.exists()
        return
    assert steps(status)["access"] == "done", space.log()
    assert message(status, "access") == "research-eks is a context of ~/.kube/config"
    assert "current-context: research-eks" in kept.read_text()
    kept.write_text(
        kept.read_text().replace("current-context: research-eks", "current-context: mine")
    )
    space.lifecycle(text)
    space.ended()
    assert kept.read_text().count("name: research-eks") == 1
