"""``hpj storage export``, ``release``, ``import``, ``tasks`` and ``cancel`` by AWS' data repository tasks."""

from __future__ import annotations

import json
import sys
from datetime import timedelta

import pytest

from testbed.aws.example import FILE_SYSTEM, MOUNT_NAME, example_account
from testbed.aws.fsx_tasks import CANCELS, WAITS, WORKS
from testbed.aws.state import DataRepositoryTask, LustreFileSystem
from testbed.aws.studio import SimulatedStudio
from tests.aws.conftest import REGION
from tests.storage import recorded_lfs


@pytest.fixture
def studio(endpoint, no_aws, tmp_path, home):
    """A space whose partition is the folder /alice of a file system, of which /alice/data is linked to S3."""
    endpoint.account = example_account(REGION)
    made = SimulatedStudio(tmp_path / "studio", REGION)
    made.write(endpoint.account)
    (made.mount_point / "data").mkdir(parents=True)
    (made.mount_point / "own").mkdir()
    for name, value in made.environment.items():
        no_aws.setenv(name, value)
    no_aws.setenv("PATH", "/usr/bin:/bin")  # no lfs
    return made


@pytest.fixture
def data(studio):
    return studio.mount_point / "data"


def created(endpoint):
    return [call.given for call in endpoint.calls if call.action == "fsx:CreateDataRepositoryTask"]


def later(endpoint, by):
    endpoint.advance(by + timedelta(seconds=1))


def test_an_export_without_lfs_is_a_task_with_paths_from_the_root_of_the_file_system(
    hpj, endpoint, data
):
    (data / "a.tar").write_text("x")
    told = hpj("storage", "export", str(data / "a.tar"), str(data), "--json").ok().json
    (given,) = created(endpoint)
    token = given.pop("ClientRequestToken")
    assert len(token) > 10
    assert given == {
        "FileSystemId": FILE_SYSTEM,
        "Type": "EXPORT_TO_REPOSITORY",
        "Paths": ["alice/data/a.tar", "alice/data"],
        "Report": {"Enabled": False},
    }
    (task,) = told["tasks"]
    assert (task["state"], task["kind"], task["report"]) == ("PENDING", "export", None)
    assert {(one["done"], one["task"]) for one in told["files"]} == {("asked", task["task_id"])}


def test_a_task_goes_its_way(hpj, endpoint, data):
    hpj("storage", "export", str(data)).ok()

    def look():
        (task,) = hpj("storage", "tasks", "--json").ok().json["tasks"]
        return task["state"], task["total"], task["succeeded"], task["failed"]

    assert look() == ("PENDING", None, None, None)
    busy = hpj("storage", "release", str(data), "--json")
    assert (busy.code, busy.error["code"]) == (2, "task_running")
    assert "hpj storage tasks" in busy.error["hint"]
    assert busy.json["files"][0]["done"] == "refused"
    later(endpoint, WAITS)
    assert look() == ("EXECUTING", 10, 5, 0)
    assert "5/10" in hpj("storage", "tasks").ok().out
    endpoint.account.tasks[REGION][0].failed = 2
    later(endpoint, WORKS)
    assert look() == ("FAILED", 10, 8, 2)
    assert "2 of 10 files could not be processed" in hpj("storage", "tasks").ok().out
    hpj("storage", "export", str(data)).ok()


def test_a_task_is_cancelled_once(hpj, endpoint, data):
    told = hpj("storage", "export", str(data), "--json").ok().json
    name = told["tasks"][0]["task_id"]
    later(endpoint, WAITS)
    cancelled = hpj("storage", "cancel", name, "--json").ok().json
    assert cancelled == {"task": name, "state": "CANCELING"}
    later(endpoint, CANCELS)
    (task,) = hpj("storage", "tasks", name, "--json").ok().json["tasks"]
    assert (task["state"], task["succeeded"]) == ("CANCELED", 5)
    again = hpj("storage", "cancel", name, "--json")
    assert (again.code, again.error["code"]) == (2, "task_ended")
    unknown = hpj("storage", "cancel", f"task-{0:017x}", "--json")
    assert (unknown.code, unknown.error["code"]) == (3, "not_found")


def test_a_release_names_the_age_and_a_report_is_made_on_demand_only(hpj, endpoint, data):
    words = ("--unused-for", "30", "--report", "s3://example-bucket/data/reports")
    told = hpj("storage", "release", str(data), *words, "--json").ok().json
    (given,) = created(endpoint)
    assert given["ReleaseConfiguration"] == {
        "DurationSinceLastAccess": {"Unit": "DAYS", "Value": 30}
    }
    assert given["Report"] == {
        "Enabled": True,
        "Path": "s3://example-bucket/data/reports",
        "Format": "REPORT_CSV_20191124",
        "Scope": "FAILED_FILES_ONLY",
    }
    assert told["tasks"][0]["report"] == "s3://example-bucket/data/reports"


def test_an_import_names_the_places_in_s3(hpj, endpoint, studio, data):
    (data / "new").mkdir()
    hpj("storage", "import", str(data / "new"), str(studio.mount_point)).ok()
    (given,) = created(endpoint)
    assert given["Type"] == "IMPORT_METADATA_FROM_REPOSITORY"
    assert given["Paths"] == ["s3://example-bucket/data/new", "s3://example-bucket/data/"]


def test_the_whole_file_system_is_named_in_no_path_but_by_a_release(hpj, endpoint, studio, data):
    table = studio.mount_table
    table.write_text(table.read_text().replace("/alice rw", " rw"))
    hpj("storage", "export", str(studio.mount_point)).ok()
    assert "Paths" not in created(endpoint)[0]
    later(endpoint, WAITS)
    later(endpoint, WORKS)
    hpj("storage", "release", str(studio.mount_point)).ok()
    assert created(endpoint)[1]["Paths"] == ["/"]


def test_what_no_task_can_have_is_named_and_stops_no_other(hpj, endpoint, studio, data):
    link, odd = data / "link", data / "odd\nname"
    link.symlink_to(data)
    odd.write_text("x")
    paths = [str(data), str(studio.mount_point / "own"), str(link), str(odd), str(data / "no")]
    told = hpj("storage", "export", *paths, str(studio.folder), "--json")
    assert told.code == 2
    reasons = [one["reason"] for one in told.json["files"]]
    assert reasons[0] is None
    assert reasons[1] == "it is not in a folder that is linked to S3"
    assert "/alice/data" in told.json["files"][1]["hint"]
    assert reasons[2].startswith("it is a link")
    assert "line break" in reasons[3]
    assert reasons[4] == "No such file or directory"
    assert reasons[5] == "it is on ext4, not on Lustre"
    assert created(endpoint)[0]["Paths"] == ["alice/data"]


def test_too_many_paths_are_refused_as_a_whole(hpj, endpoint, data):
    for number in range(101):
        (data / f"{number:03}").write_text("x")
    told = hpj("storage", "export", *map(str, sorted(data.iterdir())), "--json")
    assert (told.code, told.error["code"]) == (2, "too_many_paths")
    assert {one["done"] for one in told.json["files"]} == {"refused"}
    assert created(endpoint) == []


def test_missing_rights_are_named(hpj, endpoint, data):
    endpoint.faults.deny("fsx:CreateDataRepositoryTask")
    told = hpj("storage", "export", str(data), "--json")
    assert (told.code, told.error["code"]) == (4, "missing_right")
    assert (
        told.json["files"][0]["reason"]
        == "you do not have the permission fsx:CreateDataRepositoryTask"
    )
    endpoint.faults.denied.clear()
    # The mount names the file system, so what describes it is not needed; an import needs its links.
    endpoint.faults.deny("fsx:DescribeFileSystems")
    endpoint.faults.deny("fsx:DescribeDataRepositoryAssociations")
    told = hpj("storage", "import", str(data), "--json")
    assert told.error["detail"]["right"] == {"action": "fsx:DescribeDataRepositoryAssociations"}
    hpj("storage", "export", str(data)).ok()


def test_a_file_system_without_links(hpj, endpoint, data):
    endpoint.account.file_systems[REGION][0].associations = []
    told = hpj("storage", "export", str(data), "--json")
    assert told.code == 2
    assert told.json["files"][0]["hint"] == "no folders are linked"
    assert created(endpoint) == []


def test_tasks_of_other_file_systems_are_seen_by_their_id_only(hpj, endpoint, data):
    other = "fs-0aaaaaaaaaaaaaaaa"
    endpoint.account.file_systems[REGION].append(LustreFileSystem(other, "other"))
    endpoint.account.tasks[REGION] = [
        DataRepositoryTask(
            f"task-{number:017x}", other if number % 2 else FILE_SYSTEM, "AUTO_RELEASE_DATA"
        )
        for number in range(120)
    ]
    told = hpj("storage", "tasks", "--json").ok().json["tasks"]
    assert len(told) == 60
    assert {(task["file_system"], task["kind"]) for task in told} == {
        (FILE_SYSTEM, "AUTO_RELEASE_DATA")
    }
    (one,) = hpj("storage", "tasks", f"task-{1:017x}", "--json").ok().json["tasks"]
    assert one["file_system"] == other


def test_aws_brings_no_bytes_back(hpj, endpoint, data):
    refused = hpj("storage", "hydrate", str(data), "--by", "aws", "--json")
    assert (refused.code, refused.error["code"]) == (2, "no_such_task")
    assert "read the file" in refused.error["hint"]
    assert hpj("storage", "hydrate", str(data), "--json").error["code"] == "no_lfs"
    assert hpj("storage", "export", str(data), "--by", "lfs", "--json").error["code"] == "no_lfs"
    assert endpoint.calls == []


def test_what_lustre_does_not_permit_aws_does(hpj, endpoint, data, no_aws, tmp_path):
    program = tmp_path / "bin" / "lfs"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {recorded_lfs.__file__} "$@"\n')
    program.chmod(0o755)
    states = tmp_path / "states.json"
    mine, theirs = data / "there", data / "here"
    for path in (mine, theirs):
        path.write_text("x")
    flags = {str(mine): {"flags": 0x9, "archive": 1}, str(theirs): {"flags": 0}}
    states.write_text(json.dumps({"calls": [], **flags}))
    no_aws.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    no_aws.setenv("LFS_STATES", str(states))
    no_aws.setenv("LFS_DENIES", "hsm_archive hsm_release")
    told = hpj("storage", "export", str(mine), str(theirs), "--json").ok().json
    # What is copied already needs no task; the state that Lustre tells stays known.
    assert [(one["done"], one["state"]) for one in told["files"]] == [
        ("nothing", "archived"),
        ("asked", "local"),
    ]
    assert created(endpoint)[0]["Paths"] == ["alice/data/here"]
    endpoint.faults.deny("fsx:CreateDataRepositoryTask")
    told = hpj("storage", "release", str(mine), "--json")
    assert told.code == 4
    assert (
        "Operation not permitted; AWS: you do not have the permission"
        in told.json["files"][0]["reason"]
    )


def test_the_file_system_is_found_by_its_mount_name(hpj, endpoint, no_aws, studio, tmp_path):
    point = tmp_path / "fsx"
    (point / "alice" / "data").mkdir(parents=True)
    studio.mount_table.write_text(
        "22 1 259:1 / / rw - ext4 /dev/root rw\n"
        f"31 22 0:41 / {point} rw - lustre 10.0.1.2@tcp:/{MOUNT_NAME} rw\n"
    )
    hpj("storage", "export", str(point / "alice" / "data")).ok()
    assert created(endpoint)[0]["FileSystemId"] == FILE_SYSTEM
    assert created(endpoint)[0]["Paths"] == ["alice/data"]
    endpoint.account.file_systems[REGION].append(
        LustreFileSystem("fs-0aaaaaaaaaaaaaaaa", MOUNT_NAME)
    )
    refused = hpj("storage", "export", str(point / "alice" / "data"), "--json")
    assert (refused.code, refused.error["code"]) == (3, "not_found")


@pytest.mark.parametrize("words", [("--report", "s3://b/r"), ("--unused-for", "3")])
def test_options_of_tasks_are_not_for_lfs(hpj, data, words):
    refused = hpj("storage", "release", str(data), "--by", "lfs", *words, "--json")
    assert refused.code == 2
    assert "only with AWS tasks" in refused.error["message"]
