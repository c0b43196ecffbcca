"""``hpj storage`` in a space of Studio: what is mounted, what AWS knows of it, and who else can read it."""

from __future__ import annotations

import json

import pytest

from testbed.aws.example import FILE_SYSTEM, MOUNT_NAME, example_account
from testbed.aws.state import LustreFileSystem, Profile, Space
from tests.aws.conftest import REGION

DOMAIN = "d-example"
SOURCE = f"10.0.1.2@tcp:/{MOUNT_NAME}"


class Studio:
    """A space of Studio: a folder that the table of mounts calls a mount point of Lustre."""

    def __init__(self, endpoint, patch, root):
        self.endpoint, self.patch, self.root = endpoint, patch, root
        self.point = root / "fsx_lustre" / FILE_SYSTEM
        self.point.mkdir(parents=True)
        self.point.chmod(0o700)
        metadata = root / "metadata.json"
        arn = f"arn:aws:sagemaker:{REGION}:111122223333:app/{DOMAIN}/work/JupyterLab/default"
        told = {"AppType": "JupyterLab", "DomainId": DOMAIN, "SpaceName": "work", "ResourceArn": arn}
        metadata.write_text(json.dumps(told))
        patch.setenv("RESOURCE_METADATA_FILE", str(metadata))
        patch.setenv("HYPERPOD_MOUNT_TABLE", str(root / "mountinfo"))
        self.mount("/alice")

    def mount(self, folder, how="rw", *more):
        lines = [
            "22 1 259:1 / / rw - ext4 /dev/root rw",
            f"30 22 0:40 / {self.point} {how} - lustre {SOURCE}{folder} rw,flock",
            *more,
        ]
        (self.root / "mountinfo").write_text("\n".join(lines) + "\n")

    @property
    def account(self):
        return self.endpoint.account


@pytest.fixture
def studio(endpoint, no_aws, tmp_path, home):
    endpoint.account = example_account(REGION)
    made = Studio(endpoint, no_aws, tmp_path)
    no_aws.delenv("AWS_REGION")  # Studio's metadata say it
    home.config.write_text(
        f'[storage]\npath = "{made.point}"\n[clusters.train]\norchestrator = "slurm"\nstorage = "/fsx/alice"\n'
    )
    return made


def storage(hpj, *words):
    return hpj("storage", *words, "--json").ok().json


def test_the_whole_of_it(studio, hpj):
    told = storage(hpj)
    (disk,) = [one for one in told["file_systems"] if one["network"]]
    assert disk["path"] == disk["mount"] == told["partition"]["path"] == str(studio.point)
    expected = {
        "kind": "lustre",
        "source": f"{SOURCE}/alice",
        "file_system": FILE_SYSTEM,
        "mount_name": MOUNT_NAME,
        "mounted_folder": "/alice",
        "runs_go_here": True,
        "private_of": "alice",
        "offered": True,
        "problem": None,
    }
    assert {name: disk[name] for name in expected} == expected
    assert disk["free"] <= disk["total"]
    aws = disk["aws"]
    assert (aws["state"], aws["deployment"], aws["capacity"]) == ("AVAILABLE", "PERSISTENT_2", 1200 * 1024**3)
    assert (aws["throughput"], aws["maintenance"]) == ("125 MB/s for each TiB", "Monday 05:00 UTC")
    assert aws["associations"] == [
        {
            "folder": "/alice/data",
            "repository": "s3://example-bucket/data/",
            "state": "AVAILABLE",
            "imports": ["NEW", "CHANGED"],
            "exports": ["NEW", "CHANGED", "DELETED"],
            "problem": None,
        }
    ]
    assert (told["notes"], told["studio"], told["shared_space"]) == ([], True, False)
    words = hpj("storage").ok().out
    assert "STUDIO" in words
    assert "/alice/data with s3://example-bucket/data/, AVAILABLE" in words
    assert "isolation: mount path only, because" in words


def test_one_user_number_for_all_is_no_isolation_but_the_mount_path(studio, hpj):
    found = storage(hpj)["partition"]["isolation"]
    assert found["level"] == "mount_path_only"
    assert any("alice was created without its own" in line for line in found["evidence"])
    studio.account.profiles[DOMAIN, "alice"] = Profile(uid=200001)
    assert storage(hpj)["partition"]["isolation"]["level"] == "mount_path_only"


def test_a_user_number_of_ones_own_is_posix_while_the_modes_are_closed(studio, hpj):
    studio.account.profiles[DOMAIN, "alice"] = Profile(uid=12001)
    found = storage(hpj)["partition"]["isolation"]
    assert (found["level"], found["words"]) == ("posix", "POSIX")
    assert "the user profile alice was created with its own uid, 12001" in found["evidence"]
    studio.point.chmod(0o755)
    found = storage(hpj)["partition"]
    assert found["isolation"]["level"] == "mount_path_only"
    assert "everybody may read" in found["isolation"]["readers"]
    assert found["open_to_others"] is True
    studio.mount("")
    assert storage(hpj)["partition"]["isolation"]["level"] == "none"


def test_each_missing_right_leaves_the_rest_and_a_note(studio, hpj):
    studio.endpoint.faults.deny("fsx:DescribeFileSystems")
    told = storage(hpj)
    assert told["notes"] == [f"the file system {FILE_SYSTEM}: you do not have the permission fsx:DescribeFileSystems"]
    (disk,) = [one for one in told["file_systems"] if one["network"]]
    assert (disk["aws"], disk["file_system"], disk["private_of"]) == (None, FILE_SYSTEM, "alice")
    studio.endpoint.faults.denied.clear()
    studio.endpoint.faults.deny("fsx:DescribeDataRepositoryAssociations")
    told = storage(hpj)
    (disk,) = [one for one in told["file_systems"] if one["network"]]
    assert (disk["aws"]["state"], disk["aws"]["associations"]) == ("AVAILABLE", None)
    assert told["notes"] == [
        f"links of {FILE_SYSTEM} to S3: you do not have the permission fsx:DescribeDataRepositoryAssociations"
    ]
    studio.endpoint.faults.denied.clear()
    studio.account.profiles[DOMAIN, "alice"] = Profile(uid=12001)
    studio.endpoint.faults.deny("sagemaker:DescribeUserProfile")
    told = storage(hpj)
    # What is not known is not taken for the better one.
    assert told["partition"]["isolation"]["level"] == "mount_path_only"
    assert any("it is unknown" in line for line in told["partition"]["isolation"]["evidence"])


def test_without_credentials_nobody_is_asked_twice(studio, hpj, no_aws):
    no_aws.delenv("AWS_ACCESS_KEY_ID")
    no_aws.delenv("AWS_SECRET_ACCESS_KEY")
    done = hpj("storage").ok()
    assert done.err.count("no AWS credentials found") == 1
    assert f"{SOURCE}/alice" in done.out
    assert studio.endpoint.calls == []


def test_aws_is_not_asked_where_nothing_is_of_it(studio, hpj, no_aws, tmp_path):
    storage(hpj, "--no-aws")
    assert studio.endpoint.calls == []
    no_aws.setenv("RESOURCE_METADATA_FILE", str(tmp_path / "none.json"))
    no_aws.delenv("HYPERPOD_MOUNT_TABLE")
    storage(hpj)
    assert studio.endpoint.calls == []


def test_a_shared_space_is_not_offered_a_private_partition(studio, hpj, no_aws, tmp_path):
    studio.account.spaces[DOMAIN, "work"] = Space("bob", sharing="Shared")
    no_aws.setenv("HOME", str(tmp_path))
    told = storage(hpj)
    (disk,) = [one for one in told["file_systems"] if one["network"]]
    assert (disk["private_of"], disk["offered"]) == ("alice", False)
    assert disk["problem"].startswith("not offered: it is the private partition of alice")
    assert told["shared_space"] is True
    assert told["notes"][0].startswith("runs are stored in the private partition of alice")
    refused = hpj("storage", "link", "--json")
    assert (refused.code, refused.error["code"]) == (4, "private_partition")
    assert not (tmp_path / "hyperpod-partition").is_symlink()
    # A folder that no profile is called like is everybody's, and offered.
    studio.mount("/team")
    told = storage(hpj)
    assert told["partition"]["offered"] is True
    assert told["notes"] == ["this space is shared: all its users see and control its runs"]
    hpj("storage", "link").ok()
    assert (tmp_path / "hyperpod-partition").is_symlink()


def test_whether_a_space_is_shared_is_known_without_aws(studio, hpj, no_aws):
    no_aws.setenv("SAGEMAKER_SPACE_TYPE_LOWERCASE", "shared")
    told = storage(hpj, "--no-aws")
    assert told["shared_space"] is True
    assert "all its users act as the space" in " ".join(told["partition"]["isolation"]["evidence"])


def test_a_mount_that_does_not_name_the_file_system(studio, hpj, home, tmp_path):
    """As on a cluster's nodes: it is found by its mount name, when only one has that."""
    point = tmp_path / "fsx"
    point.mkdir()
    line = f"31 22 0:41 / {point} ro - lustre {SOURCE} rw"
    studio.mount("/alice", "rw", line)
    (whole,) = [one for one in storage(hpj)["file_systems"] if one["path"] == str(point)]
    assert (whole["file_system"], whole["mounted_folder"]) == (FILE_SYSTEM, "/")
    assert (whole["read_only"], whole["writable"], whole["runs_go_here"]) == (True, False, False)
    assert whole["private_of"] is None
    studio.account.file_systems[REGION].append(LustreFileSystem("fs-0aaaaaaaaaaaaaaaa", MOUNT_NAME))
    told = storage(hpj)
    (whole,) = [one for one in told["file_systems"] if one["path"] == str(point)]
    assert (whole["file_system"], whole["aws"]) == (None, None)
    assert told["notes"] == [f"AWS does not have exactly one file system with the mount name {MOUNT_NAME}"]


def test_a_read_only_partition_and_one_that_aws_does_not_have(studio, hpj):
    studio.mount("/alice", "ro,noatime")
    studio.account.file_systems.clear()
    told = storage(hpj)
    assert (told["partition"]["read_only"], told["partition"]["writable"]) == (True, False)
    assert told["notes"] == [
        f"runs cannot be stored in {studio.point}: it is read-only here",
        f"AWS has no file system {FILE_SYSTEM} in this region",
    ]


def test_many_links_come_in_pages_and_old_file_systems_have_one_of_their_own(studio, hpj):
    (linked,) = studio.account.file_systems[REGION]
    linked.associations = [
        {
            "AssociationId": f"dra-{number:017x}",
            "FileSystemPath": f"/set-{number}",
            "DataRepositoryPath": "s3://example-bucket/",
            "Lifecycle": "MISCONFIGURED",
            "FailureDetails": {"Message": "the bucket is gone"},
        }
        for number in range(60)
    ]
    found = storage(hpj)["partition"]["aws"]["associations"]
    assert len({one["folder"] for one in found}) == 60
    assert {(one["state"], one["problem"]) for one in found} == {("MISCONFIGURED", "the bucket is gone")}
    linked.associations = []
    linked.lustre = {
        "DeploymentType": "SCRATCH_1",
        "DataRepositoryConfiguration": {
            "Lifecycle": "AVAILABLE",
            "ImportPath": "s3://example-bucket/old",
            "AutoImportPolicy": "NEW_CHANGED",
        },
        "RootSquashConfiguration": {"RootSquash": "365534:65534"},
    }
    aws = storage(hpj)["partition"]["aws"]
    (link,) = aws["associations"]
    assert (link["folder"], link["repository"], link["imports"]) == ("/", "s3://example-bucket/old", ["NEW", "CHANGED"])
    assert "is mapped to 365534:65534" in hpj("storage").ok().out


def test_a_path_has_its_place_on_the_file_system_too(studio, hpj):
    (studio.point / "data").mkdir()
    told = storage(hpj, str(studio.point / "data"))
    assert told["path_there"] == "/alice/data"
    assert {one["cluster"]: one["there"] for one in told["clusters"]}["train"] == "/fsx/alice/data"
    assert (told["private_of"], told["aws"]["name"]) == ("alice", FILE_SYSTEM)


def other_file_systems(hpj):
    return [note for note in storage(hpj)["notes"] if note.startswith("runs on train may not")]


def test_a_file_system_that_is_not_the_clusters_is_said(studio, hpj, home, tmp_path):
    with home.config.open("a") as config:
        config.write('hyperpod = "ml-cluster"\n')
    assert other_file_systems(hpj) == []
    # Its mount name is another file system's now, which is not mounted here.
    (linked,) = studio.account.clusters[REGION][0].groups[1].storage
    linked["FsxLustreConfig"] |= {
        "DnsName": f"fs-0aaaaaaaaaaaaaaaa.fsx.{REGION}.amazonaws.com",
        "MountName": "other123",
    }
    (note,) = other_file_systems(hpj)
    assert "fs-0aaaaaaaaaaaaaaaa" in note
    assert note.endswith("which is not mounted on this machine")
    # It is mounted here too, elsewhere.
    point = tmp_path / "fsx_lustre" / "fs-0aaaaaaaaaaaaaaaa"
    point.mkdir()
    line = f"31 22 0:41 / {point} rw - lustre 10.0.1.3@tcp:/other123/alice rw"
    studio.mount("/alice", "rw", line)
    (note,) = other_file_systems(hpj)
    assert f"which is mounted at {point} here" in note
    studio.endpoint.faults.deny("sagemaker:DescribeCluster")
    assert other_file_systems(hpj) == []
    assert (
        "the HyperPod cluster ml-cluster: you do not have the permission sagemaker:DescribeCluster"
        in storage(hpj)["notes"]
    )


@pytest.mark.parametrize(("content", "words"), [("", "is not valid JSON"), ('{"AppType": "Jupy', "is not valid JSON")])
def test_metadata_that_are_half_there_are_said_and_stop_nothing(studio, hpj, no_aws, content, words):
    no_aws.setenv("AWS_REGION", REGION)
    (studio.root / "metadata.json").write_text(content)
    told = storage(hpj)
    assert words in told["notes"][0]
    assert (told["studio"], told["shared_space"]) == (True, False)
    assert told["partition"]["aws"]["state"] == "AVAILABLE"
    assert hpj("submit", "-c", "true", "--wait", "--json", "--cluster", "local").ok().json["state"] == "succeeded"


def test_without_metadata_the_mount_is_shown_all_the_same(studio, hpj, no_aws, tmp_path):
    no_aws.setenv("AWS_REGION", REGION)
    (studio.root / "metadata.json").unlink()
    told = storage(hpj)
    assert told["studio"] is False
    assert told["partition"]["aws"]["name"] == FILE_SYSTEM
    assert told["partition"]["private_of"] is None
