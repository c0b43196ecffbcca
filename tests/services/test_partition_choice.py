"""Which of several file systems runs go to, on real mounts."""

from __future__ import annotations

from tests.mounts import on_small_disk


def chosen(tmp_path, case):
    return on_small_disk("tests.services.mounted", case, tmp_path / "disk")


def test_the_first_by_name_of_two_and_that_is_said(tmp_path):
    found = chosen(tmp_path, "two")
    assert (found["root"], found["by"]) == ("a", "Studio's mount")
    (note,) = found["notes"]
    assert note.startswith("runs go to ")
    assert "/studio/b is mounted too; set path under [storage]" in note


def test_one_that_can_be_written_before_one_that_cannot(tmp_path):
    assert chosen(tmp_path, "read-only")["root"] == "b"


def test_the_configured_one_without_a_word(tmp_path):
    found = chosen(tmp_path, "configured")
    assert (found["root"], found["by"], found["notes"]) == ("b", "the configuration", [])


def test_a_private_one_is_not_taken_in_a_shared_space(tmp_path):
    found = chosen(tmp_path, "shared")
    assert (found["root"], found["again"]) == ("b", "b")
    (note,) = found["notes"]
    assert "/studio/a cannot be used in this shared space: it is the private partition of alice" in note
    assert (found["calls"], found["calls_again"]) == (2, 0)  # SageMaker's answer is kept


def test_one_that_may_be_private_is_not_taken_either(tmp_path):
    found = chosen(tmp_path, "denied")
    assert (found["root"], found["by"]) == (None, "default")
    assert "it is unknown whether /alice belongs to a user profile" in found["notes"][0]
    assert "which clusters cannot see" in found["notes"][2]
    assert found["calls_again"] == 0
