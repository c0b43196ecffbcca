"""What node 0 reads of the other nodes' files of numbers, and that a hang names the ranks of all nodes that are behind."""

import json
import os
from pathlib import Path

import pytest

from hyperpod_jlab.launcher.bundle_files import AttemptPaths
from hyperpod_jlab.launcher.metrics import RankReader
from hyperpod_jlab.launcher.other_nodes import newest_steps

from .conftest import until

# --------------------------------------------------------------------------------------------------
# The files.


@pytest.fixture
def paths(tmp_path: Path) -> AttemptPaths:
    found = AttemptPaths(str(tmp_path), str(tmp_path), 1, 0)
    Path(found.logs).mkdir(parents=True)
    return found


def append(paths: AttemptPaths, node: int, *lines: bytes) -> None:
    with Path(paths.metrics_path(node)).open("ab") as file:
        file.write(b"".join(line + b"\n" for line in lines))


def record(rank: int, step: int, time: float) -> bytes:
    return json.dumps({"time": time, "rank": rank, "step": step, "values": {"loss": 1.0}}).encode()


def test_the_newest_step_of_each_rank(paths: AttemptPaths) -> None:
    lines = [record(rank, step, 100.0 + step) for step in range(500) for rank in (2, 3)]
    append(paths, 1, b'{"format":1}', *lines)
    append(paths, 0, record(0, 7, 100.0))  # its own
    assert newest_steps(paths, 3, 2) == {2: 499, 3: 499}
    append(paths, 1, record(3, 510, 599.0))
    append(paths, 2, record(4, 3, 599.0))
    assert newest_steps(paths, 3, 2) == {2: 499, 3: 510, 4: 3}


@pytest.mark.parametrize(
    "line",
    [
        b"\x00\xff garbage",
        b"[" * 100_000,
        b'"text"',
        b"[1, 2]",
        b"null",
        b'{"rank": 1, "step": NaN, "time": 100}',
        b'{"rank": 1, "step": -9, "time": 100}',
        b'{"rank": true, "step": 9, "time": 100}',
        b'{"rank": 1, "step": "9", "time": 100}',
        b'{"rank": 1, "step": 1' + b"0" * 400 + b', "time": 100}',
        b'{"rank": 1, "step": 1' + b"0" * 6000 + b', "time": 100}',
        b'{"rank": 0, "step": 9, "time": 100}',  # a rank of another node
        b'{"rank": 2, "step": 9, "time": 100}',
        b'{"time": 100, "alarm": "nan", "rank": 1, "since": 100, "message": "x"}',
    ],
    ids=lambda line: line[:40].decode("latin-1"),
)
def test_what_is_no_record_of_the_nodes_rank_changes_nothing(paths: AttemptPaths, line: bytes) -> None:
    append(paths, 1, record(1, 7, 100.0), line)
    assert newest_steps(paths, 2, 1) in ({1: 7}, {})
    append(paths, 1, record(1, 8, 101.0))
    assert newest_steps(paths, 2, 1) == {1: 8}
    with Path(paths.metrics_path(1)).open("ab") as file:
        file.write(record(1, 9, 102.0)[:-5])  # not written to its end
    assert newest_steps(paths, 2, 1) == {1: 8}


def test_what_is_no_file_is_left_alone(paths: AttemptPaths, tmp_path: Path) -> None:
    os.mkfifo(paths.metrics_path(1))
    Path(paths.metrics_path(2)).symlink_to("/dev/zero")
    (tmp_path / "elsewhere").write_bytes(record(3, 5, 100.0) + b"\n")
    Path(paths.metrics_path(3)).symlink_to(tmp_path / "elsewhere")
    Path(paths.metrics_path(4)).mkdir()
    assert newest_steps(paths, 6, 1) == {}


def test_a_rank_that_falls_silent_tells_its_newest_step(tmp_path: Path) -> None:
    log = tmp_path / "node-0.rank-0.log"
    log.write_bytes(b"")
    reader = RankReader(str(log), 0, {})
    reader._spacing._count = 100_000  # records are 10 s apart by now
    steps = []
    for now in range(100, 104):
        with log.open("ab") as file:
            file.write(b"step %d loss 0.5\n" % now)
        steps += [one["step"] for one in reader.poll(float(now), False)[0]]
    assert steps == [100]
    assert reader.poll(107.0, False)[0] == []
    assert [one["step"] for one in reader.poll(108.5, False)[0]] == [103]


# --------------------------------------------------------------------------------------------------
# Two nodes that really run.

TRAIN = """
import os, pathlib, sys, time
rank = int(os.environ["RANK"])
seconds = [float(one) for one in sys.argv[1].split(",")][rank]
last = [int(one) for one in sys.argv[2].split(",")][rank]
step = 0
while not pathlib.Path("end").exists():
    if step < last:
        step += 1
        print(f"step {step} loss 0.5", flush=True)
    time.sleep(seconds)
"""


def begin(bundle, seconds, last, **plan):
    """Two nodes, whose ranks take so many seconds for a step and stop at these steps."""
    processes = len(seconds.split(",")) // 2
    bundle.script(TRAIN, seconds, last, nodes=2, processes_per_node=processes, **plan)
    return [bundle.start(node, 2) for node in range(2)]


def finish(bundle, launchers):
    (bundle.folder / "work" / "end").touch()
    for launcher in launchers:
        launcher.communicate(timeout=60)
        assert launcher.returncode == 0


def alarms_of(bundle, node):
    path = bundle.logs() / f"node-{node}.metrics.jsonl"
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return [one for one in map(json.loads, lines) if "alarm" in one]


def test_a_hang_names_the_ranks_of_all_nodes_that_are_behind(bundle, webhook):
    alarms = {"webhook": webhook.url}
    launchers = begin(bundle, "0.1,0.1,0.1,0.1", "20,20,20,18", alarms=alarms)
    until(lambda: alarms_of(bundle, 0) and alarms_of(bundle, 1))
    finish(bundle, launchers)
    (alarm,) = [one for one in alarms_of(bundle, 0) if "message" in one]
    assert (alarm["alarm"], alarm["rank"]) == ("hang", 3)
    assert alarm["message"].endswith("behind step 20: rank 3")
    hang, end = webhook.posted
    assert (hang["code"], hang["rank"], hang["message"]) == ("hang", 3, alarm["message"])
    assert end["code"] == "succeeded"
