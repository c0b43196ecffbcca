"""What can be the name of an image, before anything is sent."""

from __future__ import annotations

import pytest

from hyperpod_jlab.engines.kubernetes.submit.native import image_findings, is_image_name

_DIGEST = "sha256:" + "0a" * 32


@pytest.mark.parametrize(
    "text",
    [
        "python",
        "python:3.11-slim",
        "localhost/testbed/python:3.11",
        "localhost:5000/a/b",
        "111122223333.dkr.ecr.us-west-2.amazonaws.com/a/b__c-d.e:v1",
        f"registry.example.com/a@{_DIGEST}",
        f"a:1@{_DIGEST}",
        "Registry/a",
        "[::1]:5000/a",
        "a:" + "t" * 128,
    ],
)
def test_names(text: str):
    assert is_image_name(text)


@pytest.mark.parametrize(
    "text",
    [
        "BAD IMAGE::",
        "Python",
        "a/B",
        "a:",
        "a:b:c",
        "a..b",
        "-a",
        "a/",
        "https://registry.example.com/a",
        "a@sha256:12",
        "a\n",
        " a",
        "a:" + "t" * 129,
        "a" * 256,
    ],
)
def test_what_is_none(text: str):
    assert not is_image_name(text)


def test_every_image_of_an_object_is_looked_at():
    pods = {"spec": {"containers": [{"image": "a b"}], "initContainers": [{"image": "c d"}]}}
    spec = {"x": {"template": pods}, "trainer": {"image": "e f"}}
    found = list(image_findings({"spec": spec}, "environment.image"))
    assert [one.message.split("'")[1] for one in found] == ["a b", "c d", "e f"]
