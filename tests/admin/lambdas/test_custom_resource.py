"""The custom resource of the package as built: event in, answer at its address, what CloudFormation does with it."""

from __future__ import annotations

import copy

import pytest

from testbed.aws.network import SUBNET, NetworkInterface
from testbed.aws.state import Domain, LustreFileSystem, Profile, lustre_at
from tests.admin.conftest import DOMAIN, FILE_SYSTEM, OTHER, STUDIO
from tests.admin.lambdas.conftest import properties
from tests.aws.conftest import REGION

NAME = f"hyperpod-jlab/{DOMAIN}/{FILE_SYSTEM}"
SECOND = "fs-0fedcba9876543210"


def seen(account):
    """All that wiring may change."""
    return copy.deepcopy((account.domains, account.profiles, account.spaces, account.networks[REGION].interfaces))


def add_second(account):
    """Another file system."""
    interface = NetworkInterface("eni-00000000000000009", [OTHER], "10.0.0.9")
    account.networks[REGION].add(interface)
    account.file_systems[REGION].append(LustreFileSystem(SECOND, "y5kjbbmv", interfaces=[interface.interface_id]))


def marks(thing):
    """What its tags say."""
    return " ".join(f"{name} {value}" for name, value in thing.tags.items())


def mounted(account, name=DOMAIN):
    return account.domains[name].file_systems


def test_create_and_delete(account, stack):
    before = seen(account)
    answer = stack.create(**properties())
    assert (answer["Status"], answer["PhysicalResourceId"]) == ("SUCCESS", NAME)
    assert answer["Data"]["FileSystemId"] == FILE_SYSTEM
    assert mounted(account) == [lustre_at(FILE_SYSTEM, "/shared")]
    for interface in account.networks[REGION].interfaces.values():
        assert interface.groups == [OTHER, STUDIO]
    assert stack.delete()["Status"] == "SUCCESS"
    assert seen(account) == before
    assert '"changed":' in stack.invoked[0].log


def test_the_mode_is_changed_in_place(account, stack):
    stack.create(**properties())
    answer = stack.update(**properties("per-user"))
    assert (answer["Status"], answer["PhysicalResourceId"]) == ("SUCCESS", NAME)
    assert answer["Data"]["PartitionMode"] == "per-user"
    # Nobody here makes folders: until somebody does, all go on with the one that they share.
    assert mounted(account) == [lustre_at(FILE_SYSTEM, "/shared")]
    assert "domain d-example: profiles without their own folder" in answer["Data"]["Summary"]
    stack.update(**properties(SharedPath="/all"))
    assert mounted(account) == [lustre_at(FILE_SYSTEM, "/all")]
    assert [kind for kind, _ in stack.asked] == ["Create", "Update", "Update"]


def test_folders_that_the_admin_has_made_are_mounted_unseen(account, stack):
    answer = stack.create(**properties("per-user", Folders="none"))
    assert (answer["Status"], answer["Data"]["Waiting"]) == ("SUCCESS", "0")
    assert mounted(account) == []
    for (_, name), profile in account.profiles.items():
        assert lustre_at(FILE_SYSTEM, f"/{name}") in profile.file_systems


def test_a_stack_of_version_0_1_with_sessions_on_the_controller_leaves_folders_to_the_timer(account, stack):
    older = properties("per-user", Folders="cluster", ControllerGroup="controller-machine")
    answer = stack.create(**older)
    assert (answer["Status"], answer["Data"]["Waiting"]) == ("SUCCESS", "7")
    assert stack.update(**properties("per-user", Folders="timer"))["Status"] == "SUCCESS"
    assert stack.delete()["Status"] == "SUCCESS"


def test_what_somebody_else_has_set_in_the_domain_takes_a_word_of_the_admin(account, stack):
    account.domains[DOMAIN].file_systems = [lustre_at(FILE_SYSTEM, "/theirs")]
    before = seen(account)
    answer = stack.create(**properties())
    assert answer["Status"] == "FAILED"
    assert "someone else set /theirs there" in answer["Reason"]
    assert "TakeOver" in answer["Reason"]
    assert "The next run continues" not in answer["Reason"]
    assert mounted(account) == before[0][DOMAIN].file_systems
    answer = stack.create(**properties(TakeOver="true"))
    assert answer["Status"] == "SUCCESS", answer
    assert mounted(account) == [lustre_at(FILE_SYSTEM, "/shared")]
    assert stack.delete()["Status"] == "SUCCESS"
    assert mounted(account) == []


def test_another_file_system_takes_the_place_of_the_first(account, stack):
    before = seen(account)
    add_second(account)
    stack.create(**properties())
    stack.update(**properties(FileSystemId=SECOND))
    assert stack.asked[-1] == ("Delete", NAME)
    assert stack.physical_id.endswith(SECOND)
    assert mounted(account) == [lustre_at(SECOND, "/shared")]
    assert SECOND in marks(account.domains[DOMAIN])
    assert FILE_SYSTEM not in marks(account.domains[DOMAIN])
    assert stack.delete()["Status"] == "SUCCESS"
    del account.networks[REGION].interfaces["eni-00000000000000009"]
    assert seen(account) == before


def test_another_domain_takes_the_place_of_the_first(account, stack):
    account.domains["d-second"] = Domain(subnets=[SUBNET])
    group = copy.copy(account.networks[REGION].groups[STUDIO])
    group.group_id, group.name = "sg-0ccccccccccccccccc", "security-group-for-inbound-nfs-d-second"
    account.networks[REGION].add(group)
    stack.create(**properties())
    stack.update(**properties(DomainId="d-second"))
    assert mounted(account) == []
    assert mounted(account, "d-second") == [lustre_at(FILE_SYSTEM, "/shared")]


def test_an_update_that_fails_goes_back_and_leaves_nothing(account, endpoint, stack):
    add_second(account)
    stack.create(**properties())
    wired = seen(account)
    account.file_systems[REGION][1].vpc = "vpc-0fedcba9876543210"
    answer = stack.update(**properties(FileSystemId=SECOND))
    assert answer["Status"] == "FAILED"
    assert "vpc-0fedcba9876543210" in answer["Reason"]
    assert answer["PhysicalResourceId"] == NAME
    assert seen(account) == wired

    # Now half-way: the domain is wired anew, a profile is not.
    account.file_systems[REGION][1].vpc = account.domains[DOMAIN].vpc
    account.profiles[DOMAIN, "bob"].file_systems = [{"EFSFileSystemConfig": {"FileSystemId": "fs-0efefefefefefefef"}}]
    endpoint.faults.deny("sagemaker:UpdateUserProfile", "bob")
    stack.before_going_back = endpoint.faults.denied.clear
    answer = stack.update(**properties(FileSystemId=SECOND))
    assert answer["Status"] == "FAILED"
    assert "profile bob: you do not have the permission sagemaker:UpdateUserProfile" in answer["Reason"]
    assert mounted(account) == [lustre_at(FILE_SYSTEM, "/shared")]
    assert FILE_SYSTEM in marks(account.domains[DOMAIN])
    assert SECOND not in marks(account.domains[DOMAIN])


def test_a_creation_that_fails_half_way_is_taken_back(account, endpoint, stack):
    account.profiles[DOMAIN, "bob"].file_systems = [{"EFSFileSystemConfig": {"FileSystemId": "fs-0efefefefefefefef"}}]
    before = seen(account)
    endpoint.faults.deny("sagemaker:UpdateUserProfile", "bob")
    answer = stack.create(**properties())
    assert answer["Status"] == "FAILED"
    assert stack.asked[-1] == ("Delete", NAME)
    assert stack.bucket.answers[-1]["Status"] == "SUCCESS"
    # A mark is written before what it marks; on nothing it does no harm.
    account.profiles[DOMAIN, "bob"].tags.clear()
    assert seen(account) == before


def test_what_was_never_answered_is_taken_back_by_its_properties(account, stack):
    before = seen(account)
    stack.create(**properties())
    stack.physical_id = "studio-Wiring-1ABCDEF2GHIJK"  # what CloudFormation makes up
    assert stack.delete()["Status"] == "SUCCESS"
    assert seen(account) == before


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"DomainId": "nothing"}, "DomainId: 'nothing' is not valid; example: d-abc123"),
        ({"DomainId": ["d-x"]}, "DomainId: "),
        ({"PartitionMode": "private"}, "PartitionMode must be one of"),
        ({"FileSystemId": "fs-1; rm"}, "FileSystemId: 'fs-1; rm' is not valid"),
        ({"FileSystemId": "", "ClusterName": ""}, "FileSystemId is missing: set it, or set ClusterName"),
        ({"SharedPath": "/a/../.."}, "SharedPath: "),
        ({"PartionMode": "shared"}, "unknown property PartionMode (did you mean"),
        ({"DomainId": "d-nope"}, "d-nope"),
        ({"FileSystemId": "fs-0000000000"}, "fs-0000000000"),
        ({"FileSystemId": "", "ClusterName": "nope"}, "nope"),
        ({"Folders": "slurm"}, "Folders must be one of"),
        ({"ClusterUser": "0"}, "ClusterUser: '0'"),
        ({"ClusterUser": "ubuntu"}, "ClusterUser: 'ubuntu'"),
        ({"TakeOver": "yes"}, "TakeOver must be one of"),
    ],
)
def test_properties_that_are_wrong_are_said_and_can_be_deleted(account, stack, given, words):
    before = seen(account)
    answer = stack.create(**(properties() | given))
    assert answer["Status"] == "FAILED"
    assert words in answer["Reason"]
    deleted = stack.bucket.answers[-1]
    assert (stack.asked[-1][0], deleted["Status"]) == ("Delete", "SUCCESS"), deleted
    assert seen(account) == before


def test_requests_that_are_wrong(account, function, stack):
    unanswerable: list = [{}, [], {"RequestType": "Create"}, {"ResponseURL": "file:///etc/passwd"}]
    for event in unanswerable:
        assert function.invoke("custom_resource", event).error["errorType"] == "InvalidInputError"
    for event in (
        {"ResponseURL": stack.bucket.url},
        {"ResponseURL": stack.bucket.url, "RequestType": "Create"},
        {"ResponseURL": stack.bucket.url, "RequestType": "Create", "ResourceProperties": []},
        {"ResponseURL": stack.bucket.url, "RequestType": "Explode", "StackId": "x"},
    ):
        assert stack.send(event)["Status"] == "FAILED"
    gone = stack.send({"ResponseURL": stack.bucket.url, "RequestType": "Delete"})
    assert gone["Status"] == "SUCCESS"


def test_the_domain_or_the_file_system_is_gone(account, stack):
    stack.create(**properties())
    account.file_systems[REGION].clear()
    assert stack.delete()["Status"] == "SUCCESS"
    assert mounted(account) == []
    account.domains.clear()
    assert stack.delete()["Status"] == "SUCCESS"


def test_the_file_system_of_a_cluster(account, stack):
    cluster = account.add_cluster("ml-cluster", REGION, orchestrator={"Slurm": {}})
    dns = f"{FILE_SYSTEM}.fsx.{REGION}.amazonaws.com"
    storage = {"FsxLustreConfig": {"DnsName": dns, "MountName": "x5kjbbmv"}}
    cluster.add_group("workers", "ml.p5.48xlarge", 1, storage=[storage])
    answer = stack.create(**properties(FileSystemId="", ClusterName="ml-cluster"))
    assert (answer["Status"], answer["PhysicalResourceId"]) == ("SUCCESS", NAME)
    account.clusters[REGION].clear()  # the name of the resource says all
    assert stack.delete()["Status"] == "SUCCESS"
    assert mounted(account) == []


def test_a_space_that_runs_keeps_the_stack_until_it_is_stopped(account, stack):
    stack.create(**properties())
    account.spaces[DOMAIN, "work"].apps = ["JupyterLab"]
    answer = stack.delete()
    assert answer["Status"] == "FAILED"
    assert "space work: it runs JupyterLab" in answer["Reason"]
    account.spaces[DOMAIN, "work"].apps = []
    assert stack.delete()["Status"] == "SUCCESS"
    # To create needs nobody to stop: it waits.
    account.spaces[DOMAIN, "work"].apps = ["JupyterLab"]
    answer = stack.create(**properties())
    assert answer["Status"] == "SUCCESS"
    assert "space work" in answer["Data"]["Summary"]
    assert answer["Data"]["Waiting"] != "0"


def test_aws_is_busy_for_a_while(account, endpoint, stack):
    # More often than boto3 tries a call again.
    endpoint.faults.throttled["sagemaker:UpdateDomain"] = 5
    endpoint.faults.broken["sagemaker:DescribeDomain"] = 2
    assert stack.create(**properties())["Status"] == "SUCCESS"
    assert mounted(account) == [lustre_at(FILE_SYSTEM, "/shared")]


def test_the_answer_is_given_again_until_it_is_taken(account, bucket, stack):
    bucket.fails = [503, 0]
    assert stack.create(**properties())["Status"] == "SUCCESS"
    assert bucket.tries == 3


def test_an_answer_that_is_never_taken_is_an_error_without_its_address(account, bucket, stack):
    bucket.fails = [403]
    event = {"RequestType": "Create", "ResponseURL": bucket.url}
    invoked = stack.function.invoke("custom_resource", event)
    assert invoked.error["errorType"] == "UnreachableError"
    assert "HTTP 403" in invoked.error["errorMessage"]
    assert "127.0.0.1" not in invoked.error["errorMessage"] + invoked.log


def test_near_the_time_limit_it_says_what_is_left_and_goes_on_the_next_time(account, endpoint, stack):
    for number in range(150):
        account.profiles[DOMAIN, f"user{number:03d}"] = Profile(
            file_systems=[{"EFSFileSystemConfig": {"FileSystemId": "fs-0efefefefefefefef"}}]
        )
    endpoint.faults.slow["sagemaker:UpdateUserProfile"] = 1.5
    stack.function.seconds = 10
    answer = stack._ask("Create", None, properties())
    assert answer["Status"] == "FAILED"
    assert "timed out before" in answer["Reason"]
    assert answer["PhysicalResourceId"] == NAME
    some = sum(lustre_at(FILE_SYSTEM, "/shared") in one.file_systems for one in account.profiles.values())
    assert 0 < some < 150
    # A stack with a schedule is made: that goes on.
    answer = stack._ask("Create", None, properties(Reconciled="true"))
    assert answer["Status"] == "SUCCESS"
    assert answer["Data"]["Left"] != "0"
    endpoint.faults.slow.clear()
    stack.function.seconds = 90
    assert stack._ask("Create", None, properties())["Status"] == "SUCCESS"
    assert all(
        lustre_at(FILE_SYSTEM, "/shared") in one.file_systems
        for name, one in account.profiles.items()
        if name[1].startswith("user")
    )


def test_an_aws_that_does_not_answer_is_told_before_the_function_ends(account, endpoint, stack):
    endpoint.faults.slow["sagemaker:DescribeDomain"] = 20
    stack.function.seconds = 3
    answer = stack._ask("Create", None, properties())
    assert answer["Status"] == "FAILED"
    assert "time" in answer["Reason"]
    assert not stack.invoked[-1].ended


def test_a_long_reason_is_cut_and_still_told(account, endpoint, stack):
    for number in range(30):
        account.profiles[DOMAIN, f"ünïcode-{number}".encode().hex() + "x" * 30] = Profile(
            file_systems=[{"EFSFileSystemConfig": {"FileSystemId": "fs-0efefefefefefefef"}}]
        )
    endpoint.faults.deny("sagemaker:UpdateUserProfile")
    answer = stack.create(**properties())
    assert answer["Status"] == "FAILED"
    assert "30 failed" in answer["Reason"]
