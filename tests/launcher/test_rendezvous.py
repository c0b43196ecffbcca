"""Pods of one run that meet, attempt after attempt: real processes on loopback."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .conftest import processes_with, until
from .pods import Pods

pytestmark = pytest.mark.local

UP = "echo up; sleep 600"
#: The ranks of the first attempt fail on node 1, those of later ones end well.
ONCE = 'echo up; if [ "$HYPERPOD_ATTEMPT.$NODE_RANK" = 1.1 ]; then exit 3; fi; '


@pytest.fixture
def pods(tmp_path: Path) -> Iterator[Callable[..., Pods]]:
    made: list[Pods] = []

    def make(**options) -> Pods:
        made.append(Pods(**{"folder": tmp_path, **options}))
        return made[-1]

    yield make
    for group in made:
        group.end_all()
    mark = f"HYPERPOD_RECORDS={tmp_path}"
    try:
        until(lambda: not processes_with(mark), "an end of all ranks", 10)
    except AssertionError:
        words = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in processes_with(mark)]
        pytest.fail(f"still there: {words}")


def test_all_meet_and_run(pods):
    group = pods(nodes=3).shell("echo $NODE_RANK $WORLD_SIZE $MASTER_PORT").start()
    assert group.ended() == [0, 0, 0]
    words = [group.bundle.rank_log(0, node).split() for node in range(3)]
    assert [word[:2] for word in words] == [[b"0", b"3"], [b"1", b"3"], [b"2", b"3"]]
    assert len({word[2] for word in words}) == 1


def test_one_node_needs_nobody(pods):
    group = pods(nodes=1).shell("echo $MASTER_ADDR").start()
    assert group.ended() == [0]
    assert group.bundle.rank_log() == b"127.0.0.1\n"


def test_a_node_that_is_late_is_waited_for_and_named(pods):
    group = pods(nodes=3).shell("echo up")
    group.start(1, 0)
    until(lambda: "waiting for node 2\n" in group.said(0), patience=10)
    assert not group.bundle.rank_log()
    group.start(2)
    assert group.ended() == [0, 0, 0]
    assert "waiting for node 2" in group.bundle.node_log(0)


def test_a_failing_node_ends_the_others(pods):
    group = pods().shell('echo up; [ "$NODE_RANK" = 0 ] && sleep 600; exit 3').start()
    assert group.ended() == [143, 3]
    assert group.bundle.node(0)["stopped_by"] == "peer"
    assert group.bundle.node(1)["exit_code"] == 3
    assert not group.bundle.rank_log(0, 0, attempt=2)


def test_a_failed_attempt_is_tried_again(pods):
    group = pods(options=("--max-restarts=1",)).shell(
        ONCE + '[ "$NODE_RANK" = 1 ] && exit 0; [ $HYPERPOD_ATTEMPT = 2 ] || sleep 600'
    )
    assert group.start().ended() == [0, 0]
    assert [group.bundle.node(0, n)["exit_code"] for n in (1, 2)] == [143, 0]


def test_no_more_often_than_allowed(pods):
    group = pods(options=("--max-restarts=2",)).shell("exit 4").start()
    assert 4 in group.ended()
    assert group.bundle.node(0, 3) is not None
    assert group.bundle.node(0, 4) is None


@pytest.mark.parametrize("code", [0, 4])
def test_a_program_started_again_after_the_end_does_nothing(pods, code):
    """As a cluster does by ``restartPolicy: OnFailure``, whoever was to restart nothing."""
    group = pods().shell(f"exit {code}").start()
    first = group.ended()
    assert code in first
    assert group.start().ended() == first
    assert group.bundle.node(0, 1) is not None
    assert not (group.bundle.folder / "status/attempt-2").exists()
    assert "has ended" in group.said(1)


def test_a_killed_pod_is_noticed_and_its_next_one_opens_the_next_attempt(pods):
    group = pods(nodes=3).shell("echo up; [ $HYPERPOD_ATTEMPT = 2 ] || sleep 600").start()
    group.until_up(1)
    begun = time.monotonic()
    group.kill(2)
    until(lambda: group.bundle.node(0)["ended_at"], patience=25)
    assert time.monotonic() - begun < 25
    assert group.bundle.node(0)["stopped_by"] == "peer"
    group.until_observed(state="waiting", attempt=1, verdict="NODE_FAIL")
    group.start(2)
    assert group.ended() == [0, 0, 0]


def test_a_pod_made_anew_at_once(pods):
    group = pods().shell("echo up; [ $HYPERPOD_ATTEMPT = 2 ] || sleep 600").start()
    group.until_up(1)
    group.kill(1)
    group.start(1)
    assert group.ended(15) == [0, 0]
    assert "was replaced by" in group.said(0)


def test_a_new_node_0(pods):
    group = pods(nodes=3).shell("echo up; [ $HYPERPOD_ATTEMPT = 2 ] || sleep 600").start()
    group.until_up(1)
    group.kill(0)
    group.start(0)
    assert group.ended() == [0, 0, 0]
    assert group.bundle.node(1, 1)["stopped_by"] == "peer"
    assert group.bundle.node(1, 2)["exit_code"] == 0
    assert group.observation("launcher.attempt-1")["verdict"] == "NODE_FAIL"


def test_a_loss_does_not_count_against_the_restarts(pods):
    group = (
        pods(options=("--max-restarts=1",))
        .shell("echo up; case $HYPERPOD_ATTEMPT in 1) sleep 600;; 2) exit 3;; esac")
        .start()
    )
    group.until_up(1)
    group.kill(1)
    group.start(1)
    assert group.ended() == [0, 0]
    assert group.bundle.node(0, 3)["exit_code"] == 0
    assert group.bundle.node(0, 4) is None


def test_a_stopped_pod_is_told_to_the_others(pods):
    group = pods().shell("echo up; [ $HYPERPOD_ATTEMPT = 2 ] || sleep 600").start()
    group.until_up(1)
    group.running[1].terminate()
    assert group.running[1].wait(10) == 143
    assert group.bundle.node(1)["stopped_by"] == "SIGTERM"
    until(lambda: group.bundle.node(0)["ended_at"], patience=10)
    assert group.bundle.node(0)["stopped_by"] == "peer"
    assert "got SIGTERM" in group.said(0)
    group.start(1)
    assert group.ended() == [0, 0]


def test_codes_that_tell_of_a_signal_may_be_kept_from_the_operator(pods):
    """One that starts pods with such a code anew; those that were told to end are to come anew."""
    group = pods(options=("--no-signal-codes",)).shell("kill -9 $$").start()
    assert group.ended() == [1, 1]
    assert 137 in [group.bundle.node(node)["exit_code"] for node in (0, 1)]
    group = pods(nodes=1, options=("--no-signal-codes",), folder=group.folder / "2").shell(UP)
    group.start().until_up(1)
    group.running[0].terminate()
    assert group.ended() == [143]


def test_all_are_told_to_end(pods):
    group = pods(nodes=3).shell(UP).start()
    group.until_up(1)
    for pod in group.running.values():
        pod.terminate()
    assert group.ended(10) == [143, 143, 143]


def test_the_time_limit(pods):
    group = pods(options=("--time-limit=8", "--max-restarts=3")).shell(
        "trap 'echo warned' USR2; echo up; while :; do sleep 0.1; done"
    )
    begun = time.monotonic()
    assert group.start().ended() == [143, 143]
    assert 8 <= time.monotonic() - begun < 25
    assert group.bundle.node(0)["stopped_by"] == "time_limit"
    seen = group.observation("launcher.attempt-1")
    assert (seen["verdict"], seen["state"], seen["attempt"]) == ("TIMEOUT", "ended", 1)
    assert b"warned" in group.bundle.rank_log()


@pytest.mark.full
def test_a_frozen_pod_is_lost_and_comes_back(pods):
    """A node without power says nothing: its connection stays open."""
    group = pods().shell("echo up; [ $HYPERPOD_ATTEMPT = 2 ] || sleep 600").start()
    group.until_up(1)
    os.kill(group.running[1].pid, signal.SIGSTOP)
    begun = time.monotonic()
    until(lambda: group.bundle.node(0)["ended_at"], patience=40)
    assert time.monotonic() - begun < 32
    os.kill(group.running[1].pid, signal.SIGCONT)
    assert group.ended() == [0, 0]
    assert group.bundle.node(1)["stopped_by"] == "peer"
