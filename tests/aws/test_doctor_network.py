"""``hpj doctor`` from the domain to the mount: what is wrong in the network is named, with the command that mends it."""

from __future__ import annotations

import json
import shlex

import botocore.session
import pytest

from testbed.aws.example import APPS, FILE_SYSTEM, INBOUND_NFS, NODES, SERVERS
from testbed.aws.network import NetworkInterface, open_to
from testbed.aws.state import lustre_at
from tests.aws.conftest import REGION
from tests.aws.doctor_space import *  # noqa: F403
from tests.aws.doctor_space import configure, seen
from tests.aws.shell import Shell

NETWORK = ("security-groups", "interfaces", "network-acls", "routes")
WITHOUT_SLURM = {"nodes", "controller", "identity", "queue", "cluster"}
LOST = {
    "ec2:DescribeNetworkInterfaces": set(NETWORK),
    "ec2:DescribeSubnets": {"network-acls", "routes"},
    "fsx:DescribeFileSystems": set(NETWORK),
    "sagemaker:DescribeDomain": {"domain", "idle-shutdown"},
    "sagemaker:DescribeUserProfile": {"profile", "idle-shutdown"},
    "sagemaker:DescribeSpace": {"space", "profile", "idle-shutdown"},  # whose profile it is, the space says
    "sagemaker:ListClusters": {*("hyperpod", "names", "run-as", "mounts-missing", "shared"), *NETWORK},
}
"""What is not known without a right, where it is more than one check."""


def test_a_domain_where_all_is_well(endpoint, space, checks):
    found = checks()
    for key in ("domain", "profile", "rights", *NETWORK, "mount", "mounts-missing", "shared"):
        assert found[key]["level"] == "ok", found[key]
    assert "VPC-only" in found["domain"]["evidence"]
    assert f"may mount {FILE_SYSTEM} (its /alice)" in found["profile"]["evidence"]
    assert "the cluster ml-cluster and" in found["security-groups"]["evidence"]
    assert "the domain d-example and" in found["security-groups"]["evidence"]
    assert f"{REGION}a" in found["interfaces"]["evidence"]
    assert found["shared"]["about"] == "ml"
    assert "/fsx/alice on the nodes" in found["shared"]["evidence"]
    asked = [call.action for call in endpoint.calls]
    # Each thing is asked for once, but for what the rights are tried with.
    assert asked.count("sagemaker:DescribeDomain") == asked.count("sts:GetCallerIdentity") == 1
    assert asked.count("ec2:DescribeNetworkInterfaces") == 1


def test_the_missing_rule_is_named_with_the_command_that_adds_it(network, checks):
    network.groups[SERVERS].inbound = open_to(SERVERS, APPS)
    check = checks()["security-groups"]
    assert check["level"] == "fail"
    assert f"{SERVERS} has no inbound rule for TCP 988, 1018-1023 from {NODES}" in check["evidence"]
    assert check["who"] == "admin"
    words = shlex.split(check["fix"])
    assert words[:3] == ["aws", "ec2", "authorize-security-group-ingress"]
    given = dict(zip(words[3:7:2], words[4:8:2], strict=True))
    assert given == {"--region": REGION, "--group-id": SERVERS}
    assert all(f"GroupId={NODES}" in rule for rule in words[8:])
    apply(network, words[8:])
    assert checks()["security-groups"]["level"] == "ok"


def apply(network, rules):
    """Do what the command would: add the rules, which are in the AWS CLI's short form."""
    for rule in rules:
        plain, pairs = rule.split(",UserIdGroupPairs=[")
        given = dict(part.split("=") for part in plain.split(","))
        group = pairs.removeprefix("{GroupId=").removesuffix("}]")
        network.groups[SERVERS].inbound.append(
            {
                "IpProtocol": given["IpProtocol"],
                "FromPort": int(given["FromPort"]),
                "ToPort": int(given["ToPort"]),
                "UserIdGroupPairs": [{"GroupId": group}],
            }
        )


def test_what_is_mounted_all_the_same_is_a_warning(network, checks):
    network.groups[SERVERS].inbound = open_to(SERVERS, NODES)
    level, words = seen(checks()["security-groups"])
    assert level == "warn"
    assert "the domain d-example" in words
    assert "it is mounted, but" in words


def test_what_only_servers_begin_is_a_warning(network, checks):
    network.groups[NODES].inbound = []
    level, words = seen(checks()["security-groups"])
    assert level == "warn"
    assert f"{NODES} has no inbound rule" in words


def test_a_file_system_in_another_vpc_or_subnet(endpoint, space, checks):
    space.mount(None)
    (file_system,) = endpoint.account.file_systems[REGION]
    file_system.subnets = ["subnet-0000000000000dead"]
    level, words = seen(checks()["interfaces"])
    assert level == "fail"
    assert "they share no subnet" in words
    fix = checks()["interfaces"]["fix"]
    assert fix.startswith(f"aws sagemaker update-domain --region {REGION} --domain-id d-example ")
    assert fix.endswith(" subnet-0000000000000dead")
    file_system.vpc = "vpc-0000000000000dead"
    check = checks()["interfaces"]
    assert "is in vpc-0000000000000dead" in check["evidence"]
    assert check["who"] == "admin"


def test_a_cluster_in_another_vpc(network, checks):
    network.groups[NODES].vpc = "vpc-0000000000000dead"
    check = checks()["interfaces"]
    assert (check["level"], check["who"]) == ("warn", "admin")
    assert "the cluster ml-cluster is in vpc-0000000000000dead" in check["evidence"]


def test_an_interface_without_studios_group(endpoint, space, network, checks):
    for one in network.interfaces.values():
        one.groups = [SERVERS]
    check = checks()["interfaces"]
    assert check["level"] == "warn"  # it is mounted, so this is for the next start
    assert "security-group-for-inbound-nfs-d-example" in check["evidence"]
    assert "aws ec2 modify-network-interface-attribute" in check["fix"]
    assert SERVERS in check["fix"]
    space.mount(None)
    assert checks()["interfaces"]["level"] == "fail"
    for one in network.interfaces.values():
        one.groups = [SERVERS, INBOUND_NFS]
    assert checks()["interfaces"]["level"] == "ok"


def test_interfaces_that_are_gone(endpoint, space, network, checks):
    (file_system,) = endpoint.account.file_systems[REGION]
    network.add(NetworkInterface("eni-0000000000000dead", [SERVERS], "10.0.1.9", status="available"))
    file_system.interfaces.append("eni-0000000000000dead")
    level, words = seen(checks()["interfaces"])
    assert (level, "eni-0000000000000dead" in words) == ("fail", True)
    file_system.interfaces.append("eni-00000000000000bad")
    check = checks()["interfaces"]
    assert check["level"] == "fail"
    assert "eni-00000000000000bad" in check["evidence"]


@pytest.mark.parametrize(
    ("action", "key"),
    [
        ("sagemaker:DescribeDomain", "domain"),
        ("sagemaker:DescribeUserProfile", "profile"),
        ("sagemaker:DescribeSpace", "space"),
        ("ec2:DescribeSecurityGroups", "security-groups"),
        ("ec2:DescribeNetworkInterfaces", "interfaces"),
        ("ec2:DescribeSubnets", "network-acls"),
        ("ec2:DescribeNetworkAcls", "network-acls"),
        ("ec2:DescribeRouteTables", "routes"),
        ("fsx:DescribeFileSystems", "interfaces"),
        ("sagemaker:ListClusters", "hyperpod"),
    ],
)
def test_each_missing_right_leaves_its_check_unknown_and_is_named(endpoint, space, checks, action, key):
    endpoint.faults.deny(action)
    found = checks()
    assert seen(found[key]) == ("unknown", f"you do not have the permission {action}")
    assert found[key]["who"] == "admin"
    assert action in found[key]["fix"]
    failed = {one["key"] for one in found.values() if one["level"] == "fail"}
    assert failed <= {"slurm-client"}  # this machine has no Slurm
    assert found["mount"]["level"] == found["studio"]["level"] == "ok"
    unknown = {one["key"] for one in found.values() if one["level"] == "unknown"}
    assert unknown - WITHOUT_SLURM <= LOST.get(action, {key})


def test_rights_that_other_features_need_are_warned_of(endpoint, space, checks):
    endpoint.faults.deny("logs:DescribeLogStreams")
    endpoint.faults.deny("sagemaker:ListClusterNodes")
    check = checks()["rights"]
    assert check["level"] == "warn"
    assert "you do not have the permission logs:DescribeLogStreams" in check["evidence"]
    assert "you do not have the permission sagemaker:ListClusterNodes" in check["evidence"]
    assert check["fix"].startswith("allow what this prints: hpj admin policy ")
    assert {"logs", "nodes"} <= set(check["fix"].split())


def test_one_service_that_does_not_answer_is_named(endpoint, space, checks, no_aws):
    no_aws.setenv("AWS_ENDPOINT_URL_EC2", "http://127.0.0.1:9")
    found = checks()
    assert found["security-groups"]["level"] == "unknown"
    assert "ec2 did not answer" in found["security-groups"]["evidence"]
    assert "interface endpoint for ec2" in found["security-groups"]["fix"]
    assert found["domain"]["level"] == "ok"


def test_a_service_that_hangs_is_waited_for_once(endpoint, space, checks, no_aws):
    no_aws.setattr("hyperpod_jlab.features.doctor.aws.TIMEOUT_S", 8.0)
    endpoint.faults.slow["ec2:DescribeNetworkInterfaces"] = 20.0
    found = checks()
    for key in NETWORK:
        assert seen(found[key]) == ("unknown", "ec2 did not answer within 8 s")
    assert found["domain"]["level"] == "ok"
    assert [call.action for call in endpoint.calls].count("ec2:DescribeNetworkInterfaces") == 1


def test_a_terminal_shows_what_is_waited_for(endpoint, space, home, tmp_path):
    endpoint.faults.slow["sts:GetCallerIdentity"] = 3.0
    shell = Shell(home, tmp_path / "bin")
    code, screen = shell.run("doctor")
    assert code == 2  # this machine has no Slurm
    assert "\rchecking aws (" in screen.replace("\x1b[K", "")
    assert "security groups" in screen


def test_credentials_of_somebody_else_than_the_space(endpoint, space, checks):
    endpoint.account.add_caller("AKIATESTBEDEXAMPLE01", "Someone")
    level, words = seen(checks()["role"])
    assert (level, "not the role of this space, StudioRole" in words) == ("warn", True)


def test_a_domain_that_failed(endpoint, space, checks):
    endpoint.account.domains["d-example"].status = "Failed"
    assert checks()["domain"]["level"] == "fail"


def test_a_file_system_that_the_space_names_and_has_not(endpoint, space, checks):
    space.mount(None)
    check = checks()["mounts-missing"]
    assert check["level"] == "fail"
    assert (
        f"{FILE_SYSTEM} of ml-cluster is not mounted here, although the settings of the space list it"
        in (check["evidence"])
    )
    assert "restart the space" in check["fix"]


def test_a_file_system_that_the_profile_offers_and_the_space_has_not(endpoint, space, checks):
    space.mount(None)
    endpoint.account.spaces["d-example", "work"].file_systems = []
    check = checks()["mounts-missing"]
    assert (check["level"], check["who"]) == ("warn", "you")
    assert "the settings of the space do not list it" in check["evidence"]
    words = shlex.split(check["fix"].partition("then: ")[2].removesuffix(", and start it"))
    assert words[:3] == ["aws", "sagemaker", "update-space"]
    assert words[-1] == f"CustomFileSystems=[{{FSxLustreFileSystem={{FileSystemId={FILE_SYSTEM}}}}}]"


def test_a_file_system_that_nobody_offers(endpoint, space, checks):
    space.mount(None)
    endpoint.account.spaces["d-example", "work"].file_systems = []
    endpoint.account.profiles["d-example", "alice"].file_systems = [lustre_at("fs-00000000000000001", "/x")]
    check = checks()["mounts-missing"]
    assert (check["level"], check["who"]) == ("warn", "admin")
    words = shlex.split(check["fix"].partition(" (the folder")[0])
    assert words[:3] == ["aws", "sagemaker", "update-user-profile"]
    settings = json.loads(words[words.index("--user-settings") + 1])
    configs = [one["FSxLustreFileSystemConfig"] for one in settings["CustomFileSystemConfigs"]]
    assert configs == [
        {"FileSystemId": "fs-00000000000000001", "FileSystemPath": "/x"},  # the list is replaced as a whole
        {"FileSystemId": FILE_SYSTEM, "FileSystemPath": "/alice"},
    ]


def test_a_partition_that_the_nodes_have_elsewhere(space, checks, home):
    configure(home, space.mount_point, storage="/fsx/bob")
    check = checks()["shared"]
    assert check["level"] == "warn"
    assert "AWS reports it at /fsx/alice on the nodes, but the configuration has /fsx/bob" in (check["evidence"])
    assert check["fix"].startswith('storage = "/fsx/alice" under [clusters.ml]')
    configure(home, space.mount_point / "deep", storage="/fsx/alice/deep")
    assert checks()["shared"]["level"] == "ok"


def test_a_partition_that_is_not_the_clusters(space, checks, home, tmp_path):
    configure(home, tmp_path / "own-disk")
    check = checks()["shared"]
    assert check["level"] == "warn"
    assert f"not on the file system of the nodes of ml-cluster, {FILE_SYSTEM}" in (check["evidence"])
    assert check["fix"] == f'path = "{space.mount_point}" under [storage] in the configuration'


def test_a_mount_that_can_only_be_read(space, checks):
    space.mount("ro")
    check = checks()["mount"]
    assert (check["level"], check["who"]) == ("warn", "admin")
    assert "read-only: " in check["evidence"]


def test_the_commands_of_fixes_are_ones_of_aws():
    """The options are members of the operations' input in botocore's model, as the AWS CLI names them."""
    session = botocore.session.Session()
    for service, operation, members in (
        ("ec2", "AuthorizeSecurityGroupIngress", {"GroupId", "IpPermissions"}),
        ("ec2", "AuthorizeSecurityGroupEgress", {"GroupId", "IpPermissions"}),
        ("ec2", "ModifyNetworkInterfaceAttribute", {"NetworkInterfaceId", "Groups"}),
        ("sagemaker", "UpdateSpace", {"DomainId", "SpaceName", "SpaceSettings"}),
        ("sagemaker", "UpdateUserProfile", {"DomainId", "UserProfileName", "UserSettings"}),
        ("sagemaker", "UpdateDomain", {"DomainId", "SubnetIds"}),
    ):
        shape = session.get_service_model(service).operation_model(operation).input_shape
        assert members <= set(shape.members)


def test_the_endpoint_refuses_what_ec2_would(endpoint, space):
    import boto3
    from botocore.exceptions import ClientError

    client = boto3.client("ec2", region_name=REGION)
    told = client.describe_security_groups(GroupIds=[SERVERS])["SecurityGroups"]
    assert [one["GroupId"] for one in told] == [SERVERS]
    assert told[0]["IpPermissions"][0]["UserIdGroupPairs"][0]["GroupId"] == SERVERS
    with pytest.raises(ClientError, match=r"InvalidGroup\.NotFound"):
        client.describe_security_groups(GroupIds=["sg-00000000000000bad"])
    endpoint.account.add_caller(
        "AKIATESTBEDEXAMPLE01",
        "Narrow",
        {
            "Version": "2012-10-17",
            "Statement": [{"Effect": "Allow", "Action": "ec2:DescribeSecurityGroups", "Resource": "*"}],
        },
    )
    with pytest.raises(ClientError, match="UnauthorizedOperation"):
        client.describe_network_interfaces()
