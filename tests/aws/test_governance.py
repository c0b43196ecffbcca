"""Task governance: ``hpj quotas`` and REST, against the testbed's AWS."""

from __future__ import annotations

import botocore.session
import pytest

from hyperpod_jlab.core.cluster import Queue, Quota
from hyperpod_jlab.core.errors import UnreachableError
from hyperpod_jlab.engines.kubernetes.tables.view import KubernetesTables
from hyperpod_jlab.features.governance.models import STATES, TeamQuota, with_use
from testbed.aws.example import example_account
from testbed.aws.state import ComputeQuota
from tests.aws.conftest import REGION

LISTS = ("sagemaker:ListComputeQuotas", "sagemaker:ListClusterSchedulerConfigs")
ON_EKS = '[clusters.lab]\norchestrator = "kubernetes"\nhyperpod = "research-eks"\n'
GPUS = Quota("ml.g5.8xlarge", "nvidia.com/gpu", nominal=4, used=5, borrowed=1, free=0, most=6)
QUEUES = [
    Queue("main", "up", cluster_queue="hyperpod-ns-vision-clusterqueue", quotas=(GPUS,), running=3),
    Queue("side", "up", cluster_queue="hyperpod-ns-vision-clusterqueue", quotas=(GPUS,), waiting=2),
    Queue("other", "up", cluster_queue="own-clusterqueue", running=9),
]


@pytest.fixture
def example(endpoint):
    endpoint.account = example_account(REGION)
    return endpoint


@pytest.fixture
def kueue(home, monkeypatch):
    """The cluster in the configuration, with Kueue's answer, or why there is none."""
    home.config.write_text(ON_EKS)
    answers: list[object] = [QUEUES]

    async def answer(self):
        if isinstance(answers[0], Exception):
            raise answers[0]
        return answers[0]

    monkeypatch.setattr(KubernetesTables, "queues", answer)
    return answers


@pytest.fixture
def told(hpj):
    def ask(*words):
        return hpj("quotas", "--cluster", "research-eks", "--json", *words).ok().json

    return ask


def arn_of(endpoint, name):
    return next(one.arn for one in endpoint.account.clusters[REGION] if one.name == name)


def test_all_that_aws_tells(example, told):
    found = told()
    robots, speech, vision = found["quotas"]
    assert (vision["team"], vision["state"], vision["weight"]) == ("vision", "active", 70)
    assert (vision["allocated"][0]["instance_type"], vision["allocated"][0]["count"]) == (*("ml.g5.8xlarge", 4),)
    assert (speech["allocated"][0]["accelerators"], speech["allocated"][0]["cpus"]) == (1, 16.0)
    assert (vision["sharing"], vision["borrow_percent"]) == ("LendAndBorrow", 50)
    assert (vision["namespace"], vision["queue"]) == ("hyperpod-ns-vision", "hyperpod-ns-vision-localqueue")
    assert (robots["state"], robots["status"], robots["borrow_percent"]) == (*("failed", "CreateFailed", None),)
    assert "no instance group" in robots["reason"]
    (policy,) = found["policies"]
    assert (policy["fair_share"], policy["idle_sharing"]) == ("Enabled", "Enabled")
    assert [(one["name"], one["weight"], one["label"]) for one in policy["priorities"]] == [
        ("inference", 100, "inference-priority"),
        ("training", 80, "training-priority"),
        ("experiments", 20, "experiments-priority"),
    ]
    assert "its usage is unknown" in found["notes"][0]
    # Why something failed is asked for only where something did.
    assert [call.action for call in example.calls].count("sagemaker:DescribeComputeQuota") == 1


def test_the_tables(example, hpj, kueue):
    done = hpj("quotas", "--cluster", "research-eks").ok()
    lines = done.out.splitlines()
    assert lines[0].split()[:4] == ["TEAM", "STATE", "ALLOCATED", "IN"]
    assert "nvidia.com/gpu 5/4 (1 borrowed)" in lines[3]
    assert "1 accelerators 16 vCPUs" in lines[2]
    assert "fair share enabled" in done.out
    assert "kueue.x-k8s.io/priority-class: inference-priority" in done.out
    assert done.err == ""


def test_many_quotas_come_in_pages_and_only_the_clusters_own(example, told):
    arn, other = arn_of(example, "research-eks"), arn_of(example, "ml-cluster")
    example.account.quotas[REGION] = [
        ComputeQuota(f"{number:012d}", f"q{number:03d}", arn, {}, {"TeamName": f"t{number}"}) for number in range(230)
    ] + [ComputeQuota("z" * 12, "of-another", other, {}, {"TeamName": "z"})]
    found = told()["quotas"]
    assert [one["name"] for one in found] == [f"q{number:03d}" for number in range(230)]
    assert [call.action for call in example.calls].count(LISTS[0]) == 3


def test_words_that_are_newer_than_this(example, told):
    quota = example.account.quotas[REGION][0]
    quota.activation = "Disabled"
    found = {one["team"]: one for one in told()["quotas"]}
    assert found["vision"]["state"] == "disabled"
    assert TeamQuota("i", "n", "t", "Pausing").state == "Pausing"


@pytest.mark.parametrize(("denied", "left"), [(LISTS[0], "policies"), (LISTS[1], "quotas")])
def test_without_one_right_the_rest_is_there(example, told, denied, left):
    example.faults.deny(denied)
    found = told()
    assert found[left]
    assert not found["quotas" if left == "policies" else "policies"]
    assert denied in found["notes"][0]


def test_without_both_it_is_refused(example, hpj):
    for one in LISTS:
        example.faults.deny(one)
    done = hpj("quotas", "--cluster", "research-eks", "--json")
    assert (done.code, done.error["code"]) == (4, "missing_right")


def test_rights_on_single_ones(example, told):
    example.faults.deny("sagemaker:DescribeComputeQuota")
    example.faults.deny("sagemaker:DescribeClusterSchedulerConfig")
    found = told()
    assert len(found["quotas"]) == 3
    assert found["policies"][0]["priorities"] == []
    assert "the reason why quotas failed is unknown" in found["notes"][0]
    assert "sagemaker:DescribeClusterSchedulerConfig" in found["notes"][1]


def test_a_cluster_without_any(example, told):
    example.account.quotas.clear()
    example.account.policies.clear()
    assert "an administrator creates them" in told()["notes"][0]


def test_slurm_has_none(example, hpj):
    done = hpj("quotas", "--cluster", "ml-cluster", "--json")
    assert (done.code, done.error["code"]) == (2, "no_governance")
    assert hpj("quotas", "--cluster", "nope", "--json").error["code"] == "not_found"


def test_what_is_in_use(example, told, kueue):
    vision = told()["quotas"][2]
    assert (vision["running"], vision["waiting"]) == (3, 2)
    assert vision["used"][0]["borrowed"] == 1
    assert told()["quotas"][1]["used"] is None
    kueue[0] = UnreachableError("nobody is there")
    found = told()
    assert found["quotas"][2]["used"] is None
    assert "nobody is there" in found["notes"][0]


def test_the_join():
    known = TeamQuota("i", "n", "vision", "Created")
    assert with_use([known], []) == (known,)
    assert with_use([known], QUEUES[2:]) == (known,)
    (found,) = with_use([known], QUEUES)
    assert (found.used, found.running, found.waiting) == ((GPUS,), 3, 2)


def test_every_state_of_aws_has_a_word():
    model = botocore.session.Session().get_service_model("sagemaker")
    assert STATES.keys() == set(model.shape_for("SchedulerResourceStatus").enum)
