"""``hpj admin create-cluster`` as an admin types it."""

from __future__ import annotations

import json
import signal

import pytest

from hyperpod_jlab.admin.cluster_config import clusters
from hyperpod_jlab.aws.session import forget_session
from testbed.aws.example import example_account
from testbed.aws.timeline import Timeline
from tests.admin.cluster_files import EKS, SECOND, SLURM, document, spoiled
from tests.aws.conftest import KEY, REGION
from tests.aws.shell import Shell

CREATE = ("admin", "create-cluster", "--file", str(SLURM), "--provisioning", str(SECOND))


@pytest.fixture
def account(endpoint, monkeypatch):
    """The example's account, in which all happens 10,000 times as fast."""
    made = endpoint.account = example_account(REGION)
    made.timeline = Timeline(runs=True)
    made.ground.pace = 1e-4
    made.add_caller(KEY)
    monkeypatch.setattr(clusters, "POLL_S", 0.02)
    forget_session()
    return made


def named(account, name):
    return next(account.find(REGION, name), None)


def asked(endpoint, operation):
    return [call.given for call in endpoint.calls if call.action == f"sagemaker:{operation}"]


def test_a_cluster_is_made_and_followed(account, hpj):
    done = hpj(*CREATE, "--yes", "--wait").ok()
    assert "Creating" in done.out
    assert done.out.endswith("the cluster vision-slurm is created\n")
    cluster = named(account, "vision-slurm")
    assert (cluster.status, len(cluster.nodes)) == ("InService", 6)
    assert hpj("nodes", "--cluster", "vision-slurm", "--json").ok().json["nodes"]


def test_what_is_sent_is_the_file(account, endpoint, hpj):
    told = hpj(*CREATE, "--yes", "--json").ok().json
    assert told["arn"] == named(account, "vision-slurm").arn
    assert asked(endpoint, "CreateCluster") == [document(SLURM)]


def test_nothing_is_made_without_a_word_or_of_a_bad_file(account, endpoint, hpj, tmp_path):
    done = hpj(*CREATE, "--json")
    assert (done.code, done.error["code"]) == (2, "not_confirmed")
    bad = tmp_path / "bad.json"
    bad.write_text(json.dumps(spoiled(document(SLURM), "InstanceGroups.0.InstanceCount", 2)))
    done = hpj(*CREATE[:2], "--file", str(bad), "--provisioning", str(SECOND), "--yes")
    assert done.code == 2
    assert "must have InstanceCount 1" in done.out
    assert asked(endpoint, "CreateCluster") == []


def test_a_cluster_that_fails_says_why_and_where_the_logs_are(account, hpj):
    account.ground.failing["worker-group-1"] = "Lifecycle scripts did not run successfully."
    done = hpj(*CREATE, "--yes", "--wait")
    assert done.code == 1
    assert "RollingBack" in done.out
    assert "it is Failed: Lifecycle scripts did not run successfully." in done.err
    arn = named(account, "vision-slurm").arn
    assert f"/aws/sagemaker/Clusters/vision-slurm/{arn[-12:]}, streams LifecycleConfig/" in done.err


def test_json_with_wait_is_one_document_of_the_end(account, hpj):
    told = hpj("admin", "create-cluster", "--file", str(EKS), "--yes", "--wait", "--json").ok().json
    assert (told["status"], told["ok"], told["failure"]) == ("InService", True, None)


def test_ctrl_c_leaves_it_to_aws(account, endpoint, home, hpj):
    account.ground.pace = 1
    process = home.start(*CREATE, "--yes", "--wait", stdout=-1, stderr=-1)
    assert process.stdout is not None
    while b"Creating" not in process.stdout.readline():
        pass
    process.send_signal(signal.SIGINT)
    out = process.communicate(timeout=20)
    assert process.returncode == 130, out
    assert b"AWS continues, and vision-slurm will be created" in out[1]
    assert named(account, "vision-slurm").status == "Creating"


@pytest.mark.parametrize(("action", "code"), [("sagemaker:CreateCluster", 4), ("iam:PassRole", 4)])
def test_a_missing_right_is_named(account, endpoint, hpj, action, code):
    endpoint.faults.deny(action)
    done = hpj(*CREATE, "--yes", "--json")
    assert done.code == code
    assert done.error["detail"]["right"] == {"action": action}
    assert named(account, "vision-slurm") is None


def test_a_limit_that_only_aws_knows(account, endpoint, hpj):
    account.ground.quotas["ml.p5.48xlarge for cluster usage"] = 1
    done = hpj(*CREATE, "--yes", "--json")
    assert (done.code, done.error["code"]) == (2, "aws_limit")


def test_an_answer_that_was_lost_makes_no_second_cluster(account, endpoint, hpj):
    """boto3 sends it again, and AWS says that there is one: it is the same."""
    endpoint.faults.lost["sagemaker:CreateCluster"] = 1
    told = hpj(*CREATE, "--yes", "--json").ok().json
    assert told["arn"] == named(account, "vision-slurm").arn
    assert len(asked(endpoint, "CreateCluster")) == 2


def test_a_cluster_of_somebody_else_is_no_lost_answer(account, endpoint, hpj):
    account.add_cluster("vision-slurm", REGION)
    done = hpj(*CREATE, "--yes", "--json")
    assert (done.code, done.error["code"]) == (2, "conflict")


def test_aws_may_be_silent_for_a_while(account, endpoint, hpj):
    endpoint.faults.broken["sagemaker:DescribeCluster"] = 4
    hpj(*CREATE, "--yes", "--wait").ok()


def test_a_question_on_a_terminal(account, home, tmp_path):
    shell = Shell(home, tmp_path / "bin")
    code, screen = shell.run(*CREATE, typed="n\n")
    assert (code, named(account, "vision-slurm")) == (2, None), screen
    assert "Create the cluster vision-slurm with 6 instances" in screen
    code, screen = shell.run(*CREATE, typed="y\n")
    assert code == 0, screen
    assert "check its state: hpj show" in screen
    assert named(account, "vision-slurm") is not None
