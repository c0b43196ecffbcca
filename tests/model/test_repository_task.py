"""Where paths of a file system lie in S3, and what a task takes: pure rules."""

from __future__ import annotations

import pytest

from hyperpod_jlab.core.file_system import Association
from hyperpod_jlab.features.storage.models import kind_of, linked_places, path_problem, task_path

LINKS = (
    Association("/alice/data", "s3://bucket/data/"),
    Association("/alice/data/raw", "s3://other"),
    Association("/bob", "s3://bucket/bob"),
)


@pytest.mark.parametrize(
    ("path", "places"),
    [
        ("/alice/data", ["s3://bucket/data"]),
        ("/alice/data/x/y z", ["s3://bucket/data/x/y z"]),
        ("/alice/data/raw/1", ["s3://other/1"]),
        ("/alice/database", []),
        ("/alice", ["s3://bucket/data/", "s3://other"]),
        ("/", ["s3://bucket/data/", "s3://other", "s3://bucket/bob"]),
        ("/carol", []),
    ],
)
def test_the_places_of_a_path(path, places):
    assert linked_places(path, LINKS) == places


def test_a_whole_file_system_that_is_linked():
    assert linked_places("/a/b", [Association("/", "s3://bucket/p")]) == ["s3://bucket/p/a/b"]


@pytest.mark.parametrize(("path", "given"), [("/", "/"), ("/a/b", "a/b"), ("/a/", "a")])
def test_a_path_is_relative_to_the_root_of_the_file_system(path, given):
    assert task_path(path) == given


@pytest.mark.parametrize(
    ("path", "good"),
    [("/a", True), ("/a\nb", False), ("/\u2028", False), ("/" + "x" * 4096, False)],
)
def test_what_a_task_takes(path, good):
    assert (path_problem(path) is None) == good


def test_a_newer_kind_is_shown_as_it_is():
    assert (kind_of("EXPORT_TO_REPOSITORY"), kind_of("AUTO_RELEASE_DATA")) == (
        "export",
        "AUTO_RELEASE_DATA",
    )
