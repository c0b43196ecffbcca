"""Checks of a cluster's configuration: what each bad input is told, that none hides another, and what AWS is asked."""

from __future__ import annotations

import json

import pytest

from hyperpod_jlab.admin.cluster_config.checks import check
from hyperpod_jlab.admin.cluster_config.document import ClusterConfigFiles
from hyperpod_jlab.aws.session import forget_session
from testbed.aws.example import example_account
from testbed.aws.example_ground import PUBLIC_SUBNET
from tests.admin.cluster_files import EKS, GONE, MANAGED, SECOND, SLURM, document, spoiled
from tests.aws.conftest import KEY, REGION

FIRST = "InstanceGroups.0"
WORKER = "InstanceGroups.2"
LONG = "a" * 64


def messages(report, level="error"):
    return [f"{one.path}: {one.message} {one.hint or ''}" for one in report.with_level(level)]


@pytest.mark.parametrize("paths", [(SLURM, SECOND), (MANAGED,), (EKS,)], ids=str)
def test_the_examples_are_good_as_far_as_files_say(paths):
    first, *second = map(document, paths)
    report = check(ClusterConfigFiles(first, next(iter(second), None)))
    assert messages(report) == messages(report, "warning") == []


BAD = [
    # the schema, by botocore's model
    ("InstanceGroup", [], "InstanceGroup: unknown member 'InstanceGroup' did you mean InstanceGroups?"),
    (f"{FIRST}.InstanceTyp", "x", "did you mean InstanceType?"),
    (f"{FIRST}.InstanceType", "ml.p5.48xlrge", "did you mean ml.p5.48xlarge?"),
    (f"{FIRST}.InstanceType", "c5.xlarge", "did you mean ml.c5.xlarge?"),
    (f"{FIRST}.InstanceType", GONE, "has no instance type"),
    (f"{FIRST}.InstanceCount", "1", "must be a number, not text write it without quotes: 1"),
    (f"{FIRST}.InstanceCount", 4.5, "InstanceGroups[0].InstanceCount: must be a whole number, not 4.5"),
    (f"{FIRST}.InstanceCount", True, "must be a number, not true or false"),
    (f"{FIRST}.InstanceCount", -1, "it is -1, but the minimum is 0"),
    (f"{WORKER}.InstanceCount", 7000, "the maximum is 6758"),
    (f"{FIRST}.InstanceCount", GONE, "InstanceCount is missing"),
    (f"{FIRST}.ExecutionRole", GONE, "ExecutionRole is missing"),
    (f"{FIRST}.ExecutionRole", "HyperPodExecutionRole", "does not have the form of a role arn"),
    (f"{FIRST}.ThreadsPerCore", 3, "the maximum is 2"),
    (f"{FIRST}.InstanceGroupName", "a_b", "does not have the form"),
    (f"{FIRST}.InstanceGroupName", LONG, "it has 64 characters, but the maximum is 63"),
    ("ClusterName", "-x", "does not have the form of a cluster name"),
    ("ClusterName", GONE, "ClusterName is missing"),
    ("NodeRecovery", "automatic", "did you mean Automatic?"),
    ("NodeRecovery", None, "must be text, not null"),
    ("InstanceGroups", {}, "must be a list, not an object"),
    ("InstanceGroups", [], "it has 0 items, but the minimum is 1"),
    ("InstanceGroups.0", "controller", "must be an object, not text"),
    ("VpcConfig.SecurityGroupIds", [f"sg-{n}" for n in range(6)], "the maximum is 5"),
    ("Tags", [{"Key": "team"}], "Value is missing"),
    ("Tags", [{"Key": "team!", "Value": "x"}], "does not have the form"),
    (f"{WORKER}.OnStartDeepHealthChecks", ["Stress"], "InstanceStress"),
    (f"{FIRST}.InstanceStorageConfigs.0.EbsVolumeConfig.VolumeSizeInGB", 20000, "the maximum is 16384"),
    # what is not filled in
    (f"{FIRST}.ExecutionRole", "${ROLE}", "is a placeholder that is not filled in"),
    ("VpcConfig.Subnets", ["<subnet>"], "VpcConfig.Subnets[0]: '<subnet>' is a placeholder that is not filled in"),
    # groups
    (f"{FIRST}.InstanceCount", 2, "is the controller and must have InstanceCount 1, not 2"),
    (f"{FIRST}.InstanceGroupName", "controller", "the cluster has no instance group controller-machine"),
    (f"{WORKER}.InstanceGroupName", "login-group", "2 instance groups have the same name login-group"),
    # scripts and networks
    (f"{FIRST}.LifeCycleConfig.SourceS3Uri", "mine/scripts", "SourceS3Uri: 'mine/scripts' does not have the form"),
    (f"{FIRST}.LifeCycleConfig.OnCreate", GONE, "have no OnCreate"),
    (f"{FIRST}.LifeCycleConfig.OnCreate", "/on_create.sh", "OnCreate must be a script's name below"),
]  # fmt: skip


@pytest.mark.parametrize(("place", "value", "words"), BAD)
def test_bad_first_files(place, value, words):
    documents = ClusterConfigFiles(spoiled(document(SLURM), place, value), document(SECOND))
    found = messages(check(documents))
    assert any(words in one for one in found), found


BAD_SECOND = [
    ("controller_group", GONE, "controller_group is missing"),
    ("controller_group", True, "controller_group must be text, not true"),
    ("login_group", ["login-group"], 'login_group must be text, not ["login-group"]'),
    ("fsx_dns_name", "fs-01.efs.us-west-2.amazonaws.com", "is an EFS file system"),
    ("fsx_dns_name", "fs-0123456789abcdef0.efs.us-west-2.amazonaws.com", "is an EFS file system"),
    ("controller_group", "controller", "add it as controller_group or to worker_groups"),
    ("controller_group", "controller", "the cluster has no instance group controller did you mean controller-machine?"),
    ("login_group", "controller-machine", "is both the controller and the login group"),
    ("workload_manager", "pbs", "workload_manager is 'pbs'; it must be slurm"),
    ("worker_groups", [], "there is no worker group"),
    ("worker_groups", "x", "worker_groups must be a list"),
    ("worker_groups.0.instance_group_name", "worker-group-2", "does not name the group worker-group-1"),
    ("worker_groups.0.instance_group_name", GONE, "instance_group_name is missing"),
    ("worker_groups.0.partition_name", GONE, "has no partition_name"),
    ("worker_groups.0.partition_name", "gpu nodes", "is not a valid name of a Slurm partition"),
    ("worker_groups.0.partition_name", "DEFAULT", "is a reserved word of Slurm"),
    ("worker_groups.+", {"instance_group_name": "worker-group-1", "partition_name": "b"}, "is listed twice"),
    ("fsx_mountname", GONE, "fsx_mountname is missing"),
    ("fsx_mountname", "${MOUNT}", "is a placeholder that is not filled in"),
]  # fmt: skip


@pytest.mark.parametrize(("place", "value", "words"), BAD_SECOND)
def test_bad_second_files(place, value, words):
    documents = ClusterConfigFiles(document(SLURM), spoiled(document(SECOND), place, value))
    found = messages(check(documents))
    assert any(words in one for one in found), found


@pytest.mark.parametrize(
    ("path", "place", "value", "words"),
    [
        (MANAGED, "InstanceGroups.1.SlurmConfig", GONE, "has no SlurmConfig, but other groups have one"),
        (MANAGED, f"{FIRST}.SlurmConfig.NodeType", "Compute", "exactly one group must be the controller, but none is"),
        (MANAGED, "InstanceGroups.1.SlurmConfig.NodeType", "Controller", "but controller-machine, worker-group-1 are"),
        (MANAGED, "Orchestrator.Eks", {"ClusterArn": "arn:aws:eks:us-west-2:111122223333:cluster/training"}, "Orchestrator: Orchestrator has both Eks and Slurm, but only one is allowed"),
        (MANAGED, f"{FIRST}.SlurmConfig.PartitionNames", ["x"], "but is not a Compute group"),
        (MANAGED, "Orchestrator.Slurm.SlurmConfigStrategy", "managed", "did you mean Managed?"),
        (EKS, "VpcConfig", GONE, "a cluster on EKS needs VpcConfig"),
        (EKS, f"{FIRST}.SlurmConfig", {"NodeType": "Compute"}, "has a SlurmConfig, but the cluster is on EKS"),
        (EKS, "Orchestrator.Eks.ClusterArn", GONE, "ClusterArn is missing"),
        (SLURM, "NodeRecovery", "Automatic", "no group is marked as the controller"),
    ],
)  # fmt: skip
def test_bad_files_of_other_kinds(path, place, value, words):
    found = messages(check(ClusterConfigFiles(spoiled(document(path), place, value))))
    assert any(words in one for one in found), found


def test_both_ways_to_say_what_groups_are_are_refused():
    found = messages(check(ClusterConfigFiles(document(MANAGED), document(SECOND))))
    assert any("remove one of them" in one for one in found)


def test_no_check_hides_another():
    """W26: in AWS' own script the last check hides the earlier ones."""
    config = document(SLURM)
    for place, value in (
        ("ClusterName", "-x"),
        (f"{FIRST}.InstanceCount", 2),
        (f"{WORKER}.ThreadsPerCore", 9),
        ("InstanceGroups.1.LifeCycleConfig.OnCreate", "/on_create.sh"),
    ):
        config = spoiled(config, place, value)
    second = spoiled(document(SECOND), "workload_manager", "pbs")
    report = check(ClusterConfigFiles(config, second))
    assert len(report.with_level("error")) == 5
    assert {one.check for one in report.with_level("error")} == {"schema", "groups", "scripts"}


# ---------------------------------------------------------------------------------- with AWS


@pytest.fixture
def account(endpoint):
    endpoint.account = example_account(REGION)
    endpoint.account.add_caller(KEY)
    forget_session()
    return endpoint.account


@pytest.fixture
def told(hpj, tmp_path):
    """What is said of files: the exit code and the verdicts."""

    def validate(config, second=None, *words):
        paths = []
        for name, one in (("cluster-config.json", config), ("second.json", second)):
            if one is not None:
                (tmp_path / name).write_text(json.dumps(one))
                paths.append(str(tmp_path / name))
        done = hpj("admin", "validate", *paths, "--json", *words)
        return done.code, done.json["checks"]

    return validate


def of(verdicts, level):
    return [f"{one['path']}: {one['message']} {one['hint'] or ''}" for one in verdicts if one["level"] == level]  # fmt: skip


@pytest.mark.parametrize("paths", [(SLURM, SECOND), (MANAGED,), (EKS,)], ids=str)
def test_the_examples_are_good(account, told, paths):
    code, verdicts = told(*map(document, paths))
    assert code == 0
    assert {one["level"] for one in verdicts} == {"ok"}


GROUP, SERVERS, IN = "sg-0c1a5e5000000eee5", "sg-0f5e5000000000cc3", "subnet-0123456789abcdef0"
BUCKET = "sagemaker-hyperpod-scripts"


def subnet_of(account):
    return account.networks[REGION].subnets[IN]


def group_of(account, name=GROUP):
    return account.networks[REGION].groups[name]


def lustre_of(account):
    return account.file_systems[REGION][0]


SPOIL = {
    "few addresses": lambda one: setattr(subnet_of(one), "free", 120),
    "other VPC": lambda one: setattr(subnet_of(one), "vpc", "vpc-0fedcba9876543210"),
    "public": lambda one: setattr(subnet_of(one), "gateway", "igw-0aaaaaaaaaaaaaaaa"),
    "no self-reference in": lambda one: group_of(one).inbound.pop(0),
    "no self-reference out": lambda one: group_of(one).outbound.pop(0),
    "servers closed": lambda one: group_of(one, SERVERS).inbound.clear(),
    "mount name": lambda one: setattr(lustre_of(one), "mount_name", "abcdefgh"),
    "creating": lambda one: setattr(lustre_of(one), "lifecycle", "CREATING"),
    "no file system": lambda one: one.file_systems[REGION].clear(),
    "no bucket": lambda one: one.ground.buckets.clear(),
    "no script": lambda one: one.ground.buckets.update({BUCKET: ["slurm/on_create.py"]}),
    "no folder": lambda one: one.ground.buckets.update({BUCKET: ["other/on_create.sh"]}),
}
"""What may not be good in the account."""


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("few addresses", "6 instances need 130 addresses, but the subnets have 120 free"),
        ("other VPC", "is in vpc-0123456789abcdef0, but the subnets are in vpc-0fedcba9876543210"),
        ("public", "is a public subnet: its routes go to igw-0aaaaaaaaaaaaaaaa"),
        ("no self-reference in", "allows all traffic of its own members in, which EFA on ml.p5.48xlarge needs"),
        ("no self-reference out", "allows all traffic of its own members out, which EFA on ml.p5.48xlarge needs"),
        ("servers closed", "has no inbound rule for TCP 988, 1018-1023 from sg-0c1a5e5000000eee5"),
        ("mount name", "the mount name of fs-0123456789abcdef0 is abcdefgh, not x5kjbbmv"),
        ("creating", "fs-0123456789abcdef0 is CREATING"),
        ("no file system", "fs-0123456789abcdef0"),
        ("no bucket", "The specified bucket does not exist"),
        ("no script", "on_create.sh not found at s3://sagemaker-hyperpod-scripts/slurm did you mean on_create.py?"),
        ("no folder", "no files found at s3://sagemaker-hyperpod-scripts/slurm"),
    ],
)  # fmt: skip
def test_bad_accounts(account, told, what, words):
    SPOIL[what](account)
    code, verdicts = told(document(SLURM), document(SECOND))
    assert code == 2
    assert any(words in one for one in of(verdicts, "error")), of(verdicts, "error")


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        ("VpcConfig.Subnets", ["subnet-0bbbbbbbbbbbbbbbb"], "subnet subnet-0bbbbbbbbbbbbbbbb not found"),
        ("VpcConfig.Subnets", [PUBLIC_SUBNET], "is a public subnet"),
        ("VpcConfig.SecurityGroupIds", ["sg-0bbbbbbbbbbbbbbbb"], "security group sg-0bbbbbbbbbbbbbbbb not found"),
    ],
)  # fmt: skip
def test_what_names_things_that_are_not_there(account, told, place, value, words):
    code, verdicts = told(spoiled(document(SLURM), place, value), document(SECOND))
    assert code == 2
    assert any(words in one for one in of(verdicts, "error")), of(verdicts, "error")


def test_warnings_and_what_is_not_known_are_good_unless_strict(account, told, endpoint):
    given = spoiled(document(SECOND), "worker_groups.0.partition_name", "dev")
    code, verdicts = told(document(SLURM), given)
    assert code == 0
    assert "HyperPod itself creates a partition dev" in of(verdicts, "warning")[0]
    endpoint.faults.deny("ec2:DescribeSubnets")
    code, verdicts = told(document(SLURM), document(SECOND))
    assert code == 0
    assert "you do not have the permission ec2:DescribeSubnets" in of(verdicts, "unknown")[0]
    assert told(document(SLURM), document(SECOND), "--strict")[0] == 2


def test_an_error_is_told_though_nothing_else_can_be_asked(account, told, endpoint):
    for action in ("ec2:DescribeSubnets", "s3:ListBucket"):  # fmt: skip
        endpoint.faults.deny(action)
    code, verdicts = told(spoiled(document(SLURM), f"{FIRST}.InstanceCount", 2), document(SECOND))
    assert code == 2
    assert len(of(verdicts, "error")) == 1
    unknown = [one["check"] for one in verdicts if one["level"] == "unknown"]
    # Nothing is called good that needs the subnets.
    assert unknown == ["scripts", "storage", "network"]


def test_what_is_not_there_is_not_called_good(account, told):
    config = spoiled(document(EKS), f"{FIRST}.LifeCycleConfig", GONE)
    said = {one["check"]: one["message"] for one in told(config)[1] if one["level"] == "ok"}
    assert said["storage"] == "the configuration names no file system"
    good = {one["check"] for one in told({})[1] if one["level"] == "ok"}
    assert good == {"files", "scripts", "storage"}


def test_offline_asks_nobody(account, endpoint, told):
    code, verdicts = told(document(SLURM), document(SECOND), "--offline")
    assert (code, endpoint.calls) == (0, [])
    assert len(of(verdicts, "unknown")) == 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is not valid JSON: line 1, column 2"),
        ("[]", "must be a JSON object"),
        ('{"ClusterName": "a", "ClusterName": "b"}', "duplicate name ClusterName"),
        ('{"InstanceGroups": NaN}', "NaN is not a number"),
        ("\xff\xfe", "is not UTF-8 text"),
        ("[" * 100000, "contains JSON that AWS does not accept"),
        (None, "cannot be read: No such file"),
    ],
)
def test_files_that_are_none(hpj, no_aws, tmp_path, text, words):
    path = tmp_path / "cluster-config.json"
    if text is not None:
        path.write_bytes(text.encode("latin-1"))
    done = hpj("admin", "validate", str(path), "--offline", "--json")
    assert (done.code, done.error["code"]) == (2, "bad_file")
    assert words in done.error["message"]


def test_as_text(account, hpj):
    done = hpj("admin", "validate", str(SLURM))
    assert done.code == 2
    assert "error    groups   InstanceGroups: no group is marked as the controller" in done.out
    assert done.err.startswith("error: the configuration is not valid: 1 finding")
    assert hpj("admin", "validate", str(EKS)).ok().out.endswith("the configuration is valid\n")
