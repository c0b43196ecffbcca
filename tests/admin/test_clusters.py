"""``hpj admin create-cluster``, ``update-cluster`` and ``delete-cluster`` as an admin types them."""

from __future__ import annotations

import json
import signal
import time

import pytest

from hyperpod_jlab.admin.cluster_config import clusters
from hyperpod_jlab.admin.cluster_config.changes import changes_of
from hyperpod_jlab.aws.session import forget_session
from testbed.aws.example import example_account
from testbed.aws.timeline import Timeline
from tests.admin.cluster_files import EKS, GONE, MANAGED, SECOND, SLURM, document, spoiled
from tests.aws.conftest import KEY, REGION
from tests.aws.shell import Shell
from tests.slurm.conftest import slurm, slurm_cluster, slurm_version

__all__ = ["slurm", "slurm_cluster", "slurm_version"]

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


@pytest.fixture
def made(account, hpj):
    """The example's cluster with Slurm, in service."""
    hpj(*CREATE, "--yes", "--wait").ok()
    return named(account, "vision-slurm")


def asked(endpoint, operation):
    return [call.given for call in endpoint.calls if call.action == f"sagemaker:{operation}"]


# ---------------------------------------------------------------------------------- create


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


def test_events_are_shown_where_aws_keeps_them(account, hpj):
    account.ground.failing["accelerated"] = "the GPU driver did not load"
    done = hpj("admin", "create-cluster", "--file", str(EKS), "--yes", "--wait").ok()
    assert "is being launched." in done.out
    assert "error: accelerated: Instance" in done.out
    assert "(the GPU driver did not load)" in done.out
    lines = [line[10:] for line in done.out.splitlines() if "Instance i-" in line]
    assert len(lines) == len(set(lines)), "an event is shown once"


def test_events_that_may_not_be_seen_are_said_once(account, endpoint, hpj):
    endpoint.faults.deny("sagemaker:ListClusterEvents")
    done = hpj("admin", "create-cluster", "--file", str(EKS), "--yes", "--wait").ok()
    assert done.err.count("you do not have the permission sagemaker:ListClusterEvents") == 1


def test_json_with_wait_is_one_document_of_the_end(account, hpj):
    told = hpj("admin", "create-cluster", "--file", str(EKS), "--yes", "--wait", "--json").ok().json
    assert (told["status"], told["ok"], told["failures"]) == ("InService", True, [])
    assert [(one["name"], one["current"]) for one in told["groups"]] == [("accelerated", 2)]


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


@pytest.mark.parametrize(
    ("action", "code"),
    [("sagemaker:CreateCluster", 4), ("iam:PassRole", 4)],
)
def test_a_missing_right_is_named(account, endpoint, hpj, action, code):
    endpoint.faults.deny(action)
    done = hpj(*CREATE, "--yes", "--json")
    assert done.code == code
    assert done.error["detail"]["right"] == {"action": action}
    assert named(account, "vision-slurm") is None


def test_a_limit_that_only_aws_knows(account, endpoint, hpj):
    endpoint.faults.deny("servicequotas:ListServiceQuotas")
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
    endpoint.faults.deny("sagemaker:DescribeCluster")
    account.add_cluster("vision-slurm", REGION)
    done = hpj(*CREATE, "--yes", "--json")
    assert (done.code, done.error["code"]) == (2, "conflict")


def test_aws_may_be_silent_for_a_while(account, endpoint, hpj, monkeypatch):
    real = clusters.ClusterWaiter._read_progress
    seen = []

    async def at(follower):
        seen.append(time.monotonic())
        if len(seen) == 1:
            endpoint.faults.broken["sagemaker:DescribeCluster"] = 4
        return await real(follower)

    monkeypatch.setattr(clusters.ClusterWaiter, "_read_progress", at)
    hpj(*CREATE, "--yes", "--wait").ok()


# ---------------------------------------------------------------------------------- update


def test_an_update_says_what_changes_and_sends_only_that(made, account, endpoint, hpj, tmp_path):
    wanted = spoiled(document(SLURM), "InstanceGroups.2.InstanceCount", 2)
    wanted = spoiled(wanted, "InstanceGroups.1", GONE)
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(wanted))
    words = ("admin", "update-cluster", "--file", str(path))
    done = hpj(*words, "--dry-run").ok()
    assert "- group worker-group-1: InstanceCount: 4 -> 2" in done.out
    assert "= group login-group: unchanged" in done.out
    done = hpj(*words, "--json")
    assert (done.code, done.error["code"]) == (2, "not_confirmed")
    assert "group worker-group-1 loses 2 instances" in done.error["message"]
    assert asked(endpoint, "UpdateCluster") == []

    hpj(*words, "--delete-group", "login-group", "--yes", "--wait").ok()
    (sent,) = asked(endpoint, "UpdateCluster")
    assert sent == {
        "ClusterName": "vision-slurm",
        "InstanceGroups": [wanted["InstanceGroups"][1]],
        "InstanceGroupsToDelete": ["login-group"],
    }
    assert {one.name: one.target for one in made.groups} == {
        "controller-machine": 1,
        "worker-group-1": 2,
    }
    assert hpj(*words).ok().out.endswith("there is nothing to change\n")


def test_an_update_that_is_rolled_back_has_failed(made, account, hpj, tmp_path):
    account.ground.failing["worker-group-1"] = "no capacity"
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(spoiled(document(SLURM), "InstanceGroups.2.InstanceCount", 6)))
    account.ground.pace = 1e-3
    done = hpj("admin", "update-cluster", "--file", str(path), "--yes", "--wait")
    assert done.code == 1
    assert "was not updated; it is InService: no capacity" in done.err
    assert sum(node.group == "worker-group-1" for node in made.nodes) == 4


def test_a_controller_is_not_offered_for_deletion(account, hpj, tmp_path):
    path = tmp_path / "changed.json"
    path.write_text(json.dumps({"ClusterName": "ml-cluster"}))
    lines = hpj("admin", "update-cluster", "--file", str(path)).ok().out.splitlines()
    assert "= group controller-machine: unchanged" in lines
    offered = "= group worker-group-1: unchanged (--delete-group worker-group-1 deletes it)"
    assert offered in lines
    words = ("--delete-group", "controller-machine", "--yes")
    assert hpj("admin", "update-cluster", "--file", str(path), *words).code == 2


def described(path):
    """What AWS tells of a cluster that was made of a file."""
    found = document(path)
    for one in found["InstanceGroups"]:
        one["CurrentCount"] = one["TargetCount"] = one.pop("InstanceCount")
        one["Status"] = "InService"
    return {**found, "ClusterArn": "arn", "ClusterStatus": "InService"}


@pytest.mark.parametrize(
    ("place", "value", "kinds"),
    [
        ("ClusterName", "vision-slurm-api", []),
        ("InstanceGroups.1.InstanceCount", 5, [("group worker-group-1", "changed")]),
        ("InstanceGroups.1.InstanceCount", 0, [("group worker-group-1", "smaller")]),
        ("InstanceGroups.1.InstanceGroupName", "other", [("group other", "new")]),
        ("InstanceGroups.1.ThreadsPerCore", 1, [("group worker-group-1", "changed")]),
        ("InstanceGroups.1.SlurmConfig.PartitionNames", ["a"], [("group worker-group-1", "changed")]),
        ("NodeRecovery", "None", [("cluster", "changed")]),
        ("NodeRecovery", GONE, []),
        ("Orchestrator.Slurm.SlurmConfigStrategy", "Merge", [("cluster", "changed")]),
        ("InstanceGroupsToDelete", ["worker-group-1"], [("group worker-group-1", "gone")]),
    ],
)  # fmt: skip
def test_changes(place, value, kinds):
    found = changes_of(spoiled(document(MANAGED), place, value), described(MANAGED))
    assert [(one.target, one.kind) for one in found.changes] == kinds
    assert set(found.request) - {"ClusterName"} == (
        {"InstanceGroupsToDelete"} if place == "InstanceGroupsToDelete" else
        {"InstanceGroups"} if kinds and kinds[0][0] != "cluster" else
        {place.split(".")[0]} if kinds else set()
    )  # fmt: skip


@pytest.mark.parametrize(
    ("place", "value", "delete", "level", "words"),
    [
        ("NodeRecovery", "none", (), "error", "is not a valid cluster node recovery"),
        ("NodeRecover", "None", (), "error", "unknown member 'NodeRecover'"),
        ("VpcConfig.Subnets", ["subnet-1"], (), "warning", "VpcConfig cannot be changed"),
        ("Tags", [], (), "warning", "an update does not change tags"),
        ("Orchestrator", {"Eks": {"ClusterArn": "x" * 30}}, (), "error", "the cluster runs on Slurm, but the file says Eks"),
        ("InstanceGroups", GONE, ("worker-group-2",), "error", "the cluster has no instance group worker-group-2"),
        ("InstanceGroups", GONE, ("controller-machine",), "error", "is the Slurm controller and cannot be deleted"),
        ("InstanceGroups.1.InstanceCount", 3, ("worker-group-1",), "error", "is both in InstanceGroups and in the list of groups to delete"),
        ("InstanceGroups.1.InstanceCount", "3", (), "error", "write it without quotes"),
        ("InstanceGroups.1", 7, (), "error", "must be an object, not a number"),
        ("InstanceGroups", {}, (), "ok", ""),
    ],
)  # fmt: skip
def test_bad_changes(place, value, delete, level, words):
    found = changes_of(spoiled(document(MANAGED), place, value), described(MANAGED), delete)
    said = [f"{one.message} {one.hint or ''}" for one in found.checks if one.level == level]
    assert level == "ok" or any(words in one for one in said), found.checks


# ---------------------------------------------------------------------------------- delete


def test_a_cluster_is_deleted_by_its_name(made, account, home, hpj, tmp_path):
    shell = Shell(home, tmp_path / "bin")
    for words in (("--yes", "vision-slum"), ("--json",)):
        done = hpj("admin", "delete-cluster", "vision-slurm", *words)
        assert done.code == 2
    assert made.status == "InService"
    for typed in ("y\n", "\n"):
        code, screen = shell.run("admin", "delete-cluster", "vision-slurm", typed=typed)
        assert (code, made.status) == (2, "InService"), screen
        assert "will be deleted, with 6 instances" in screen
        assert "nothing was deleted" in screen
    line = ("admin", "delete-cluster", "vision-slurm")
    code, screen = shell.run(*line, "--wait", typed="vision-slurm\n")
    assert code == 0, screen
    assert "kept: lifecycle scripts at s3://sagemaker-hyperpod-scripts/slurm" in screen
    assert screen.endswith("the cluster vision-slurm is deleted\n")
    assert named(account, "vision-slurm") is None
    assert hpj("admin", "delete-cluster", "vision-slurm", "--yes", "vision-slurm").code == 3


def test_a_question_on_a_terminal(account, home, tmp_path):
    shell = Shell(home, tmp_path / "bin")
    code, screen = shell.run(*CREATE, typed="n\n")
    assert (code, named(account, "vision-slurm")) == (2, None), screen
    assert "Create the cluster vision-slurm with 6 instances" in screen
    code, screen = shell.run(*CREATE, typed="y\n")
    assert code == 0, screen
    assert "check its state: hpj show" in screen
    assert named(account, "vision-slurm") is not None


def test_what_runs_there_is_named(account, home, hpj):
    home.config.write_text(
        home.config.read_text()
        + '\n[clusters.ours]\norchestrator = "slurm"\nhyperpod = "ml-cluster"\n'
        + 'transport = "ssh"\nlogin_nodes = ["127.0.0.1:1"]\n'
    )
    done = hpj("admin", "delete-cluster", "ml-cluster")
    assert "running jobs on ours are unknown" in done.out
    assert "kept: the file system fs-0123456789abcdef0 with all its data" in done.out


def test_jobs_of_a_real_slurm_are_named(slurm, account, home, hpj, monkeypatch):
    for name, value in slurm.environment.items():
        monkeypatch.setenv(name, value)
    slurm.exec("ctl", "sbatch", "--job-name", "train", "--wrap", "sleep 300")
    home.config.write_text(
        '[clusters.ours]\norchestrator = "slurm"\nhyperpod = "ml-cluster"\ntransport = "here"\n'
    )
    done = hpj("admin", "delete-cluster", "ml-cluster")
    assert "running or waiting jobs on ours: 1\n" in done.out
    assert " of root: train (" in done.out
    assert named(account, "ml-cluster").status == "InService"


def test_another_one_of_a_name_that_is_free_again(made, account, hpj):
    hpj("admin", "delete-cluster", "vision-slurm", "--yes", "vision-slurm", "--wait").ok()
    hpj(*CREATE, "--yes", "--wait").ok()
    again = named(account, "vision-slurm")
    assert (again.status, len(again.nodes), again is made) == ("InService", 6, False)


def test_one_that_is_being_deleted_already(account, hpj):
    account.ground.pace = 1
    words = ("admin", "delete-cluster", "first-try", "--yes", "first-try", "--json")
    hpj(*words).ok()
    done = hpj(*words)
    assert (done.code, done.error["code"]) == (2, "conflict")


@pytest.mark.parametrize("name", ["-x", "a b", "a/b", "x" * 64, ""])
def test_names_that_are_none(account, endpoint, hpj, name):
    done = hpj("admin", "delete-cluster", "--yes", "x", "--json", "--", name)
    assert (done.code, endpoint.calls) == (2, [])
