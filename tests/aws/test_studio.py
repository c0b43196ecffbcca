"""Where in Studio: the metadata as they are, half of them, none."""

from __future__ import annotations

import json

import pytest

from hyperpod_jlab.aws.studio import Studio, find_studio, parse_arn

NOT_BOOL = {
    "AppType": "JupyterLab",
    "DomainId": "d-abc",
    "UserProfileName": "alice",
    "SpaceName": "alices-space",
    "ExecutionRoleArn": "arn:aws-us-gov:iam::111122223333:role/StudioRole",
    "ResourceArn": "arn:aws-us-gov:sagemaker:us-gov-west-1:111122223333:app/d-abc/alices-space/JupyterLab/default",
    "ResourceName": "default",
    "AppImageVersion": "",
}


@pytest.fixture
def metadata(tmp_path):
    return tmp_path / "resource-metadata.json"


def test_the_whole_metadata(metadata):
    metadata.write_text(json.dumps(NOT_BOOL))
    assert find_studio(metadata) == Studio(
        metadata,
        app_type="JupyterLab",
        domain_id="d-abc",
        user_profile="alice",
        space="alices-space",
        role_arn=NOT_BOOL["ExecutionRoleArn"],
        partition="aws-us-gov",
        region="us-gov-west-1",
        account="111122223333",
    )


def test_outside_of_studio_there_is_none(metadata):
    assert find_studio(metadata) is None
    assert find_studio(metadata / "below-a-file-that-is-none") is None
    metadata.write_text("{}")
    assert find_studio(metadata / "below-a-file") is None


def test_the_variable_of_aws_own_extensions_names_another_file(metadata, monkeypatch):
    metadata.write_text(json.dumps(NOT_BOOL))
    monkeypatch.setenv("RESOURCE_METADATA_FILE", str(metadata))
    found = find_studio()
    assert found is not None
    assert found.space == "alices-space"


def test_a_space_application_does_not_say_the_profile(metadata):
    less = {name: value for name, value in NOT_BOOL.items() if name != "UserProfileName"}
    metadata.write_text(json.dumps(less))
    found = find_studio(metadata)
    assert found is not None
    assert (found.user_profile, found.space, found.problems) == (None, "alices-space", ())


def test_without_its_own_arn_the_role_tells_the_account_but_not_the_region(metadata):
    less = {name: value for name, value in NOT_BOOL.items() if name != "ResourceArn"}
    metadata.write_text(json.dumps(less))
    found = find_studio(metadata)
    assert found is not None
    assert (found.account, found.partition, found.region) == ("111122223333", "aws-us-gov", None)
    assert "has no ResourceArn" in found.problems[0]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (json.dumps(NOT_BOOL)[:60].encode(), "not valid JSON"),
        (b"", "not valid JSON"),
        (b"[1, 2]", "is not a JSON object"),
        (b"\xff\xfe{}", "cannot be read"),
        (json.dumps({**NOT_BOOL, "DomainId": 7, "SpaceName": None}).encode(), "has no DomainId"),
        (json.dumps({**NOT_BOOL, "DomainId": ""}).encode(), "has no DomainId"),
    ],
)
def test_broken_metadata_are_told_and_stop_nothing(metadata, content, words):
    metadata.write_bytes(content)
    found = find_studio(metadata)
    assert found is not None
    assert words in found.problems[0]
    assert found.domain_id is None


def test_a_file_that_may_not_be_read(metadata, monkeypatch):
    metadata.mkdir()  # root may read every file
    found = find_studio(metadata)
    assert found is not None
    assert "cannot be read" in found.problems[0]


@pytest.mark.parametrize("text", [None, "", "arn:aws:iam", "urn:aws:iam::1:role/x"])
def test_what_is_no_arn(text):
    assert parse_arn(text) is None
