"""Arrays: a parent run and its children."""

from __future__ import annotations

import pytest

from hyperpod_jlab.core.errors import NotFoundError
from tests.local.conftest import LocalCluster


async def test_children_are_runs_of_their_own(local: LocalCluster) -> None:
    run_id = await local.submit("echo index $HYPERPOD_ARRAY_INDEX", array="0-3%2")
    run = await local.ended(run_id)
    assert run.state == "succeeded"
    assert run.children == {"succeeded": 4}
    children = await local.hyperpod.runs.children(run_id)
    assert [child.run_id for child in children] == [f"{run_id}.{index}" for index in range(4)]
    assert {child.parent for child in children} == {run_id}
    for index in range(4):
        assert local.log(f"{run_id}.{index}") == f"index {index}\n"


async def test_the_parent_has_the_worst_state(local: LocalCluster) -> None:
    run_id = await local.submit('[ "$HYPERPOD_ARRAY_INDEX" != 1 ] || exit 9', array="0-2")
    run = await local.ended(run_id)
    assert (run.state, run.status.exit_code) == ("failed", 9)
    assert run.children == {"succeeded": 2, "failed": 1}
    assert run.status.reason == "2 succeeded, 1 failed"


async def test_cancelling_the_parent_cancels_the_children(local: LocalCluster) -> None:
    run_id = await local.submit("echo on; sleep 300", array="0-4%2", stop_grace=1)
    await local.until(run_id, lambda _: bool(local.log(f"{run_id}.0")))
    await local.hyperpod.runs.act(run_id, "cancel")
    run = await local.ended(run_id)
    assert run.state == "cancelled"
    assert run.children == {"cancelled": 5}
    assert all(not local.processes(f"{run_id}.{index}") for index in range(5))


async def test_one_child_can_be_cancelled(local: LocalCluster) -> None:
    run_id = await local.submit('[ "$HYPERPOD_ARRAY_INDEX" = 0 ] || sleep 300', array="0-1", stop_grace=1)
    child = f"{run_id}.1"
    await local.until(child, lambda run: run.state == "running")
    await local.hyperpod.runs.act(child, "cancel")
    assert (await local.ended(child)).state == "cancelled"
    assert (await local.ended(run_id)).children == {"succeeded": 1, "cancelled": 1}


async def test_a_child_that_is_none(local: LocalCluster) -> None:
    run_id = await local.submit("true", array="1,3")
    with pytest.raises(NotFoundError):
        await local.hyperpod.runs.get(f"{run_id}.2")
    await local.ended(run_id)
