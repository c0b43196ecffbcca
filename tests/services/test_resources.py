"""What is read of a run's samples and ranks: the partition is hostile ground, so whatever is wrong is left out."""

from __future__ import annotations

import json
import os

import pytest

from hyperpod_jlab.core.errors import NotFoundError
from hyperpod_jlab.run.overview import read_overview
from hyperpod_jlab.run.resources import MAX_NODES, MAX_POINTS, read_log_folders, read_resources

HEAD = {"format": 1, "cpus": 4, "memory": 1000, "gpus": [{"index": 0, "name": "H100", "memory": 80}]}


def sample(time: float, memory: int = 1) -> dict[str, object]:
    return {"time": time, "cpu": 0.5, "memory": 400, "ranks": [[0, 1.0, memory], [1, None, 7]], "gpus": [[0, 50.0, 40]]}


@pytest.fixture
async def bundle(place):
    run_id = await place.submit("true")
    await place.ended(run_id)
    bundle = place.hyperpod.runs.bundle(run_id)
    for path in bundle.records.glob("logs/*/*.resources.jsonl"):
        path.unlink()
    return bundle


def write(bundle, *lines, attempt=1, node=0):
    folder = bundle.records / "logs" / f"attempt-{attempt}"
    folder.mkdir(exist_ok=True)
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    (folder / f"node-{node}.resources.jsonl").write_text(text + "\n")


async def test_series_of_ranks_nodes_and_gpus_share_an_axis(bundle):
    write(bundle, HEAD, sample(100, 5), sample(110, 9), sample(120, 3))
    found = read_resources(bundle)
    assert (found.attempt, found.begin, found.step_s, found.nodes) == (1, 100, 10, [0])
    by_key = {(one.kind, one.rank, one.gpu): one for one in found.series}
    rank = by_key["memory", 0, None]
    assert (rank.values, rank.last, rank.peak, rank.limit) == ([5, 9, 3], 3, 9, None)
    assert by_key["memory", None, None].limit == 1000
    assert by_key["cpu", None, None].values == [0.5, 0.5, 0.5]
    gpu = by_key["gpu_memory", None, 0]
    assert (gpu.values, gpu.limit, gpu.name) == ([40, 40, 40], 80, "H100")
    assert ("cpu", 1, None) not in by_key, "it is never known"


async def test_many_samples_become_few_points_that_keep_the_largest(bundle):
    rows = [sample(float(time), 5) for time in range(2000)]
    rows[777] = sample(777.0, 999)
    write(bundle, HEAD, *rows)
    found = read_resources(bundle)
    rank = next(one for one in found.series if (one.kind, one.rank) == ("memory", 0))
    assert len(rank.values) == MAX_POINTS
    assert max(value or 0 for value in rank.values) == rank.peak == 999
    assert None not in rank.values


async def test_the_newest_attempt_or_the_one_asked_for(bundle):
    write(bundle, HEAD, sample(1, 1))
    write(bundle, HEAD, sample(2, 2), attempt=2)
    (bundle.records / "logs" / "attempt-3").mkdir()
    assert read_resources(bundle).attempt == 2
    assert read_resources(bundle, attempt=1).begin == 1
    assert read_resources(bundle, attempt=9).attempt is None


async def test_many_nodes_are_named_and_asked_for_one_by_one(bundle):
    for node in range(MAX_NODES + 2):
        write(bundle, HEAD, sample(1), node=node)
    found = read_resources(bundle)
    assert found.nodes == list(range(MAX_NODES + 2))
    assert {one.node_rank for one in found.series} == set(range(MAX_NODES))
    last = read_resources(bundle, node=MAX_NODES + 1)
    assert {one.node_rank for one in last.series} == {MAX_NODES + 1}


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{",
        "[]",
        '{"time": "soon"}',
        '{"time": 1e400, "memory": 1}',
        '{"time": NaN}',
        '{"time": 5, "memory": -1}',
        '{"time": 5, "ranks": [[1]]}',
        '{"time": 5, "ranks": [["a", 1, 1]]}',
        json.dumps({"time": 5, "ranks": [[0, 1, 1]] * 2000}),
        "\x00" * 100,
    ],
)
async def test_a_line_that_is_not_valid_is_passed_over(bundle, line):
    write(bundle, HEAD, sample(1), line, sample(2))
    assert read_resources(bundle).step_s == 1


async def test_neither_links_nor_pipes_nor_giants_are_read(bundle, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("\n".join(map(json.dumps, (HEAD, sample(1)))))
    folder = bundle.records / "logs" / "attempt-1"
    (folder / "node-0.resources.jsonl").symlink_to(secret)
    os.mkfifo(folder / "node-1.resources.jsonl")
    with (folder / "node-2.resources.jsonl").open("wb") as giant:
        giant.truncate(1 << 40)
    assert read_resources(bundle).series == []


async def test_a_run_that_is_not_there(place):
    with pytest.raises(NotFoundError):
        read_resources(place.hyperpod.runs.bundle("nobody"))


async def test_the_ranks_of_a_run_and_what_became_of_them(place):
    # Rank 1 fails once rank 0 is there, which the launcher then ends.
    command = 'touch "$RANK"; until [ -e 0 ] && [ -e 1 ]; do sleep 0.1; done; [ "$RANK" = 0 ] && exec sleep 60; exit 3'
    run_id = await place.submit(command, launcher="python", resources={"processes_per_node": 2}, time_limit=600)
    await place.ended(run_id)
    overview = read_overview(place.hyperpod.runs.bundle(run_id))
    assert (overview.time_limit, overview.attempt) == (600, 1)
    assert [(one.rank, one.state, one.exit_code) for one in overview.ranks] == [(0, "stopped", 143), (1, "failed", 3)]
    (phases,) = overview.attempts
    times = [phases.started_at, phases.ranks_started_at, phases.ended_at]
    known = [time for time in times if time is not None]
    assert known == sorted(known)
    assert len(known) == 3


async def test_a_run_that_waits_has_no_ranks_yet(place):
    run_id = await place.submit("true", after=[await place.submit("sleep 60")])
    overview = read_overview(place.hyperpod.runs.bundle(run_id))
    assert (overview.attempts, overview.attempt, overview.ranks) == ([], None, [])


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"log_folders": ["/x/a b"]}, ["/x/a b"]),
        ({"ports": [6006], "log_folders": ["/x/a b"]}, ["/x/a b"]),  # an older version's
        ({}, ["/first"]),
        ({"log_folders": []}, []),
        ({"log_folders": ["/a\nb"]}, ["/first"]),
        ({"log_folders": ["relative"]}, ["/first"]),
    ],
)
async def test_log_folders_are_those_of_the_newest_sample_that_has_them(bundle, told, expected):
    first = sample(100) | {"log_folders": ["/first"]}
    write(bundle, HEAD, first, sample(110) | told, sample(120))
    assert read_log_folders(bundle, 1) == {0: expected}
    assert read_overview(bundle).log_folders == [], "the run has ended"
