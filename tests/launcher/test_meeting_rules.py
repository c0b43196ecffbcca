"""The rules of the meeting by themselves: nodes that are only played, over hundreds of random courses."""

import json
import random
import time

import pytest

from hyperpod_jlab.launcher.bundle_files import BundleFiles
from hyperpod_jlab.launcher.history import FileHistory, History
from hyperpod_jlab.launcher.meeting import Coordinator, NodeState, RendezvousConfig, format_ranks


class Told(History):
    """Remembers what would be written down."""

    def __init__(self):
        self.said = []
        self.lost = []

    def early_losses(self, seconds):
        return self.lost

    def record_observation(self, attempt, verdict, reason, last):
        self.said.append((attempt, verdict, last))


def meeting_of(nodes, max_restarts=0, time_limit=None, patience=100.0, unshared=True):
    history = Told()
    terms = RendezvousConfig(nodes, max_restarts, time_limit, patience, patience, unshared)
    return Coordinator(terms, history, lambda: 29000, lambda text: None), history


class PlayedNode:
    """A node that does what it is told, a little late, and has its faults."""

    def __init__(self, rank, chance):
        self.rank = rank
        self.chance = chance
        self.born = 0.0
        self.renew(0.0)

    def renew(self, now):
        self.born += 1
        self.instance = f"{self.rank}-{self.born}"
        self.state = NodeState()
        self.connected = False
        self.away_until = now + self.chance.random() * 3
        self.ends_at = None

    def obey(self, directive, now, outcome):
        state = self.state
        if state.running:
            if directive["do"] != "run" or directive["incarnation"] != state.incarnation:
                outcome, self.ends_at = 143, min(self.ends_at, now + self.chance.random())
            if now >= self.ends_at:
                own = outcome not in {0, 143}
                self.state = state._replace(running=False, exit_code=outcome, own=own)
        elif directive["do"] == "run" and directive["incarnation"] != state.incarnation:
            self.ends_at = now + self.chance.random() * 10
            self.state = NodeState(
                running=True,
                incarnation=directive["incarnation"],
                attempt=directive["number"],
                failures=directive["failures"],
                began=directive["began"],
            )


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=[pytest.mark.full] * (seed > 15)) for seed in range(200)]
)
def test_random_courses(seed):
    """No attempt begins while a node runs another; it ends; only ranks' own failures are counted."""
    chance = random.Random(seed)
    size, restarts = chance.choice([1, 2, 3, 8]), chance.choice([0, 1, 3])
    meeting, history = meeting_of(size, restarts)
    nodes = [PlayedNode(rank, chance) for rank in range(size)]
    fate: dict[
        str, dict[int, int]
    ] = {}  # what becomes of an attempt if nothing else happens: exit codes by incarnation
    quiet_after, now = 60.0, 0.0
    directive, opened = {"do": "wait"}, []
    meeting._phase_since = 0.0
    nodes[0].connected = meeting.join(0, nodes[0].instance, 1.0, "m")
    while not meeting.finished:
        now += 0.2
        assert now < 400, directive
        for node in nodes:
            faulty = now < quiet_after and node.rank != 0
            if faulty and chance.random() < 0.003:
                meeting.disconnect(node.rank, node.instance, now)
                node.connected, node.away_until = False, now + chance.random() * 15
            if faulty and chance.random() < 0.002:
                meeting.disconnect(node.rank, node.instance, now)
                node.renew(now)
            if not node.connected and now >= node.away_until:
                node.connected = meeting.join(node.rank, node.instance, node.born, "m")
            if node.connected:
                codes = fate.get(node.state.incarnation or "", {})
                node.obey(directive, now, codes.get(node.rank, 0))
                meeting.update_state(node.rank, node.state)
        meeting.advance(now)
        if meeting.directive["do"] == "run" and meeting.directive["incarnation"] not in fate:
            fails = chance.random() < 0.5
            fate[meeting.directive["incarnation"]] = {size - 1: 3} if fails else {}
            opened.append(meeting.directive["number"])
            assert all(node.connected and not node.state.running for node in nodes)
        directive = meeting.directive
    assert opened == sorted(set(opened))
    assert meeting._merged_state.failures <= restarts + 1
    if meeting._merged_state.failures > restarts:
        assert not directive["succeeded"]
        assert meeting.exit_code == 3
    else:
        assert directive["succeeded"]
    assert all(verdict in {None, "NODE_FAIL"} for _, verdict, _ in history.said)


def ready(meeting, *ranks, **state):
    for rank in ranks:
        meeting.join(rank, f"{rank}", 1.0, f"m-{rank}")
        meeting.update_state(rank, NodeState(**state))


def test_a_node_that_has_not_said_a_word_is_waited_for():
    meeting, _ = meeting_of(2)
    ready(meeting, 0)
    meeting.join(1, "1", 1.0, "m")
    meeting.advance(0.0)
    assert meeting.directive["do"] == "wait"
    assert meeting.missing_ranks() == [1]


def test_a_node_that_still_runs_what_another_node_0_began_is_waited_for():
    meeting, history = meeting_of(2)
    ready(meeting, 0)
    ready(meeting, 1, running=True, incarnation="old.1", attempt=4, failures=1, began=5.0)
    meeting.advance(0.0)
    assert meeting.directive["do"] == "wait"
    ready(meeting, 1, incarnation="old.1", exit_code=143, attempt=4, failures=1, began=5.0)
    meeting.advance(0.0)
    directive = meeting.directive
    assert (directive["number"], directive["failures"], directive["began"]) == (5, 1, 5.0)
    assert history.said == [(4, "NODE_FAIL", False)]


def test_a_failure_that_comes_of_a_lost_node_is_not_counted():
    """The ranks elsewhere mostly fail before the loss is noticed."""
    meeting, history = meeting_of(3)
    ready(meeting, 0, 1, 2)
    meeting.advance(100.0)
    name = meeting.directive["incarnation"]
    ready(meeting, 0, 1, 2, running=True, incarnation=name, attempt=1)
    meeting.advance(101.0)
    meeting.disconnect(2, "2", 102.0)
    ready(meeting, 1, incarnation=name, attempt=1, exit_code=1, own=True)
    meeting.advance(103.0)
    assert meeting.directive["do"] == "stop"
    ready(meeting, 0, incarnation=name, attempt=1, exit_code=143)
    meeting.advance(104.0)
    assert meeting.directive["do"] == "stop"
    meeting.advance(102.0 + Coordinator.RETURN_S + 0.1)
    assert (meeting.directive["do"], meeting.directive["failures"]) == ("wait", 0)
    meeting.advance(102.0 + Coordinator.RETURN_S + Coordinator.QUIET_S + 0.2)
    assert history.said == [(1, "NODE_FAIL", False)]


def test_a_node_that_is_lost_at_once_again_and_again_is_not_waited_for_without_end():
    meeting, history = meeting_of(2)
    now = 100.0
    for count in range(Coordinator.MAX_EARLY_LOSSES + 1):
        assert not meeting.finished
        meeting.join(1, f"{count}", float(count), "m")
        meeting.update_state(1, NodeState())
        ready(meeting, 0, incarnation=meeting.directive.get("incarnation"), exit_code=143)
        meeting.advance(now)
        name = meeting.directive["incarnation"]
        ready(meeting, 0, running=True, incarnation=name, attempt=count + 1)
        meeting.update_state(1, NodeState(running=True, incarnation=name, attempt=count + 1))
        meeting.advance(now)
        meeting.disconnect(1, f"{count}", now)
        meeting.advance(now + 11)
        ready(meeting, 0, incarnation=name, attempt=count + 1, exit_code=143)
        meeting.advance(now + 11)
        now += 60
    assert meeting.finished
    assert not meeting.directive["succeeded"]
    assert history.said[-1] == (Coordinator.MAX_EARLY_LOSSES + 1, "NODE_FAIL", True)


@pytest.mark.parametrize("lost", [Coordinator.MAX_EARLY_LOSSES, Coordinator.MAX_EARLY_LOSSES + 1])
def test_a_node_0_that_finds_how_often_it_was_lost_goes_on_or_not(lost):
    meeting, history = meeting_of(1)
    history.lost = list(range(lost, 0, -1))
    ready(meeting, 0)
    meeting.advance(100.0)
    assert meeting.finished == (lost > Coordinator.MAX_EARLY_LOSSES)
    assert meeting.directive["do"] == ("finish" if meeting.finished else "run")
    assert history.said == ([(lost, "NODE_FAIL", True)] if meeting.finished else [])


def attempt(status, number, began, **record):
    folder = status / f"attempt-{number}"
    folder.mkdir(parents=True)
    (folder / "node-0.json").write_text(json.dumps({"started_at": began, **record}))


def test_what_counts_as_lost_early(tmp_path):
    now = time.time()
    attempt(tmp_path, 1, now - 5000)
    attempt(tmp_path, 2, now - 4000, ended_at=now - 3900)
    attempt(tmp_path, 9, now - 700)
    attempt(tmp_path, 10, now - 200)
    history = FileHistory(BundleFiles(str(tmp_path)), str(tmp_path), "job", unshared=False)
    assert history.early_losses(600) == [10, 9]
    assert history.early_losses(100) == []
    assert history.early_losses(1e6) == [10, 9]
    unshared = FileHistory(BundleFiles(str(tmp_path)), str(tmp_path), "job", unshared=True)
    assert unshared.early_losses(600) == []


def test_a_node_that_does_not_end_its_ranks_is_given_up():
    meeting, _ = meeting_of(2)
    ready(meeting, 0, 1)
    meeting.advance(100.0)
    name = meeting.directive["incarnation"]
    ready(meeting, 0, incarnation=name, exit_code=1, own=True, attempt=1)
    ready(meeting, 1, incarnation=name, running=True, attempt=1)
    meeting.advance(101.0)
    meeting.advance(101.0 + Coordinator.STUCK_AFTER_S - 1)
    assert meeting.directive["do"] == "stop"
    meeting.advance(101.0 + Coordinator.STUCK_AFTER_S + 1)
    assert meeting.directive["do"] == "wait"


def test_a_pod_that_was_done_may_come_anew():
    meeting, _ = meeting_of(2)
    ready(meeting, 0, 1)
    meeting.advance(100.0)
    name = meeting.directive["incarnation"]
    ready(meeting, 1, incarnation=name, exit_code=0, attempt=1)
    ready(meeting, 0, incarnation=name, running=True, attempt=1)
    meeting.advance(101.0)
    meeting.join(1, "another", 2.0, "m")
    meeting.update_state(1, NodeState())
    meeting.advance(102.0)
    assert meeting.directive["incarnation"] == name
    ready(meeting, 0, incarnation=name, exit_code=0, attempt=1)
    meeting.advance(103.0)
    assert meeting.directive["succeeded"]


@pytest.mark.parametrize(
    "document",
    [
        {"running": "yes", "incarnation": 5, "exit_code": "0", "attempt": None},
        {"attempt": True, "failures": [], "began": "now", "leaving": {}},
        {"unknown": 1},
        {},
    ],
)
def test_what_is_wrong_in_a_word_is_as_if_it_was_not_said(document):
    assert NodeState.load(document) == NodeState()


def test_a_state_is_told_whole():
    state = NodeState(True, "x.1", 3, True, True, "SIGTERM", 4, 2, 17.5)
    assert NodeState.load(state._asdict()) == state


def test_nodes_in_words():
    assert format_ranks([3]) == "node 3"
    assert format_ranks([3, 7]) == "nodes 3, 7"
    assert format_ranks(list(range(1000))).endswith("18, 19 and 980 more")


def test_ten_times_the_nodes_cost_about_ten_times_the_time():
    few, many = (cost_of_a_step(nodes) for nodes in (100, 1000))
    assert many < 40 * few


def cost_of_a_step(nodes):
    """Seconds of computing."""
    meeting, _ = meeting_of(nodes)
    ready(meeting, *range(nodes))
    meeting.advance(100.0)
    name = meeting.directive["incarnation"]
    ready(meeting, *range(nodes), running=True, incarnation=name, attempt=1)
    costs = []
    for moment in range(20):
        begun = time.process_time()
        meeting.advance(101.0 + moment)
        costs.append(time.process_time() - begun)
    return min(costs)
