"""Profiles and spaces that are made, and the schedule: the package's other two functions, with events as AWS hands them over."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from testbed.aws.state import Profile, Space, attached, lustre_at
from tests.admin.conftest import DOMAIN, FILE_SYSTEM
from tests.admin.lambdas.conftest import properties

EFS = {"EFSFileSystemConfig": {"FileSystemId": "fs-0efefefefefefefef"}}
CHANGING = {"UpdateDomain", "UpdateUserProfile", "UpdateSpace", "AddTags"}


def event(name, domain=DOMAIN, **detail):
    """What EventBridge has of a call that CloudTrail saw."""
    return {
        "version": "0",
        "id": "6f87d04b-9f74-4f04-a780-7acf4b0a9b38",
        "detail-type": "AWS API Call via CloudTrail",
        "source": "aws.sagemaker",
        "account": "111122223333",
        "time": "2026-11-22T16:00:00Z",
        "region": "us-west-2",
        "resources": [],
        "detail": {
            "eventVersion": "1.11",
            "eventTime": "2026-11-22T16:00:00Z",
            "eventSource": "sagemaker.amazonaws.com",
            "eventName": "CreateUserProfile",
            "awsRegion": "us-west-2",
            "requestParameters": {"domainId": domain, "userProfileName": name},
            "responseElements": {"userProfileArn": f"arn:aws:sagemaker:...:{domain}/{name}"},
            "eventType": "AwsApiCall",
            **detail,
        },
    }


def space_event(name, call="CreateSpace", domain=DOMAIN, **requested):
    """The same of a space; what CloudTrail has of the owner is not needed."""
    given = {"domainId": domain, "spaceName": name, **requested}
    return event("", eventName=call, requestParameters=given)


def batch(*bodies):
    """What a queue hands Lambda."""
    return {
        "Records": [
            {
                "messageId": f"message-{number}",
                "receiptHandle": "AQEBwJnKyrHigUMZj6rYigCgxlaS3SLy0a...",
                "body": body if isinstance(body, str) else json.dumps(body),
                "attributes": {"ApproximateReceiveCount": "1"},
                "messageAttributes": {},
                "eventSource": "aws:sqs",
                "eventSourceARN": "arn:aws:sqs:us-west-2:111122223333:new-profiles",
                "awsRegion": "us-west-2",
            }
            for number, body in enumerate(bodies)
        ]
    }


@pytest.fixture
def wired(function, stack):
    """The function, in the environment of a stack that was made in mode shared."""
    assert stack.create(**properties())["Status"] == "SUCCESS"
    function.environment |= {
        "HPJ_DOMAIN_ID": DOMAIN,
        "HPJ_FILE_SYSTEM_ID": FILE_SYSTEM,
        "HPJ_PARTITION_MODE": "shared",
        "HPJ_SHARED_PATH": "/shared",
        "HPJ_FOLDERS": "cluster",
        "HPJ_CLUSTER_NAME": "",
    }
    return function


def again(invoked):
    assert invoked.error is None, invoked.error
    return {one["itemIdentifier"] for one in invoked.result["batchItemFailures"]}


def test_one_that_has_the_domains_defaults_needs_nothing(account, endpoint, wired):
    account.profiles[DOMAIN, "dora"] = Profile()
    endpoint.calls.clear()
    assert again(wired.invoke("new_profile", batch(event("dora")))) == set()
    assert account.profiles[DOMAIN, "dora"].file_systems == []
    # Nobody else is read, whatever the domain's size.
    described = [one for one in endpoint.calls if one.action == "sagemaker:DescribeUserProfile"]
    assert [one.given["UserProfileName"] for one in described] == ["dora"]


def test_each_message_has_a_fate_of_its_own(account, wired):
    account.profiles[DOMAIN, "dora"] = Profile(file_systems=[EFS])
    account.profiles[DOMAIN, "ed"] = Profile(file_systems=[EFS], status="Pending")
    account.spaces[DOMAIN, "dora-work"] = Space("dora")
    account.profiles[DOMAIN, "flo"] = Profile(file_systems=[EFS], status="Failed")
    wired.seconds = 10
    invoked = wired.invoke(
        "new_profile",
        batch(
            event("dora"),
            event("ed"),  # not made yet: it comes again
            event("gone"),  # deleted since
            event("far", domain="d-other"),
            event("bad", errorCode="ValidationException", requestParameters=None),
            event("flo"),  # the schedule tells it
            "no JSON",
            {"detail": {"eventName": "CreateUserProfile"}, "source": "aws.sagemaker"},
            {"source": "aws.sagemaker"},
            event("x", eventName="DeleteUserProfile"),
        ),
    )
    assert again(invoked) == {"message-1", "message-6", "message-7", "message-8"}
    assert account.profiles[DOMAIN, "dora"].file_systems == [EFS, lustre_at(FILE_SYSTEM, "/shared")]
    assert account.spaces[DOMAIN, "dora-work"].file_systems == [attached(FILE_SYSTEM)]
    assert account.profiles[DOMAIN, "ed"].file_systems == [EFS]
    account.profiles[DOMAIN, "ed"].status = "InService"
    assert again(wired.invoke("new_profile", batch(event("ed")))) == set()
    assert account.profiles[DOMAIN, "ed"].file_systems == [EFS, lustre_at(FILE_SYSTEM, "/shared")]


def test_a_new_space_has_the_file_system_at_once(account, endpoint, wired):
    account.spaces[DOMAIN, "dora-work"] = Space("alice")
    account.spaces[DOMAIN, "all"] = Space("bob", sharing="Shared")
    account.spaces[DOMAIN, "carol-work"] = Space("carol")
    endpoint.calls.clear()
    messages = batch(
        space_event("dora-work"),
        space_event("all"),
        space_event("gone"),
        space_event("x", domain="d-other"),
        event("", eventName="CreateSpace", requestParameters={"domainId": DOMAIN}),
        event("", eventName="DeleteApp", requestParameters={"domainId": DOMAIN}),
        event("", eventName="CreateSpace", errorCode="ValidationException"),
    )
    assert again(wired.invoke("new_profile", messages)) == {"message-4"}
    for name in ("dora-work", "all"):
        assert account.spaces[DOMAIN, name].file_systems == [attached(FILE_SYSTEM)]
    assert account.spaces[DOMAIN, "carol-work"].file_systems == []
    # The owner of a private space is looked at too, and nobody else.
    described = [one for one in endpoint.calls if one.action == "sagemaker:DescribeUserProfile"]
    assert [one.given["UserProfileName"] for one in described] == ["alice"]
    endpoint.calls.clear()
    assert again(wired.invoke("new_profile", messages)) == {"message-4"}
    assert not [one.action for one in endpoint.calls if one.action.partition(":")[2] in CHANGING]


def test_a_space_that_sagemaker_still_makes_is_waited_for(account, wired):
    made = account.spaces[DOMAIN, "dora-work"] = Space("alice", status="Pending")
    account.timeline.after(timedelta(seconds=10), lambda: setattr(made, "status", "InService"))
    assert again(wired.invoke("new_profile", batch(space_event("dora-work")))) == set()
    assert made.file_systems == [attached(FILE_SYSTEM)]


def test_a_space_that_was_started_before_is_wired_once_it_is_stopped(account, wired):
    made = account.spaces[DOMAIN, "dora-work"] = Space("alice", apps=["JupyterLab"])
    # It is no failure, and does not come again: who stops it says so by another event.
    assert again(wired.invoke("new_profile", batch(space_event("dora-work")))) == set()
    assert made.file_systems == []
    made.apps.clear()
    assert again(wired.invoke("new_profile", batch(space_event("dora-work", "DeleteApp")))) == set()
    assert made.file_systems == [attached(FILE_SYSTEM)]


def test_in_mode_per_user_a_space_is_for_its_owner_only(account, wired):
    wired.environment |= {"HPJ_PARTITION_MODE": "per-user", "HPJ_FOLDERS": "none"}
    account.spaces[DOMAIN, "dora-work"] = Space("alice")
    account.spaces[DOMAIN, "all"] = Space("bob", sharing="Shared")
    messages = batch(space_event("dora-work"), space_event("all"))
    assert again(wired.invoke("new_profile", messages)) == set()
    assert account.spaces[DOMAIN, "dora-work"].file_systems == [attached(FILE_SYSTEM)]
    assert account.profiles[DOMAIN, "alice"].file_systems == [lustre_at(FILE_SYSTEM, "/alice")]
    assert account.spaces[DOMAIN, "all"].file_systems == []


def test_one_that_fails_comes_again_alone(account, endpoint, wired):
    for name in ("dora", "ed"):
        account.profiles[DOMAIN, name] = Profile(file_systems=[EFS])
    endpoint.faults.deny("sagemaker:UpdateUserProfile", "ed")
    invoked = wired.invoke("new_profile", batch(event("dora"), event("ed")))
    assert again(invoked) == {"message-1"}
    assert "profile ed: you do not have the permission sagemaker:UpdateUserProfile" in invoked.log


def test_when_nothing_can_be_read_all_come_again(account, endpoint, wired):
    endpoint.faults.deny("sagemaker:ListUserProfiles")
    invoked = wired.invoke("new_profile", batch(event("dora"), event("far", domain="d-other")))
    assert again(invoked) == {"message-0"}


def test_when_time_is_up_those_that_are_left_come_again(account, endpoint, wired):
    names = [f"user{number:02d}" for number in range(60)]
    for name in names:
        account.profiles[DOMAIN, name] = Profile(file_systems=[EFS])
    endpoint.faults.slow["sagemaker:UpdateUserProfile"] = 1.5
    wired.seconds = 10
    left = again(wired.invoke("new_profile", batch(*map(event, names))))
    assert 0 < len(left) < 60
    endpoint.faults.slow.clear()
    wired.seconds = 90
    assert again(wired.invoke("new_profile", batch(*map(event, names)))) == set()


def test_the_environment_has_to_be_right(account, wired):
    wired.environment["HPJ_PARTITION_MODE"] = "private"
    for name in ("new_profile", "reconcile"):
        error = wired.invoke(name, batch(event("dora"))).error
        assert error["errorType"] == "InvalidInputError"
        assert "PartitionMode must be one of" in error["errorMessage"]


def test_the_schedule_does_what_no_event_told(account, endpoint, wired):
    account.profiles[DOMAIN, "dora"] = Profile(file_systems=[EFS])
    account.domains[DOMAIN].file_systems = []
    account.spaces[DOMAIN, "work"].apps = ["JupyterLab"]
    account.spaces[DOMAIN, "work"].file_systems = []
    invoked = wired.invoke("reconcile", {"source": "aws.events"})
    assert invoked.result["changed"] == 2
    assert (invoked.result["failed"], invoked.result["left"]) == (0, 0)
    assert "space work waits" in invoked.log
    assert "profile dora: not mounted -> /shared" in invoked.log
    assert account.domains[DOMAIN].file_systems == [lustre_at(FILE_SYSTEM, "/shared")]
    assert account.profiles[DOMAIN, "dora"].file_systems == [EFS, lustre_at(FILE_SYSTEM, "/shared")]
    endpoint.calls.clear()
    assert wired.invoke("reconcile", {}).result["changed"] == 0
    assert not [one.action for one in endpoint.calls if one.action.partition(":")[2] in CHANGING]


def test_the_schedule_says_what_fails_as_an_error(account, endpoint, wired):
    account.profiles[DOMAIN, "dora"] = Profile(file_systems=[EFS])
    endpoint.faults.deny("sagemaker:UpdateUserProfile")
    error = wired.invoke("reconcile", {}).error
    assert error["errorType"] == "RefusedError"
    assert "profile dora" in error["errorMessage"]


def test_the_schedule_goes_on_the_next_time(account, endpoint, wired):
    for number in range(60):
        account.profiles[DOMAIN, f"user{number:02d}"] = Profile(file_systems=[EFS])
    endpoint.faults.slow["sagemaker:UpdateUserProfile"] = 1.5
    wired.seconds = 10
    first = wired.invoke("reconcile", {}).result
    assert 0 < first["changed"] < 60
    assert first["left"] + first["changed"] + first["failed"] >= 60
    assert "timed out before" in first["summary"]
    endpoint.faults.slow.clear()
    wired.seconds = 90
    second = wired.invoke("reconcile", {}).result
    assert (second["left"], second["failed"]) == (0, 0)
    assert 0 < second["changed"] < 60
