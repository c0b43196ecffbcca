"""``hpj doctor`` on Studio and AWS."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.aws.example import FILE_SYSTEM, example_account
from testbed.aws.state import Profile
from testbed.aws.studio import SimulatedStudio
from tests.aws.conftest import REGION

POINT = f"/mnt/custom-file-systems/fsx_lustre/{FILE_SYSTEM}"


@pytest.fixture
def space(endpoint, no_aws, tmp_path):
    """A space of Studio, with a partition of the file system that one of the account's clusters mounts."""
    endpoint.account = example_account(REGION)
    made = SimulatedStudio(tmp_path, REGION, root=Path("/"))
    made.write(endpoint.account)
    for name, value in made.environment.items():
        no_aws.setenv(name, value)
    no_aws.delenv("AWS_REGION")  # Studio's metadata say it
    return made


@pytest.fixture
def studio(endpoint, space):
    return endpoint


@pytest.fixture
def checks(hpj):
    """The doctor's checks by name, as lists of (level, evidence)."""

    def found():
        # A cluster of the configuration that does not answer makes it fail; what it tells of AWS is the same.
        told = hpj("doctor", "--json").json["checks"]
        names = [one["name"] for one in told]
        return {name: [(one["level"], one["evidence"]) for one in told if one["name"] == name] for name in names}

    return found


def test_a_space_where_all_is_well(studio, checks):
    found = checks()
    assert found["studio"] == [
        ("ok", "JupyterLab in domain d-example, space work, role arn:aws:iam::111122223333:role/StudioRole")
    ]
    assert found["space"] == [("ok", "work is a private space of alice")]
    assert found["FSx for Lustre"] == [("ok", f"{FILE_SYSTEM} at {POINT} (its /alice)")]
    ((level, words),) = found["aws"]
    assert level == "ok"
    assert words == f"arn:aws:sts::111122223333:assumed-role/StudioRole/SageMaker in {REGION}"
    ((level, words),) = found["HyperPod"]
    assert level == "ok"
    assert words.startswith(f"4 clusters in {REGION}: ml-cluster (slurm, in-service, its file system is mounted here)")
    assert "older-cluster (slurm, updating-software)" in words


def test_a_shared_space_says_that_all_act_as_it(studio, checks):
    studio.account.spaces["d-example", "work"].sharing = "Shared"
    ((level, words),) = checks()["space"]
    assert (level, "shared: all its users and runs act as the space" in words) == ("ok", True)


@pytest.fixture
def partition(endpoint, no_aws, tmp_path, home):
    """Runs go to a partition of a file system that other machines mount, in a space of Studio."""
    endpoint.account = example_account(REGION)
    made = SimulatedStudio(tmp_path / "space", REGION)
    made.write(endpoint.account)
    made.mount_point.mkdir(parents=True, mode=0o700)
    for name, value in made.environment.items():
        no_aws.setenv(name, value)
    home.config.write_text(f'[storage]\npath = "{made.mount_point}"\n')
    return endpoint


def privacy(hpj):
    told = hpj("doctor", "--json").json["checks"]
    (found,) = [one for one in told if one["key"] == "privacy"]
    return found


def test_a_mode_keeps_nobody_out_where_all_are_the_same_user(partition, hpj):
    found = privacy(hpj)
    assert (found["level"], found["who"]) == ("warn", "admin")
    said = "isolation: mount path only, because Studio gives every user profile the uid 200001 on file systems, and alice was created without its own"
    assert found["evidence"].startswith(said)
    assert said.partition(", because")[0] in hpj("storage").ok().out  # in the same words
    assert "CustomPosixUserConfig" in found["fix"]
    partition.account.profiles["d-example", "alice"] = Profile(uid=12001)
    found = privacy(hpj)
    assert (found["level"], found["fix"]) == ("ok", None)
    assert "private to this user (mode 0700" in found["evidence"]


def test_nobody_says_whose_number_it_is(partition, hpj):
    partition.faults.deny("sagemaker:DescribeUserProfile")
    found = privacy(hpj)
    assert found["level"] == "warn"
    assert "it is unknown whether alice was created with its own" in found["evidence"]


def test_a_shared_space_is_no_private_place(partition, hpj):
    partition.account.spaces["d-example", "work"].sharing = "Shared"
    found = privacy(hpj)
    assert (found["level"], found["who"]) == ("warn", "you")
    assert "this space is shared: all its users act as the space" in found["evidence"]
    assert "private space" in found["fix"]


def test_each_missing_right_is_named_and_the_rest_is_told(studio, checks):
    studio.faults.deny("sagemaker:DescribeSpace")
    studio.faults.deny("sagemaker:DescribeCluster", "ml-cluster")
    found = checks()
    assert found["space"] == [("unknown", "you do not have the permission sagemaker:DescribeSpace")]
    ((level, words),) = found["HyperPod"]
    assert level == "warn"
    assert "1 of 4 clusters could not be described" in words
    studio.faults.deny("sagemaker:ListClusters")
    assert checks()["HyperPod"] == [("unknown", "you do not have the permission sagemaker:ListClusters")]


def test_without_credentials_the_checks_of_aws_end_there(studio, checks, no_aws):
    no_aws.delenv("AWS_ACCESS_KEY_ID")
    no_aws.delenv("AWS_SECRET_ACCESS_KEY")
    found = checks()
    assert found["aws"] == [("fail", "no AWS credentials found")]
    because = ("unknown", "not checked: aws failed")
    assert found["space"] == found["HyperPod"] == [because]
    assert found["studio"][0][0] == "ok"


def test_elsewhere_credentials_that_are_missing_fail_nothing(endpoint, checks, home, no_aws):
    home.config.write_text('[clusters.a]\norchestrator = "kubernetes"\nhyperpod = "research-eks"\n')
    no_aws.delenv("AWS_ACCESS_KEY_ID")
    no_aws.delenv("AWS_SECRET_ACCESS_KEY")
    found = checks()
    assert found["aws"] == [("unknown", "no AWS credentials found")]
    assert found["HyperPod"][0][0] == found["security groups"][0][0] == "unknown"


@pytest.mark.parametrize(("content", "words"), [("{", "not valid JSON"), ("{}", "has no DomainId")])
def test_half_metadata(space, checks, no_aws, content, words):
    space.metadata.write_text(content)
    no_aws.setenv("AWS_REGION", REGION)
    found = checks()
    ((level, evidence),) = found["studio"]
    assert level == "warn"
    assert words in evidence
    assert "space" not in found
    assert found["HyperPod"][0][0] == "ok"


def test_a_file_system_that_is_read_only_or_not_there(space, checks):
    space.mount("ro,noatime")
    ((level, words),) = checks()["FSx for Lustre"]
    assert (level, words.endswith(f"read-only: {POINT}")) == ("warn", True)
    space.mount(None)
    found = checks()
    assert found["FSx for Lustre"][0][0] == "warn"
    assert "its file system is not mounted here" in found["HyperPod"][0][1]


def test_a_configured_name_that_aws_does_not_have(endpoint, checks, home):
    endpoint.account = example_account(REGION)
    home.config.write_text(
        '[clusters.a]\norchestrator = "kubernetes"\nhyperpod = "research-eks"\n'
        '[clusters.b]\norchestrator = "kubernetes"\nhyperpod = "gone"\n'
    )
    warned = f"the configuration has gone, but it does not exist in {REGION}"
    assert checks()["names at AWS"] == [("warn", warned)]


def test_elsewhere_aws_is_not_asked(endpoint, checks):
    found = checks()
    assert found["studio"] == [("ok", "this is not SageMaker Studio")]
    assert not {"aws", "HyperPod", "space", "FSx for Lustre"} & found.keys()
    assert endpoint.calls == []
