"""The log of a container in a real pod: each line exactly once, whatever happens to the way to it."""

from __future__ import annotations

import asyncio

import pytest
from pydantic import TypeAdapter

from hyperpod_jlab.core.config import KubernetesCluster
from hyperpod_jlab.core.errors import DeniedError, InvalidInputError, NotFoundError
from hyperpod_jlab.engines.kubernetes.api.access import load_access
from hyperpod_jlab.engines.kubernetes.api.client import KubeClient
from hyperpod_jlab.engines.kubernetes.api.pod_log import (
    ContainerEnded,
    ContainerStarted,
    Item,
    LogEnded,
    PodLog,
    PodLogCursor,
    PodLogGap,
    PodLogLine,
    pod_state,
)
from hyperpod_jlab.engines.kubernetes.api.watch import Informers
from tests.kubernetes.client_fixtures import client, proxy
from tests.kubernetes.cluster import KubernetesTestbed
from tests.kubernetes.pod_log_fixtures import (
    NUMBERED,
    Pods,
    all_of,
    data,
    numbered,
    numbers_of,
    pods,
    rest,
)
from tests.kubernetes.proxy import FaultyProxy, append, cut_bytes, drop, end, page, refuse, replace

__all__ = ["client", "pods", "proxy"]

CURSOR = TypeAdapter(PodLogCursor)


async def test_nothing_is_lost_or_twice_when_connections_are_cut(
    pods: Pods, proxy: FaultyProxy
) -> None:
    proxy.every(1.5)
    found = await numbered(pods, 8, 8)
    assert min(len(text) for text in found) > 2000
    opened = [seen for seen in proxy.requests if seen.path.endswith("/log")]
    assert len(opened) > 24


@pytest.mark.full
@pytest.mark.timeout(240)
async def test_nothing_is_lost_or_twice_in_a_minute_of_cuts(pods: Pods, proxy: FaultyProxy) -> None:
    proxy.every(3.0)
    found = await numbered(pods, 8, 60)
    assert min(len(text) for text in found) > 20_000


async def test_bytes_stay_bytes(pods: Pods, proxy: FaultyProxy) -> None:
    """A line of 4 MiB cut at odd places, JSON, torn UTF-8, carriage returns, blank lines, no newline at the end."""
    code = """
import os
def out(data):
    while data:
        data = data[os.write(1, data):]
out(b'{"type":"ERROR","object":{"code":410}}\\n12\\n\\n\\n \\r50%\\r100%\\r\\n\\xff\\xe2\\x82\\n')
out(b'2026-01-01T00:00:00.000000000Z looks like a stamp\\n')
out(bytes(65 + n % 26 for n in range(4 << 20)) + b'\\n')
out(b'unable to retrieve container logs for containerd://x\\n')
out(b'x' * 70000 + b'\\xe2\\x82')
"""
    log = await pods.print("bytes", code)
    for size in (100, 5_000, 200_000, 1_000_000, 3_000_001):
        proxy.add(cut_bytes(size), path="/log", times=1)
    items = await all_of(log.follow())
    # containerd itself drops a carriage return before a newline.
    expected = b'{"type":"ERROR","object":{"code":410}}\n12\n\n\n \r50%\r100%\n\xff\xe2\x82\n'
    expected += b"2026-01-01T00:00:00.000000000Z looks like a stamp\n"
    expected += bytes(65 + n % 26 for n in range(4 << 20)) + b"\n"
    expected += b"unable to retrieve container logs for containerd://x\n"
    expected += b"x" * 70000 + b"\xe2\x82"
    assert data(items) == expected
    assert rest(items) == ["ContainerStarted", "ContainerEnded", "LogEnded"]


@pytest.mark.full
async def test_a_line_comes_at_once(pods: Pods) -> None:
    code = """
import time
time.sleep(2)
for _ in range(100):
    print(time.time_ns())
    time.sleep(0.02)
time.sleep(2)
"""
    log = await pods.print("quick", code)
    came = [
        len(portion.items)
        async for portion in log.follow()
        if any(isinstance(item, PodLogLine) for item in portion.items)
    ]
    # Who asks for them at times gets many at once. (How late they come is measured in benchmarks/.)
    assert sum(came) == 100
    assert len(came) > 30


@pytest.mark.full
async def test_a_cursor_outlives_its_process(pods: Pods) -> None:
    """Read in many small goes, each with a cursor that went through JSON; together each line once."""
    log = await pods.print("goes", NUMBERED.replace("SECONDS", "4"))
    cursor, found = PodLogCursor(), b""
    async with asyncio.timeout(60):
        while not cursor.over:
            async for portion in pods.log("goes").read(cursor):
                found += data(list(portion.items))
                cursor = CURSOR.validate_json(CURSOR.dump_json(portion.cursor))
                if cursor.last is not None and cursor.last.stamp % 3 == 0:
                    break  # the reader dies
            await asyncio.sleep(0.1)
    assert sorted(int(line) for line in found.split(b"\n")[:-1]) == list(range(found.count(b"\n")))
    assert await all_of(log.follow(cursor)) == []


@pytest.mark.parametrize(
    "clean", [False, pytest.param(True, marks=pytest.mark.full)], ids=["cut", "clean end"]
)
async def test_equal_seconds_and_clean_ends(pods: Pods, proxy: FaultyProxy, clean: bool) -> None:
    """Many lines of one second, and answers that end in the midst of them."""
    code = "import time\nfor n in range(20000): print(n)\ntime.sleep(4)\nprint('end')"
    log = await pods.print("many", code)
    for size in (1_000, 300_000, 400_000, 500_000):
        proxy.add(cut_bytes(size), path="/log", times=1)
    if clean:
        proxy.clear()
        proxy.add(end(0.4), path="follow=true", times=6)
    items = await all_of(log.follow())
    assert data(items) == b"".join(b"%d\n" % n for n in range(20000)) + b"end\n"


async def test_restarts_of_the_container(pods: Pods) -> None:
    code = """
import os, sys
n = len(os.listdir("/kept"))
open(f"/kept/{n}", "w").close()
print("run", n)
sys.exit(3 if n < 1 else 0)
"""
    log = await pods.print("again", code, restartPolicy="OnFailure")
    items = await all_of(log.follow())
    assert data(items) == b"run 0\nrun 1\n"
    assert rest(items) == [
        "ContainerStarted",
        "ContainerEnded",
        "ContainerStarted",
        "ContainerEnded",
        "LogEnded",
    ]
    ended = [item for item in items if isinstance(item, ContainerEnded)]
    assert [(one.restart, one.exit_code) for one in ended] == [(0, 3), (1, 0)]
    # Who comes later gets what the kubelet has kept.
    later = await all_of(pods.log("again").read())
    assert data(later).endswith(b"run 1\n")
    assert isinstance(later[-1], LogEnded)
    assert (b"run 0" in data(later)) != any(isinstance(item, PodLogGap) for item in later)


@pytest.mark.full
async def test_a_restart_while_nobody_reads(pods: Pods) -> None:
    code = """
import os, sys, time
n = len([name for name in os.listdir("/kept") if name.isdigit()])
open(f"/kept/{n}", "w").close()
print("run", n, "begins")
while n == 0 and not os.path.exists("/kept/go"):
    time.sleep(0.1)
time.sleep(n * 6)
print("run", n, "ends")
sys.exit(3 if n < 1 else 0)
"""
    await pods.print("away", code, restartPolicy="OnFailure")
    cursor = PodLogCursor()
    items: list[Item] = []
    async for portion in pods.log("away").follow():
        cursor = portion.cursor
        items += portion.items
        if data(items):
            break
    await pods.kubectl("exec", "away", "--", "touch", "/kept/go")
    again = "--for=jsonpath={.status.containerStatuses[0].restartCount}=1"
    await pods.kubectl("wait", again, "pod/away")
    items += await all_of(pods.log("away").follow(cursor))
    assert data(items) == b"run 0 begins\nrun 0 ends\nrun 1 begins\nrun 1 ends\n"
    assert rest(items) == [
        "ContainerStarted",
        "ContainerEnded",
        "ContainerStarted",
        "ContainerEnded",
        "LogEnded",
    ]


@pytest.mark.full
async def test_a_pod_that_is_deleted_or_replaced(pods: Pods, proxy: FaultyProxy) -> None:
    code = """
import signal, sys, time
def term(*_):
    print("bye")
    sys.exit(0)
signal.signal(signal.SIGTERM, term)
print("hello")
time.sleep(600)
"""
    log = await pods.print("gone", code)
    following = asyncio.create_task(all_of(log.follow()))
    cursor = PodLogCursor()
    async for portion in pods.log("gone").follow():
        cursor = portion.cursor
        if data(list(portion.items)):
            break
    await pods.kubectl("delete", "pod", "gone")
    items = await following
    assert data(items) == b"hello\nbye\n"
    assert rest(items) == ["ContainerStarted", "ContainerEnded", "LogEnded"]
    assert isinstance(items[-1], LogEnded)
    assert items[-1].reason == "deleted"
    assert rest(await all_of(log.read(cursor)))[-1] == "LogEnded"
    await pods.print("gone", "print('another')")
    with_another = await all_of(log.follow(cursor))
    assert with_another[-1] == LogEnded("replaced")
    assert data(with_another) == b""
    assert data(await all_of(log.follow())) == b"another\n"


async def test_it_waits_for_a_container_that_has_yet_to_start(pods: Pods) -> None:
    init = {
        "name": "first",
        "image": pods.cluster.image,
        "command": ["sh", "-c", "echo from the first; sleep 3"],
    }
    watches = Informers(pods.client)
    await pods.print("later", "print('there')", initContainers=[init])
    rows = watches.get(f"/api/v1/namespaces/{pods.namespace}/pods", pod_state)
    first = PodLog(pods.client, pods.namespace, "later", "first")
    log = PodLog(pods.client, pods.namespace, "later", "c", news=rows.row_watch("later"))
    assert await all_of(log.read()) == []
    assert data(await all_of(first.follow())) == b"from the first\n"
    items = await all_of(log.follow())
    assert data(items) == b"there\n"
    assert isinstance(items[0], ContainerStarted)
    await watches.close()


@pytest.mark.full
async def test_answers_that_are_no_log(pods: Pods, proxy: FaultyProxy) -> None:
    """The kubelet's and the API server's ways to say: not now."""
    code = "import time\nfor n in range(40): print(n); time.sleep(0.1)\n"
    log = await pods.print("odd", code)
    gone = "unable to retrieve container logs for containerd://abc"
    missing = {"kind": "pods/log", "name": "odd"}
    proxy.add(replace(gone.encode(), kind="text/plain"), path="/log", times=1)
    text = "the server could not find the requested resource ( pods/log odd)"
    proxy.add(refuse(404, text, "NotFound", details=missing), path="/log", times=1)
    dial = 'Get "https://node:10250/x": dial tcp 10.0.0.1:10250: connect: connection refused'
    proxy.add(refuse(500, dial), path="/log", times=1)
    waiting = 'container "c" in pod "odd" is waiting to start: ContainerCreating'
    proxy.add(refuse(400, waiting, "BadRequest"), path="/log", times=1)
    proxy.add(append(b"unable to read"), path="/log", times=1)
    proxy.add(refuse(401), path="/log", times=3)
    proxy.add(refuse(429, retry_after=1), path="/log", times=1)
    proxy.add(page(502), path="/pods/odd", times=2)
    proxy.add(drop(), path="/log", times=1)
    items = await all_of(log.follow())
    assert data(items) == b"".join(b"%d\n" % n for n in range(40))
    assert rest(items) == ["ContainerStarted", "ContainerEnded", "LogEnded"]


async def test_what_cannot_be_is_an_error(
    pods: Pods, kubernetes_cluster: KubernetesTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(NotFoundError):
        await all_of(pods.log("nobody").follow())
    await pods.print("one", "import time; time.sleep(600)")
    await pods.kubectl("wait", "--for=condition=Ready", "pod/one")
    with pytest.raises(InvalidInputError):
        await all_of(PodLog(pods.client, pods.namespace, "one", "zz").follow())
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}]
    user = kubernetes_cluster.user("nologs", pods.namespace, rules=rules)
    monkeypatch.setenv("KUBECONFIG", str(user))
    narrow = KubeClient(load_access(KubernetesCluster(orchestrator="kubernetes")))
    with pytest.raises(DeniedError) as caught:
        await all_of(PodLog(narrow, pods.namespace, "one", "c").follow())
    assert caught.value.detail["right"]["resource"] == "pods/log"
    await narrow.close()


@pytest.mark.full
async def test_a_server_that_is_away_for_a_while(pods: Pods, proxy: FaultyProxy) -> None:
    log = await pods.print("away", NUMBERED.replace("SECONDS", "6"))
    following = asyncio.create_task(all_of(log.follow()))
    async with asyncio.timeout(20):
        while not any(seen.path.endswith("/log") for seen in proxy.requests):  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    await asyncio.sleep(1)
    proxy.down()
    await asyncio.sleep(2)
    assert log.last_error is not None
    proxy.up()
    items = await following
    assert sorted(numbers_of(items)) == list(range(len(numbers_of(items))))
    assert rest(items) == ["ContainerStarted", "ContainerEnded", "LogEnded"]
    assert log.last_error is None


@pytest.mark.full
@pytest.mark.timeout(300)
async def test_what_the_kubelet_rotated_away_is_a_gap(pods: Pods, proxy: FaultyProxy) -> None:
    """Some 30 MB are written while the server is away: the newest file begins later than where the reader stood."""
    code = """
import os, time
print("begin")
while not os.path.exists("/kept/go"):
    time.sleep(0.1)
for n in range(40):
    for m in range(100):
        os.write(1, b"%06d " % (n * 100 + m) + b"x" * 9990 + b"\\n")
    time.sleep(1)
print("end")
"""
    log = await pods.print("much", code)
    following = asyncio.create_task(all_of(log.follow(), 200))
    async with asyncio.timeout(30):
        while log.state is None or log.state.phase != "Running":  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    await asyncio.sleep(1)
    proxy.down()
    await pods.kubectl("exec", "much", "--", "touch", "/kept/go")
    await asyncio.sleep(32)
    proxy.up()
    items = await following
    found = [int(line[:6]) for line in data(items).split(b"\n")[1:-2]]
    assert data(items).startswith(b"begin\n")
    assert data(items).endswith(b"end\n")
    assert 0 < len(found) < 4000
    assert found == sorted(set(found))
    assert found[-1] == 3999
    assert found == list(range(found[0], 4000))
    assert [item for item in items if isinstance(item, PodLogGap)] == [PodLogGap("rotated")]
