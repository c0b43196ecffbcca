"""Folders by a Job of a real Kubernetes, made by the package's functions, whose role an access entry of EKS lets in."""

from __future__ import annotations

import json
import stat
import subprocess
import time

import pytest

from testbed.aws.control_plane import AccessEntry
from testbed.aws.kubernetes_bed import SCRIPT, AttachedKubernetes, pinned_image
from testbed.aws.server import AwsServer
from testbed.aws.state import Profile, lustre_at
from tests.admin.conftest import DOMAIN, FILE_SYSTEM
from tests.admin.lambdas.conftest import properties
from tests.admin.lambdas.test_new_profile import again, batch, event
from tests.admin.lambdas.test_rights import grant
from tests.aws.conftest import REGION

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]

GROUP, NAMESPACE = "folders", "hyperpod-jlab"
RULES = [
    {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create", "get", "delete"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
    {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]},
]


def kubectl(bed, *objects):
    made = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    done = subprocess.run(
        [SCRIPT, "kubectl", bed, "apply", "-f", "-"], input=json.dumps(made), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


def named(kind, name, version="v1", **more):
    metadata = {"name": name} if kind == "Namespace" else {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **more}


@pytest.fixture(scope="module")
def disk(eks_bed):
    """The file system of the claim, empty."""
    made = eks_bed.parent / "fsx" / "folders"
    made.mkdir()
    return made


@pytest.fixture(scope="module")
def bed(eks_bed, disk):
    rbac = "rbac.authorization.k8s.io"
    role = {"apiGroup": rbac, "kind": "Role", "name": GROUP}
    sizes = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
    volume = {
        **sizes,
        "capacity": {"storage": "1200Gi"},
        "claimRef": {"namespace": NAMESPACE, "name": "fsx-claim"},
        "hostPath": {"path": str(disk), "type": "Directory"},
    }
    claim = {**sizes, "resources": {"requests": {"storage": "1200Gi"}}, "volumeName": f"{NAMESPACE}-fsx-claim"}
    kubectl(
        eks_bed,
        named("Namespace", NAMESPACE),
        named("Role", GROUP, f"{rbac}/v1", rules=RULES),
        named(
            "RoleBinding",
            GROUP,
            f"{rbac}/v1",
            roleRef=role,
            subjects=[{"apiGroup": rbac, "kind": "Group", "name": GROUP}],
        ),
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": f"{NAMESPACE}-fsx-claim"},
            "spec": volume,
        },
        named("PersistentVolumeClaim", "fsx-claim", spec=claim),
    )
    return eks_bed


@pytest.fixture(scope="module")
def image(bed):
    """The testbed's image by its digest, as a registry would give it."""
    return pinned_image(bed)


@pytest.fixture
def on_eks(endpoint, account, no_aws, bed, function):
    """The domain's account, with a HyperPod cluster on EKS; what the function may do there is a group's."""
    with AwsServer(endpoint) as server:
        no_aws.setenv("AWS_ENDPOINT_URL", server.url)
        function.environment["AWS_ENDPOINT_URL"] = server.url
        entries = {"Wiring": AccessEntry((GROUP,))}
        with AttachedKubernetes(endpoint, server.url, bed, REGION, entries=entries) as made:
            yield made


def test_folders_are_made_and_profiles_are_wired(account, disk, image, on_eks, function, stack):
    given = properties(
        "per-user",
        ClusterName="research-eks",
        Folders="kubernetes",
        Namespace=NAMESPACE,
        ClaimName="fsx-claim",
        Image=image,
    )
    grant(account, "custom_resource")
    answer = stack.create(**given)
    assert answer["Status"] == "SUCCESS", answer
    assert sorted(one.name for one in disk.iterdir()) == ["alice", "bob", "carol"]
    found = (disk / "alice").stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (200001, 1001, 0o700)
    assert account.profiles[DOMAIN, "alice"].file_systems == [lustre_at(FILE_SYSTEM, "/alice")]

    account.profiles[DOMAIN, "dora"] = Profile(uid=10007, gid=10007)
    function.environment |= {
        "HPJ_DOMAIN_ID": DOMAIN,
        "HPJ_FILE_SYSTEM_ID": FILE_SYSTEM,
        "HPJ_PARTITION_MODE": "per-user",
        "HPJ_CLUSTER_NAME": "research-eks",
        "HPJ_FOLDERS": "kubernetes",
        "HPJ_NAMESPACE": NAMESPACE,
        "HPJ_CLAIM_NAME": "fsx-claim",
        "HPJ_IMAGE": image,
    }
    grant(account, "new_profile")
    assert again(function.invoke("new_profile", batch(event("dora")))) == set()
    assert (disk / "dora").stat().st_uid == 10007
    assert account.profiles[DOMAIN, "dora"].file_systems == [lustre_at(FILE_SYSTEM, "/dora")]
    grant(account, "reconcile")
    told = function.invoke("reconcile", {}).result
    assert (told["changed"], told["failed"], told["waiting"]) == (0, 0, 0)

    # Who is not let into the cluster makes no folders, and says what is missing.
    on_eks.plane.entries.clear()
    time.sleep(1.1)  # so long the API server believes what it was told
    account.profiles[DOMAIN, "ed"] = Profile()
    invoked = function.invoke("new_profile", batch(event("ed")))
    assert again(invoked) == {"message-0"}
    assert "access entry" in invoked.log
    assert account.profiles[DOMAIN, "ed"].file_systems == []
    assert stack.delete()["Status"] == "SUCCESS"
    assert (disk / "dora").is_dir()


def test_folders_need_a_cluster_on_eks(account, stack):
    given = properties("per-user", Folders="kubernetes")
    answer = stack.create(**given)
    assert answer["Status"] == "FAILED"
    assert "needs ClusterName, ClaimName and Image" in answer["Reason"]
    account.add_cluster("ml-cluster", REGION, orchestrator={"Slurm": {}})
    more = {"ClusterName": "ml-cluster", "ClaimName": "fsx", "Image": "x@sha256:" + "0" * 64}
    answer = stack.create(**given, **more)
    assert "ml-cluster is not on EKS" in answer["Reason"]
