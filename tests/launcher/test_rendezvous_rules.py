"""The rules of the rendezvous by themselves: real files, a played clock, and nodes that only play at running."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hyperpod_jlab.launcher import rendezvous
from hyperpod_jlab.launcher.bundle_files import BundleFiles, read_json
from hyperpod_jlab.launcher.errors import FencedError
from hyperpod_jlab.launcher.plan import NodeArguments
from hyperpod_jlab.launcher.rendezvous import Leader, Member, Sighting, format_ranks

TICK = 0.25


class StartedAgainError(Exception):
    """A launcher that becomes a new one."""


class World:
    """A partition, a clock, and what each node runs."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, delay: float = 0.0) -> None:
        self.folder = folder
        self.status = folder / "status"
        self.status.mkdir()
        self.files = BundleFiles(str(folder))
        self.now = 1000.0
        self.delay = delay
        self.reads = 0
        self.reader: Node | None = None
        self.nodes: list[Node] = []
        self.ran: list[tuple[int, int]] = []
        clock = SimpleNamespace(monotonic=lambda: self.now, time=lambda: 1e9 + self.now)
        monkeypatch.setattr(rendezvous, "time", clock)
        monkeypatch.setattr("hyperpod_jlab.launcher.claims.time", clock)
        monkeypatch.setattr(rendezvous, "free_port", lambda: 29000)
        monkeypatch.setattr(rendezvous, "read_presence", self.read)
        monkeypatch.setattr(Member, "log_note", lambda *_: None)
        monkeypatch.setattr(Member, "_start_again", _start_again)

    def read(self, path: str) -> dict[str, Any] | None:
        """A file as the node that reads now sees it: what it saw last for as long as that is cached."""
        self.reads += 1
        assert self.reader is not None
        if path.endswith(f"node-{self.reader.rank}.json"):
            return read_json(path)
        seen_at, document = self.reader.cache.get(path, (float("-inf"), None))
        if self.now - seen_at >= self.delay:
            document = read_json(path)
            if document is not None:
                self.reader.cache[path] = (self.now, document)
        return document

    def start(self, nodes: int, **options: Any) -> "World":
        self.nodes = [Node(self, rank, nodes, options) for rank in range(nodes)]
        return self

    def tick(self) -> None:
        self.now += TICK
        for node in self.nodes:
            node.tick()

    def until(self, seen: Callable[[], Any], seconds: float = 100.0) -> None:
        end = self.now + seconds
        while not seen():
            assert self.now < end, [node.member and node.member.state for node in self.nodes]
            self.tick()

    def until_all_run(self, attempt: int) -> None:
        self.until(lambda: all(node.attempt == attempt for node in self.nodes))

    def until_over(self, seconds: float = 100.0) -> list[int | None]:
        self.until(lambda: all(node.code is not None for node in self.nodes), seconds)
        return [node.code for node in self.nodes]

    def record(self, name: str) -> Any:
        return read_json(str(self.status / name))

    def kinds(self) -> list[str]:
        """Why the attempts ended."""
        found = self.status.glob("attempt-*/end.json")
        paths = sorted(found, key=lambda path: int(path.parent.name[8:]))
        return [json.loads(path.read_text())["kind"] for path in paths]


def _start_again(member: Member) -> None:
    member.announce()
    raise StartedAgainError


class Node:
    """A launcher that runs what it is told, for as long as `lasts` says, and ends its ranks a little late."""

    def __init__(self, world: World, rank: int, nodes: int, options: dict[str, Any]) -> None:
        self.world = world
        self.rank = rank
        self.arguments = NodeArguments(
            node_rank=rank,
            nodes=nodes,
            master_addr="127.0.0.1",
            master_port=0,
            scheduler_id="job",
            incarnation=None,
            node_name=f"m-{rank}",
            task=None,
            quiet=True,
            wait_attempt=1,
            **options,
        )
        self.lasts: Callable[[int], tuple[float, int]] = lambda attempt: (1e9, 0)
        self.stops_in: Callable[[], float] = lambda: 0.5
        self.is_stuck = False
        self.start()

    def start(self, instance: str | None = None) -> None:
        """Start a launcher, a new one unless it has been one before."""
        self.cache: dict[str, tuple[float, dict[str, Any] | None]] = {}
        self.attempt: int | None = None
        self.code: int | None = None
        self.stopped_by: str | None = None
        arguments = self.arguments._replace(instance=instance)
        (self.world.status / "present").mkdir(exist_ok=True)
        signals: Any = SimpleNamespace()
        self.member: Member | None = Member(self.world.files, str(self.world.folder), arguments, signals)
        self.member._since = self.world.now

    def kill(self) -> None:
        self.member = self.attempt = None

    def tick(self) -> None:
        self.world.reader = self
        if self.member is None or self.code is not None:
            return
        if self.attempt is not None:
            self._run(self.member)
            return
        try:
            joined = self.member.find_attempt()
        except StartedAgainError:
            self.start(self.member.instance)
            return
        if joined is not None:
            self._begin(self.member.state["attempt"])
        elif self.member.is_over:
            self.code = self.member.outcome()

    def _begin(self, attempt: int) -> None:
        others = {node.attempt for node in self.world.nodes if node is not self}
        assert others <= {None, attempt}, "two attempts at once"
        assert (self.rank, attempt) not in self.world.ran
        self.world.ran.append((self.rank, attempt))
        self.attempt, self.stopped_by = attempt, None
        seconds, self.outcome = self.lasts(attempt)
        self.ends_at = self.world.now + seconds

    def _run(self, member: Member) -> None:
        reason = member.poll()
        if reason is not None and self.stopped_by is None and self.world.now < self.ends_at:
            self.stopped_by, self.outcome = reason, 143
            self.ends_at = self.world.now + self.stops_in()
        if self.world.now >= self.ends_at and not self.is_stuck:
            path = self.world.status / f"attempt-{self.attempt}" / f"node-{self.rank}.json"
            path.write_text(json.dumps({"exit_code": self.outcome, "ended_at": self.world.now}))
            self.attempt = None
            member.end_attempt(self.outcome, self.outcome not in {0, 143})


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=[pytest.mark.full] * (seed > 9)) for seed in range(100)])
def test_random_courses(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Launchers are killed and come back, ranks fail, and what others write is seen up to a minute late: nothing runs twice, and it ends."""
    chance = random.Random(seed)
    size, restarts = chance.choice([1, 2, 3, 5]), chance.choice([0, 1, 3])
    world = World(tmp_path, monkeypatch, delay=chance.choice([0.0, 5.0, 60.0]))
    world.start(size, max_restarts=restarts)
    fates: dict[int, bool] = {}

    def lasts(rank: int) -> Callable[[int], tuple[float, int]]:
        def fate(attempt: int) -> tuple[float, int]:
            fails = fates.setdefault(attempt, chance.random() < 0.5) and rank == size - 1
            return chance.random() * 10, 3 if fails else 0

        return fate

    away: dict[int, float] = {}
    for node in world.nodes:
        node.lasts, node.stops_in = lasts(node.rank), chance.random
    quiet_after = world.now + 120
    while any(node.code is None for node in world.nodes):
        assert world.now < 1000 + 4000, [node.member and node.member.state for node in world.nodes]
        world.tick()
        for node in world.nodes:
            if node.member is None and world.now >= away[node.rank]:
                node.start()
            elif world.now < quiet_after and node.code is None and chance.random() < 0.003:
                node.kill()
                away[node.rank] = world.now + chance.random() * 15
    over = world.record("over/node-0.json")["exit_code"]
    kinds = world.kinds()
    gave_up = kinds[-6:] == ["lost"] * (Leader.MAX_EARLY_LOSSES + 1)
    assert (over != 0) == (kinds.count("failure") > restarts or gave_up), kinds
    assert kinds.count("failure") <= restarts + 1


def test_a_minute_of_cached_attributes_costs_no_attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, monkeypatch, delay=60.0).start(3)
    for node in world.nodes:
        node.lasts = lambda attempt: (600.0, 0)
    assert world.until_over(1500) == [0, 0, 0]
    assert sorted(world.ran) == [(0, 1), (1, 1), (2, 1)]
    assert world.kinds() == []


def test_64_nodes_read_at_most_64_files_a_second(world: World) -> None:
    world.start(64).until_all_run(1)
    world.reads, begun = 0, world.now
    world.until(lambda: world.now >= begun + 60)
    assert world.reads <= 64 * 60


def test_a_launcher_that_was_held_up_takes_nobody_for_lost(world: World) -> None:
    """As on a partition that hangs for a minute: all stand still, and go on."""
    world.start(3).until_all_run(1)
    world.now += 60
    for _ in range(200):
        world.tick()
    assert [node.attempt for node in world.nodes] == [1, 1, 1]


def test_a_node_is_lost_after_a_while(world: World) -> None:
    world.start(3).until_all_run(1)
    world.nodes[2].kill()
    begun = world.now
    world.until(lambda: world.nodes[0].attempt is None)
    assert Sighting.LOST_S <= world.now - begun < Sighting.LOST_S + 3
    world.nodes[2].start()
    world.until_all_run(2)
    assert world.kinds() == ["lost"]
    assert world.record("observations/launcher.attempt-1.json")["verdict"] == "NODE_FAIL"
    assert world.record("observations/launcher.json")["reason_code"] == "recovering"


def test_a_node_that_still_runs_what_another_node_0_began_is_waited_for(world: World) -> None:
    world.start(2).until_all_run(1)
    world.nodes[1].stops_in = lambda: 30.0
    world.nodes[0].kill()
    world.nodes[0].start()
    world.until(lambda: world.nodes[1].stopped_by)
    assert world.nodes[1].stopped_by == "peer"
    world.until(lambda: world.nodes[1].attempt is None)
    assert world.nodes[0].attempt is None
    world.until_all_run(2)
    assert world.record("observations/launcher.attempt-1.json")["reason"] == "node 0 was replaced"


def test_a_failure_that_comes_of_a_lost_node_is_not_counted(world: World) -> None:
    """The ranks elsewhere mostly fail before the loss is noticed."""
    world.start(3).until_all_run(1)
    world.nodes[2].kill()
    world.nodes[1].outcome, world.nodes[1].ends_at = 1, world.now + 1
    world.until(lambda: world.nodes[1].attempt is None)
    world.nodes[2].start()
    world.until_all_run(2)
    assert world.kinds() == ["lost"]


def test_a_node_that_is_lost_at_once_again_and_again_is_not_waited_for_without_end(world: World) -> None:
    world.start(2)
    for count in range(Leader.MAX_EARLY_LOSSES + 1):
        world.until_all_run(count + 1)
        world.nodes[1].kill()
        world.nodes[1].start()
    world.until(lambda: world.nodes[0].code is not None)
    seen = world.record("observations/launcher.json")
    assert (seen["attempt"], seen["verdict"], seen["state"]) == (6, "NODE_FAIL", "ended")
    assert world.kinds() == ["lost"] * 6


@pytest.mark.parametrize("lost", [Leader.MAX_EARLY_LOSSES, Leader.MAX_EARLY_LOSSES + 1])
def test_a_node_0_that_finds_how_often_it_was_lost_goes_on_or_not(world: World, lost: int) -> None:
    world.start(1)
    for count in range(lost):
        world.until_all_run(count + 1)
        world.nodes[0].kill()
        world.nodes[0].start()
    if lost > Leader.MAX_EARLY_LOSSES:
        assert world.until_over() == [86]
        assert "low" in world.record("observations/launcher.json")["reason"]
    else:
        world.until_all_run(lost + 1)


def test_losses_long_after_the_start_are_not_counted(world: World) -> None:
    world.start(1)
    for count in range(2 * Leader.MAX_EARLY_LOSSES):
        world.until_all_run(count + 1)
        world.now += Leader.EARLY_S
        world.nodes[0].kill()
        world.nodes[0].start()
    world.until_all_run(2 * Leader.MAX_EARLY_LOSSES + 1)


def test_a_node_that_does_not_end_its_ranks_is_given_up(world: World) -> None:
    world.start(2, max_restarts=1).until_all_run(1)
    world.nodes[1].is_stuck = True
    world.nodes[0].outcome, world.nodes[0].ends_at = 1, world.now
    begun = world.now
    world.until(world.kinds, 700)
    assert world.now - begun >= Leader.STUCK_AFTER_S
    assert world.kinds() == ["lost"]


def test_a_launcher_that_was_done_may_come_anew(world: World) -> None:
    world.start(2)
    world.nodes[1].lasts = lambda attempt: (1.0, 0)
    world.nodes[0].lasts = lambda attempt: (20.0, 0)
    world.until_all_run(1)
    world.until(lambda: world.nodes[1].attempt is None)
    world.nodes[1].kill()
    world.nodes[1].start()
    assert world.until_over() == [0, 0]
    assert world.kinds() == []


def test_of_two_launchers_of_a_node_the_newer_one_stays(world: World) -> None:
    """As when a machine comes back whose pod was replaced meanwhile."""
    world.start(2).until_all_run(1)
    older = world.nodes[1]
    newer = Node(world, 1, 2, {})
    world.nodes[1] = newer
    newer.tick()
    world.nodes.append(older)
    world.until(lambda: older.stopped_by)
    assert older.stopped_by == "superseded"
    world.until(lambda: older.code is not None)
    assert older.code != 0
    world.nodes.pop()
    world.until_all_run(2)


def test_another_job_writes_nothing(world: World) -> None:
    """Nor before it knows whether the run is its own: it may start first."""
    other = Node(world, 1, 2, {})
    other.arguments = other.arguments._replace(scheduler_id="other")
    other.start()
    other.tick()
    assert not list((world.status / "present").iterdir())
    world.start(2).until_all_run(1)
    with pytest.raises(FencedError):
        other.tick()
    first = Node(world, 0, 2, {})
    first.arguments = other.arguments._replace(node_rank=0)
    first.start()
    with pytest.raises(FencedError):
        first.tick()
    for _ in range(100):
        world.tick()
    assert [node.attempt for node in world.nodes] == [1, 1]


def test_a_cancelled_run_opens_no_further_attempt(world: World) -> None:
    world.start(2, max_restarts=3).until_all_run(1)
    (world.status / "actions").mkdir()
    (world.status / "actions" / "1.json").write_text('{"action": "cancel"}')
    world.nodes[0].outcome, world.nodes[0].ends_at = 3, world.now
    assert world.until_over() == [3, 143]
    assert not (world.status / "attempt-2").exists()


def test_nodes_in_words() -> None:
    assert format_ranks([3]) == "node 3"
    assert format_ranks([3, 7]) == "nodes 3, 7"
    assert format_ranks(list(range(1000))).endswith("18, 19 and 980 more")
