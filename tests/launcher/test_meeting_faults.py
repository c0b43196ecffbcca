"""What happens to a meeting over a bad network, and with strangers at the door."""

import contextlib
import functools
import hashlib
import json
import os
import re
import selectors
import signal
import socket
import threading
import time
from pathlib import Path

import pytest
from hyperpod_jlab.launcher.visitor import CoordinatorClient, Dialer
from hyperpod_jlab.launcher.wire import PeerInfo

from tests.storage.users import AS_ROOT, as_other, common_folder

from .conftest import free_port, until
from .pods import Pods

pytestmark = pytest.mark.local

UP = "echo up; sleep 600"
TWICE = "echo up; [ $HYPERPOD_ATTEMPT = 2 ] || sleep 600"


class Forwarder:
    """Hands connections on to a port, until they are cut or silently held."""

    def __init__(self, target: int) -> None:
        self.port = free_port()
        self.held = False
        self.lost_word = b""
        """Node 0's word that is lost with its connection, once."""
        self.made = 0
        self._target = target
        self._pairs: dict[socket.socket, socket.socket] = {}
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self._listener.settimeout(0.02)
        self._over = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        selector = selectors.DefaultSelector()
        while not self._over:
            self._accept()
            if not self._pairs or self.held:
                time.sleep(0.02)
                continue
            for sock in self._pairs:
                with contextlib.suppress(KeyError, ValueError):
                    selector.register(sock, selectors.EVENT_READ)
            for key, _ in selector.select(0.05):
                self._hand_on(key.fileobj)
            for key in list(selector.get_map().values()):
                selector.unregister(key.fileobj)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            here, _ = self._listener.accept()
            self.made += 1
            try:
                there = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                here.close()
                return
            self._pairs.update({here: there, there: here})

    def _hand_on(self, sock) -> None:
        data = b""
        with contextlib.suppress(OSError):
            data = sock.recv(65536)
        other = self._pairs.get(sock)
        if self.lost_word and self.lost_word in data:
            data = self.lost_word = b""
        if data and other:
            with contextlib.suppress(OSError):
                other.sendall(data)
        elif other:
            for one in (sock, other):
                self._pairs.pop(one, None)
                one.close()

    def cut(self) -> None:
        """Break all connections off."""
        for sock in list(self._pairs):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def cut_and_wait(self) -> None:
        """Break all off, and wait for the next one."""
        made = self.made
        self.cut()
        until(lambda: self.made > made, "a new connection", 10)

    def close(self) -> None:
        self.cut()
        self._over = True
        self._thread.join()
        self._listener.close()


@pytest.fixture
def pods(tmp_path):
    made = []

    def make(**options):
        made.append(Pods(tmp_path, **options))
        return made[-1]

    yield make
    for group in made:
        group.end_all()


@pytest.fixture
def forward():
    made = []

    def make(group):
        made.append(Forwarder(group.port))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_a_cut_connection_is_made_again_and_nothing_happens(pods, forward):
    group = pods().shell("echo up; sleep 6")
    network = forward(group)
    group.start(0).start(1, port=network.port)
    group.until_up(1)
    for _ in range(4):
        network.cut_and_wait()
        time.sleep(0.3)
    assert group.ended() == [0, 0]
    assert group.bundle().node(0, 2) is None


def test_a_word_that_is_lost_with_its_connection_is_said_again(pods, forward):
    """Cut all the time, the meeting still gets through two attempts."""
    group = pods(options=("--max-restarts=1",)).shell(
        "echo up; sleep 1; [ $HYPERPOD_ATTEMPT = 2 ]", stop_grace=0.2
    )
    network = forward(group)
    group.start(0).start(1, port=network.port)
    end = time.monotonic() + 30
    while group.running[0].poll() is None:
        assert time.monotonic() < end
        time.sleep(1.5)
        network.cut()
    assert group.ended() == [0, 0]
    assert group.bundle().node(1, 2)["exit_code"] == 0


def test_the_last_word_is_said_again_too(pods, forward):
    """Node 0 does not leave before the others know that all is over."""
    group = pods().shell("echo up; sleep 1")
    network = forward(group)
    network.lost_word = b'"finish"'
    group.start(0).start(1, port=network.port)
    assert group.ended() == [0, 0]
    assert not network.lost_word


@pytest.mark.full
def test_a_network_that_takes_everything_and_gives_nothing(pods, forward):
    """No end of a connection is seen: both sides notice by the silence."""
    group = pods().shell(TWICE)
    network = forward(group)
    group.start(0).start(1, port=network.port)
    group.until_up(1)
    network.held = True
    begun = time.monotonic()
    until(lambda: all(group.bundle().node(node)["ended_at"] for node in (0, 1)), patience=40)
    assert time.monotonic() - begun < 32
    network.held = False
    network.cut()
    assert group.ended() == [0, 0]


GARBAGE = [
    b"",
    b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + os.urandom(500),
    b"x" * 100_000,
    b"[" * 4000 + b"\n",
    b'{"hello": 1}\n',
    b'{"hello": "{}", "proof": null}\n',
    b'{"hello": "{}", "proof": "' + "\u00e9".encode() + b'"}\n',
    b'{"state": {"failing": true}}\n',
    b'{"do": "run", "incarnation": "x", "master_port": 1}\n',
    b"null\n" * 100,
]


def test_strangers_at_the_door(pods):
    group = pods(nodes=2).shell("echo up; sleep 3").start(0)
    until(lambda: _connects(group.port), "the port")
    waiting = []
    for number in range(150):
        sock = socket.create_connection(("127.0.0.1", group.port))
        waiting.append(sock)
        with contextlib.suppress(OSError):
            sock.sendall(GARBAGE[number % len(GARBAGE)])
    group.start(1)
    assert group.ended() == [0, 0]
    assert group.bundle().node(1)["exit_code"] == 0
    assert "without the run's key was closed" in group.said(0)
    for sock in waiting:
        sock.close()


def _connects(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


def test_who_has_another_key_is_not_let_in(pods):
    group = pods(nodes=2).shell("echo up")
    group.start(0).start(1, key="another")
    until(lambda: "does not have the run's key" in group.said(0), patience=10)
    time.sleep(1)
    assert not group.bundle().rank_log()
    group.kill(1)
    group.start(1)
    assert group.ended() == [0, 0]


def test_pods_without_a_key_take_nobody_in_who_can_read_the_plan(pods):
    group = pods(nodes=2, key="").shell("echo up").start(0, 1)
    assert group.ended() == [86, 86]
    assert "no HYPERPOD_MEETING_KEY" in group.said(0)
    unstarted = json.loads((group.bundle().folder / "status/unstarted/node-1.json").read_bytes())
    assert unstarted["error"]["code"] == "no_meeting_key"


def test_a_single_pod_needs_no_key(pods):
    assert pods(nodes=1, key="").shell("true").start(0).ended() == [0]


def _all_that_may_be_read(bundle: Path, pid: int) -> list[bytes]:
    """What a user finds in a run's files and about its process."""
    found = []
    for path in (
        *bundle.glob("*.json"),
        *bundle.glob("status/**/*.json"),
        Path(f"/proc/{pid}/environ"),
        Path(f"/proc/{pid}/cmdline"),
    ):
        with contextlib.suppress(OSError):
            found.append(path.read_bytes())
    return found


def _join(bundle: Path, port: int, pid: int) -> list[str]:
    """How each attempt to be node 1 of the run ends, with every key that can be made of what may be read."""
    texts = _all_that_may_be_read(bundle, pid)
    plan = (bundle / "launch.json").read_bytes()
    assert plan in texts
    words = {b"", *texts, *(word for text in texts for word in re.findall(rb"[\w-]{6,}", text))}
    tried = []
    for number, word in enumerate(sorted(words)):
        card = PeerInfo(json.loads(plan)["run_id"], 2, 1, "evil", f"{number:016x}", time.time())
        key = hashlib.sha256(plan + word).digest()
        visitor = CoordinatorClient(card, key, Dialer("127.0.0.1", port))
        until(functools.partial(_has_answer, visitor), patience=20)
        tried.append(visitor.last_problem or str(visitor.directive(time.monotonic())))
        visitor.close()
    return tried


def _has_answer(visitor: CoordinatorClient) -> bool:
    visitor.poll(time.monotonic())
    return visitor.last_problem is not None or visitor.away_since is None


@AS_ROOT
def test_another_user_of_a_shared_partition_does_not_get_into_the_meeting():
    with common_folder() as folder:
        group = Pods(folder, nodes=2).shell("echo up")
        group.key = os.urandom(16).hex()
        try:
            for path in (folder, *folder.rglob("*")):
                path.chmod(0o755 if path.is_dir() else 0o644)
            group.start(0)
            until(lambda: "waiting for node 1" in group.said(0), patience=20)
            port, pid = group.port, group.running[0].pid
            tried = as_other(lambda: _join(group.bundle().folder, port, pid))
            assert isinstance(tried, list), tried
            assert tried
            assert {word for word in tried if "closed" not in word} == set()
            assert not group.bundle().rank_log()
            group.start(1)
            assert group.ended() == [0, 0]
        finally:
            group.end_all()


def test_who_is_told_by_a_false_host_does_nothing(pods):
    """Somebody else listens where node 0 should be, as when an address was given to another pod."""
    group = pods(nodes=2).shell("touch ran")
    with socket.create_server(("127.0.0.1", group.port)) as listener:
        group.start(1)
        sock, _ = listener.accept()
        with sock, sock.makefile("rwb") as file:
            file.write(b'{"hyperpod": 1, "challenge": "00"}\n')
            file.flush()
            assert "card" in json.loads(json.loads(file.readline())["hello"])
            file.write(b'{"host": "x", "proof": "0"}\n')
            file.write(b'{"do": "run", "incarnation": "x.1", "master_port": 29999}\n')
            file.flush()
            assert file.read() == b""
    group.start(0)
    assert group.ended() == [0, 0]
    assert "x.1" not in json.dumps(group.bundle().status("claim.json"))


@pytest.mark.parametrize("changes", [{"nodes": 3}, {"run_id": "another"}])
def test_a_pod_of_another_run_is_refused(pods, changes):
    group = pods(nodes=2, shared=False).shell("echo up").start(0)
    if "run_id" in changes:  # the same key, though its plan is another one: as if it was stolen
        group.plan["run_id"] = "another"
        changes = {}
    group.start(1, **changes)
    wanted = ("node 0 refuses", "does not have the run's key")
    until(lambda: any(word in group.said(0) + group.said(1) for word in wanted), patience=10)
    time.sleep(0.5)
    assert not group.bundle(0).rank_log()


def test_the_older_pod_of_two_gives_way(pods):
    group = pods(nodes=3).shell("echo up").start(0, 1)
    until(lambda: "waiting for node 2\n" in group.said(0), patience=10)
    first = group.running[1]
    os.kill(first.pid, signal.SIGSTOP)
    group.start(1)
    until(lambda: "was replaced by" in group.said(0), patience=10)
    os.kill(first.pid, signal.SIGCONT)
    assert first.wait(10) != 0
    group.start(2)
    assert group.ended() == [0, 0, 0]
    assert group.bundle().rank_log(0, 1) == b"up\n"


def test_nobody_is_waited_for_without_end(pods):
    group = pods(nodes=2, options=("--patience=2",)).shell("echo up").start(0)
    assert group.running[0].wait(15) == 86
    unstarted = group.bundle().folder / "status" / "unstarted" / "node-0.json"
    error = json.loads(unstarted.read_text())["error"]
    assert error["code"] == "no_meeting"
    assert "node 1 did not connect" in error["message"]


def test_node_0_is_not_waited_for_without_end(pods):
    group = pods(nodes=2, options=("--patience=2",)).shell("echo up").start(1)
    assert group.running[1].wait(15) == 86
    unstarted = group.bundle().folder / "status" / "unstarted" / "node-1.json"
    assert "refused" in json.loads(unstarted.read_text())["error"]["message"]


def test_a_name_that_is_not_known_yet(pods):
    group = pods(nodes=2).shell("echo up").start(1, host="hyperpod-no-such-name.invalid")
    until(lambda: "waiting for node 0 at hyperpod" in group.said(1), patience=15)
    group.running[1].terminate()
    assert group.running[1].wait(5) == 143


def test_a_port_that_is_taken(pods, monkeypatch):
    group = pods(nodes=2).shell("echo up")
    source = (group.bundle().folder / "launcher.py").read_text()
    assert source.count("arguments.meeting_port, 60.0") == 1
    source = source.replace("arguments.meeting_port, 60.0", "arguments.meeting_port, 1.0")
    (group.bundle().folder / "launcher.py").write_text(source)
    with socket.create_server(("", group.port)):
        group.start(0)
        assert group.running[0].wait(15) == 86
    assert "cannot listen on" in group.said(0)
