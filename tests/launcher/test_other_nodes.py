"""Ranks of several nodes beside each other: what node 0 reads of the other nodes' files, and that a cause is told once."""

import json
import os
import re
from pathlib import Path

import pytest

from hyperpod_jlab.launcher.bundle_files import AttemptPaths
from hyperpod_jlab.launcher.metrics import RankReader
from hyperpod_jlab.launcher.other_nodes import OtherNodes, Pace

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


def test_the_newest_step_of_each_rank_and_when_it_was_reached(paths: AttemptPaths) -> None:
    lines = [record(rank, step, 100.0 + step) for step in range(500) for rank in (2, 3)]
    append(paths, 1, b'{"format":1}', *lines)
    append(paths, 1, record(3, 499, 900.0))  # an evaluation after the last step
    others = OtherNodes(paths, 3, 2)
    assert others.look_at_all() == {2: 499, 3: 499}
    for step in range(1, 4):
        append(paths, 1, record(3, 499 + 10 * step, 599.0 + 20 * step))
        others.look_at_all()
    assert others.paces[3].seconds == 2.0
    assert others.paces[2].seconds is None


def test_each_file_is_looked_at_once_in_ten_seconds(paths: AttemptPaths) -> None:
    for node in range(1, 25):
        append(paths, node, record(node, 5, 100.0))
    others = OtherNodes(paths, 25, 1)
    counts = []
    while not others.look(1.0):
        counts.append(len(others.paces))
    assert counts == [3, 6, 9, 12, 15, 18, 21]
    assert len(others.paces) == 24


@pytest.mark.parametrize(
    "line",
    [
        b"\x00\xff garbage",
        b"[" * 100_000,
        b'"text"',
        b"[1, 2]",
        b"null",
        b'{"rank": 1, "step": 9}',
        b'{"rank": 1, "step": NaN, "time": 100}',
        b'{"rank": 1, "step": 9, "time": NaN}',
        b'{"rank": 1, "step": 9, "time": Infinity}',
        b'{"rank": 1, "step": -9, "time": 100}',
        b'{"rank": true, "step": 9, "time": 100}',
        b'{"rank": 1, "step": "9", "time": 100}',
        b'{"rank": 1, "step": 1' + b"0" * 400 + b', "time": 100}',
        b'{"rank": 1, "step": 1' + b"0" * 6000 + b', "time": 100}',
        b'{"rank": 1, "step": 9, "time": 1' + b"0" * 400 + b"}",
        b'{"rank": 0, "step": 9, "time": 100}',  # a rank of another node
        b'{"rank": 2, "step": 9, "time": 100}',
        b'{"time": 100, "alarm": "nan", "rank": 1, "since": 100, "message": "x"}',
    ],
    ids=lambda line: line[:40].decode("latin-1"),
)
def test_what_is_no_record_of_the_nodes_rank_changes_nothing(
    paths: AttemptPaths, line: bytes
) -> None:
    append(paths, 1, record(1, 7, 100.0), line)
    assert OtherNodes(paths, 2, 1).look_at_all() in ({1: 7}, {})
    append(paths, 1, record(1, 8, 101.0))
    others = OtherNodes(paths, 2, 1)
    assert others.look_at_all() == {1: 8}
    with Path(paths.metrics_path(1)).open("ab") as file:
        file.write(record(1, 9, 102.0)[:-5])  # not written to its end
    assert others.look_at_all() == {1: 8}


def test_what_is_no_file_is_left_alone(paths: AttemptPaths, tmp_path: Path) -> None:
    os.mkfifo(paths.metrics_path(1))
    Path(paths.metrics_path(2)).symlink_to("/dev/zero")
    (tmp_path / "elsewhere").write_bytes(record(3, 5, 100.0) + b"\n")
    Path(paths.metrics_path(3)).symlink_to(tmp_path / "elsewhere")
    Path(paths.metrics_path(4)).mkdir()
    assert OtherNodes(paths, 6, 1).look_at_all() == {}


def test_a_pace_begins_anew_where_steps_or_the_clock_go_back() -> None:
    pace = Pace()

    def seconds() -> float | None:
        return pace.seconds

    for number in range(6):
        pace.add(10 * number, 5.0 * number)
    assert seconds() == 0.5
    pace.add(60, 3.0)
    assert seconds() is None
    for number in range(1, 4):
        pace.add(60 + 10 * number, 3.0 + 10.0 * number)
    assert seconds() == 1.0
    pace.add(5, 100.0)
    assert (pace.step, seconds()) == (5, None)


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


def begin(bundle, seconds, last="1000000,1000000,1000000,1000000", **plan):
    """Two nodes, whose ranks take so many seconds for a step and stop at these steps; node 0 looks every second."""
    launcher = bundle.folder / "launcher.py"
    text = launcher.read_text()
    assert text.count("    EVERY_S = 10.0\n") == 1
    launcher.write_text(text.replace("    EVERY_S = 10.0\n", "    EVERY_S = 1.0\n"))
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


def test_a_rank_that_is_slower_than_those_of_another_node_is_named(bundle):
    launchers = begin(bundle, "0.1,0.3")
    until(lambda: alarms_of(bundle, 0))
    finish(bundle, launchers)
    (alarm,) = alarms_of(bundle, 0)
    assert (alarm["alarm"], alarm["rank"]) == ("straggler", 1)
    slow, usual = [
        float(one) for one in re.findall(r"[0-9.]+(?= s a step|$| s$)", alarm["message"])
    ]
    assert (slow > 0.25, usual < 0.2) == (True, True)
    assert alarms_of(bundle, 1) == []


def test_a_slow_rank_that_both_nodes_see_is_told_once(bundle):
    launchers = begin(bundle, "0.1,0.1,0.1,0.3")
    until(lambda: alarms_of(bundle, 0) or alarms_of(bundle, 1))
    numbers = bundle.logs() / "node-1.metrics.jsonl"
    size = numbers.stat().st_size
    until(lambda: numbers.stat().st_size > size + 15_000)  # by then both see it
    finish(bundle, launchers)
    told = alarms_of(bundle, 0) + alarms_of(bundle, 1)
    assert [(one["alarm"], one["rank"]) for one in told] == [("straggler", 3)]


def test_a_hang_names_the_ranks_of_all_nodes_that_are_behind(bundle):
    told = bundle.folder / "told"
    command = f'echo "$HYPERPOD_ALARM_CODE $HYPERPOD_ALARM_RANK $HYPERPOD_ALARM_MESSAGE" >> {told}'
    launchers = begin(bundle, "0.1,0.1,0.1,0.1", "20,20,20,18", alarms={"command": command})
    until(lambda: alarms_of(bundle, 0) and alarms_of(bundle, 1))
    finish(bundle, launchers)
    (alarm,) = [one for one in alarms_of(bundle, 0) if "message" in one]
    assert (alarm["alarm"], alarm["rank"]) == ("hang", 3)
    assert alarm["message"].endswith("behind step 20: rank 3")
    (line,) = told.read_text().splitlines()
    assert line.startswith("hang 3 ")
    assert line.endswith("behind step 20: rank 3")
