"""From a space to a real Kubernetes as EKS: the package and the configuration are all that hpj needs, and kubectl has a context unless none is wanted."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import pytest

from testbed.aws.attached import order
from testbed.aws.control_plane import AccessEntry
from testbed.aws.kubernetes_bed import SCRIPT, AttachedKubernetes, kubernetes_bed
from testbed.aws.server import AwsServer
from tests.aws.conftest import KEY, REGION, endpoint, no_aws
from tests.kubernetes.cluster import ONE, build
from tests.lifecycle.space import Space
from tests.lifecycle.test_in_space import message, returned, steps
from tests.lifecycle.test_tools import made as made_tools

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(600)]
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
        with ONE.only(kubernetes_bed(base / "k", *options, nodes=1)) as made:
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


@pytest.fixture
def kubectl(bed, base):
    """An archive with the testbed's kubectl, on the partition: its settings."""
    programs = base / "programs"
    programs.mkdir()
    path = Path(order(SCRIPT, bed, "env").splitlines()[1].partition("=")[2].split(":")[0])
    (programs / "kubectl").write_text(f'#!/bin/sh\nexec {path}/kubectl "$@"\n')
    archive = bed.parent / "fsx" / "alice" / "tools.tar.gz"
    archive.unlink(missing_ok=True)
    done = made_tools("--from", programs, archive)
    assert done.returncode == 0, done.stderr
    return {"tools": archive.name, "tools_sha256": done.stdout.strip()}


@pytest.mark.parametrize(
    "kubeconfig", [pytest.param(False, id="no kubeconfig", marks=pytest.mark.full), pytest.param(True, id="kubeconfig")]
)
def test_a_job_on_eks(space, script, kubectl, kubeconfig):
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
        namespace="default",
        **({} if kubeconfig else {"kubeconfig": False}),
        **kubectl,
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
    assert kept.stat().st_mode & 0o777 == 0o600
    done = space.run("bash", "-c", "kubectl get nodes -o name && kubectl config get-contexts -o name")
    node, context = done.stdout.splitlines()
    assert (node.partition("/")[0], context) == ("node", "research-eks"), done.stderr
    _stays_with_ones_own(space, text, kept)


def _stays_with_ones_own(space, text, kept):
    """A context of one's own stays, and stays the one that kubectl uses."""
    done = space.run("bash", "-c", "kubectl config set-context mine --namespace x; kubectl config use-context mine")
    assert done.returncode == 0, done.stderr
    returned(*space.lifecycle(text))
    assert message(space.ended(), "access").endswith("is a context of ~/.kube/config already")
    assert "current-context: mine" in kept.read_text()
    assert kept.read_text().count("name: research-eks") == 1
