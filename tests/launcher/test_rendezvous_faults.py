"""What happens at the rendezvous to launchers that are killed, held up, told to stop at any moment, or are another job's."""

import json
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .conftest import until
from .pods import Pods

pytestmark = pytest.mark.local

TWICE = "echo up; [ $HYPERPOD_ATTEMPT = 2 ] || sleep 600"

LATE = '''
_seen = {}
def read_presence(path):
    """As `read_json`, but what was seen once is seen so for 6 s."""
    seen_at, document = _seen.get(path, (-99.0, None))
    if document is None or time.monotonic() - seen_at > 6.0 or path.endswith(_own):
        document = read_json(path)
        _seen[path] = (time.monotonic(), document)
    return document
_own = "node-%s.json" % "".join(word[12:] for word in sys.argv if word.startswith("--node-rank="))
'''


@pytest.fixture
def pods(tmp_path: Path) -> Iterator[Callable[..., Pods]]:
    made: list[Pods] = []

    def make(**options: Any) -> Pods:
        made.append(Pods(tmp_path, **options))
        return made[-1]

    yield make
    for group in made:
        group.end_all()


def test_a_launcher_that_the_kubelet_starts_again(pods: Callable[..., Pods]) -> None:
    """Killed alone, its ranks die with it."""
    group = pods().shell(TWICE).start()
    group.until_up(1)
    killed = group.running.pop(1)
    killed.kill()
    killed.wait()
    group.start(1)
    assert group.ended() == [0, 0]
    assert "was replaced by a new pod (machine-1)" in group.said(0)
    assert group.observation("launcher.attempt-1")["verdict"] == "NODE_FAIL"
    assert group.bundle.rank_log(0, 1, attempt=1) == b"up\n"


def test_all_are_killed_and_come_back(pods: Callable[..., Pods]) -> None:
    group = pods(nodes=3).shell(TWICE).start()
    group.until_up(1)
    for node in range(3):
        group.kill(node)
    assert group.start().ended() == [0, 0, 0]
    assert group.bundle.node(2, 3) is None


def test_the_older_pod_of_two_gives_way(pods: Callable[..., Pods]) -> None:
    group = pods(nodes=3).shell("echo up").start(0, 1)
    until(lambda: "waiting for node 2\n" in group.said(0), patience=10)
    first = group.running[1]
    os.kill(first.pid, signal.SIGSTOP)
    group.start(1)
    present = group.bundle.folder / "status" / "present" / "node-1.json"
    until(lambda: json.loads(present.read_text())["generation"] == 2, patience=10)
    os.kill(first.pid, signal.SIGCONT)
    assert first.wait(10) == 86
    assert "a newer pod has the place of node 1" in group.said(1, 0)
    group.start(2)
    assert group.ended() == [0, 0, 0]
    assert group.bundle.rank_log(0, 1) == b"up\n"


def test_another_job_of_the_run_is_harmless(pods: Callable[..., Pods]) -> None:
    group = pods().shell("echo up; until [ -e go ]; do sleep 0.1; done").start()
    group.until_up(1)
    present = group.bundle.folder / "status" / "present"
    before = [json.loads(path.read_text())["instance"] for path in sorted(present.glob("*.json"))]
    first = dict(group.running)
    group.start(job="run-y")
    assert group.ended() == [85, 85]
    after = [json.loads(path.read_text())["instance"] for path in sorted(present.glob("*.json"))]
    assert before == after
    (group.bundle.folder / "work" / "go").touch()
    assert [first[node].wait(30) for node in (0, 1)] == [0, 0]
    assert not (group.bundle.folder / "status" / "attempt-2").exists()


def test_another_jobs_node_that_comes_first_does_not_take_the_place(pods: Callable[..., Pods]) -> None:
    group = pods().shell("echo up").start(1, job="run-y")
    stranger = group.running.pop(1)
    assert group.start().ended() == [0, 0]
    assert stranger.wait(30) == 85


def test_nobody_is_waited_for_without_end(pods: Callable[..., Pods]) -> None:
    group = pods(options=("--patience=2",)).shell("echo up").start(0)
    assert group.running[0].wait(15) == 86
    unstarted = group.bundle.folder / "status" / "unstarted" / "node-0.json"
    error = json.loads(unstarted.read_text())["error"]
    assert error["code"] == "no_meeting"
    assert "node 1 did not connect" in error["message"]


def test_node_0_is_not_waited_for_without_end(pods: Callable[..., Pods]) -> None:
    group = pods(options=("--patience=2",)).shell("echo up").start(1)
    assert group.running[1].wait(15) == 86
    unstarted = group.bundle.folder / "status" / "unstarted" / "node-1.json"
    assert "node 0 did not connect" in json.loads(unstarted.read_text())["error"]["message"]


def test_a_node_that_waits_for_node_0_says_so_and_can_be_stopped(pods: Callable[..., Pods]) -> None:
    group = pods().shell("echo up").start(1)
    until(lambda: "waiting for node 0" in group.said(1), patience=15)
    group.running[1].terminate()
    assert group.running[1].wait(5) == 143


def test_files_that_are_seen_late_end_nothing(pods: Callable[..., Pods]) -> None:
    """All that a node writes is seen by the others up to 6 s late, three times as late as a node is otherwise lost."""
    group = pods(nodes=3, options=("--max-restarts=1",)).shell(
        'echo up; sleep 15; [ "$HYPERPOD_ATTEMPT.$NODE_RANK" = 1.1 ] && exit 3; exit 0'
    )
    launcher = group.bundle.folder / "launcher.py"
    source = launcher.read_text()
    assert source.count("class Peers:") == source.count("LOST_S = 20.0") == 1
    source = source.replace("LOST_S = 20.0", "LOST_S = 2.0")
    launcher.write_text(source.replace("class Peers:", LATE + "\n\nclass Peers:"))
    assert group.start().ended(150) == [0, 0, 0]
    records = [group.bundle.node(node, attempt) for node in range(3) for attempt in (1, 2)]
    assert [record["exit_code"] for record in records[1::2]] == [0, 0, 0]
    assert group.bundle.node(1, 1)["exit_code"] == 3
    assert group.bundle.node(0, 3) is None
    assert group.observation("launcher.attempt-1") is None


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=[pytest.mark.full] * (seed > 5)) for seed in range(40)])
def test_a_stop_at_any_moment_of_a_restart_is_heard(pods: Callable[..., Pods], seed: int) -> None:
    """Also while a launcher becomes a new process for the next attempt."""
    group = pods(nodes=1, options=("--max-restarts=1000",)).shell("exit 3")
    group.start()
    until(lambda: group.bundle.node(0, 2), "the second attempt", 20)
    time.sleep(random.Random(seed).random() * 2)
    group.running[0].terminate()
    assert group.ended(20) in ([3], [143])
    attempts = len(list((group.bundle.folder / "status").glob("attempt-*")))
    time.sleep(1.0)
    assert len(list((group.bundle.folder / "status").glob("attempt-*"))) == attempts
