"""From submit to the end: success, failure, restarts, time limit, and what stays behind."""

from __future__ import annotations

import json

from hyperpod_jlab.core.wire import to_plain
from tests.local.conftest import LocalCluster


async def test_every_rank_runs_once_with_its_own_log(local: LocalCluster) -> None:
    run_id = await local.submit(
        "echo rank $RANK of $WORLD_SIZE on node $NODE_RANK",
        launcher="python",
        resources={"nodes": 2, "processes_per_node": 2},
    )
    run = await local.ended(run_id)
    assert run.state == "succeeded"
    assert run.status.exit_code == 0
    assert [attempt.nodes for attempt in run.status.attempts] == [("local-0", "local-1")]
    for node in (0, 1):
        for rank in (0, 1):
            expected = f"rank {2 * node + rank} of 4 on node {node}\n"
            assert local.log(run_id, node, rank) == expected


async def test_a_failure_tells_its_exit_code(local: LocalCluster) -> None:
    run = await local.ended(await local.submit("exit 7"))
    assert (run.state, run.status.exit_code, run.status.reason_code) == ("failed", 7, "exit_code")


async def test_one_failing_node_ends_the_others(local: LocalCluster) -> None:
    run_id = await local.submit('if [ "$NODE_RANK" = 1 ]; then exit 5; fi; sleep 300', resources={"nodes": 2})
    run = await local.ended(run_id)
    assert (run.state, run.status.exit_code) == ("failed", 5)
    assert local.processes(run_id) == []


async def test_max_restarts_opens_new_attempts(local: LocalCluster) -> None:
    run_id = await local.submit('echo attempt $HYPERPOD_ATTEMPT; [ "$HYPERPOD_ATTEMPT" = 3 ]', max_restarts=3)
    run = await local.ended(run_id)
    assert run.state == "succeeded"
    assert [attempt.state for attempt in run.status.attempts] == ["failed", "failed", "succeeded"]
    assert local.log(run_id, attempt=3) == "attempt 3\n"


async def test_restarts_run_out(local: LocalCluster) -> None:
    run = await local.ended(await local.submit("exit 4", max_restarts=1))
    assert run.state == "failed"
    assert [attempt.exit_code for attempt in run.status.attempts] == [4, 4]


async def test_the_time_limit_ends_a_run(local: LocalCluster) -> None:
    run_id = await local.submit("echo go; sleep 300", time_limit=2)
    run = await local.ended(run_id)
    assert (run.state, run.status.reason_code) == ("failed", "timeout")
    assert local.processes(run_id) == []


async def test_nothing_of_the_submitters_environment_is_inherited(local: LocalCluster) -> None:
    run_id = await local.submit("env", environment={"variables": {"GIVEN": "a b$c"}})
    await local.ended(run_id)
    variables = dict(line.split("=", 1) for line in local.log(run_id).splitlines() if "=" in line)
    assert variables["GIVEN"] == "a b$c"
    assert variables["HYPERPOD_RUN_ID"] == run_id
    assert "HYPERPOD_CONFIG" not in variables
    assert not [name for name in variables if name.startswith(("XDG_", "PYTEST_"))]


async def test_the_working_folder_takes_what_the_job_writes(local: LocalCluster) -> None:
    (local.folder / "data.txt").write_text("from the project")
    run_id = await local.submit("cat data.txt; echo made >out.txt")
    run = await local.ended(run_id)
    assert run.state == "succeeded"
    assert local.log(run_id) == "from the project"
    assert (local.hyperpod.partition.bundle(run_id) / "work/out.txt").read_text() == "made\n"


async def test_the_record_of_a_run_is_complete(local: LocalCluster) -> None:
    run_id = await local.submit("true", name="named")
    data = to_plain(await local.ended(run_id))
    json.dumps(data)
    assert data["name"] == "named"
    assert data["scheduler_id"].endswith(run_id)
    assert data["submitted_at"] <= data["started_at"] <= data["ended_at"]
    assert data["attempts"][0]["nodes"] == ["local-0"]


async def test_an_ended_run_stays_as_it_is(local: LocalCluster) -> None:
    run_id = await local.submit("true")
    before = await local.ended(run_id)
    after = await local.hyperpod.runs.act(run_id, "cancel")
    assert after.status == before.status


async def test_secrets_serve_every_attempt_and_are_gone_at_the_end(local: LocalCluster) -> None:
    for spec in ({"max_restarts": 1}, {"array": "0-1"}):
        run_id = await local.submit(
            '[ "$TOKEN" = hush ] && [ "${HYPERPOD_ARRAY_INDEX:-$HYPERPOD_ATTEMPT}" != 1 ]',
            environment={"secrets": {"TOKEN": ""}},
            secrets={"TOKEN": "hush"},
            **spec,
        )
        run = await local.ended(run_id)
        if "array" in spec:
            assert run.children == {"succeeded": 1, "failed": 1}
        else:
            assert [attempt.exit_code for attempt in run.status.attempts] == [1, 0]
        bundle = local.hyperpod.partition.bundle(run_id)
        await local.until(run_id, lambda _, bundle=bundle: not (bundle / "secrets").exists())  # type: ignore[misc]
