"""A partition that fills up or becomes read-only in mid-submit, for real."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.mounts import on_small_disk

pytestmark = pytest.mark.local

BEFORE = ["captured", "checked", "staged"]
RUN = ["run-1", "succeeded", None]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, object]]:
    """What became of each case; three at a time, each on a disk of its own."""
    cases = [f"{trouble}-{step}" for trouble in ("full", "ro") for step in [*BEFORE, "committed"]]
    cases.append("full-sent")
    folders = {case: tmp_path_factory.mktemp(case) for case in cases}

    def run(case: str) -> dict[str, object]:
        place: Path = folders[case] / "disk"
        found: dict[str, object] = on_small_disk("tests.services.small_disk", case, place, options="size=4m,mode=755")
        return found

    with ThreadPoolExecutor(3) as pool:
        return dict(zip(cases, pool.map(run, cases), strict=True))


@pytest.mark.parametrize("step", [*BEFORE, "committed"])
def test_a_full_partition_leaves_nothing_and_the_run_may_be_sent_again(told, step):
    assert told[f"full-{step}"] == {
        "code": "storage_full",
        "exit_code": 2,
        "listed": [],
        "left": [],
        "then": RUN,
        "ran": 1,
    }


@pytest.mark.parametrize("step", BEFORE)
def test_a_read_only_partition_lists_nothing_and_the_run_may_be_sent_again(told, step):
    assert told[f"ro-{step}"] == {
        "code": "storage_read_only",
        "exit_code": 2,
        "listed": [],
        "left": [".staging"] if step == "staged" else [],  # nobody can remove it then
        "then": RUN,
        "ran": 1,
    }


def test_read_only_between_the_bundle_and_the_cluster(told):
    """The bundle cannot be taken back then; it is not said to be more than it is, and may be sent again."""
    found = told["ro-committed"]
    assert found["code"] == "storage_read_only"
    assert found["listed"] == [["run-1", "submitting", None]]
    assert (found["then"], found["ran"]) == (RUN, 1)


def test_full_when_the_cluster_has_it_already(told):
    found = told["full-sent"]
    assert (found["code"], found["then"], found["ran"]) == ("done", RUN, 1)
