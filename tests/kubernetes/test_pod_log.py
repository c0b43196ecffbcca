"""The output of a user's own pods becomes a log of the run, over broken answers and readers that die: against a stand-in for the cluster."""

from __future__ import annotations

import asyncio
import random
import re
import struct
from pathlib import Path

import pytest

from hyperpod_jlab.core.errors import UnreachableError
from hyperpod_jlab.engines.kubernetes.observe import pod_log
from hyperpod_jlab.engines.kubernetes.observe.native_recorder import PodRecorder
from hyperpod_jlab.engines.kubernetes.observe.pod_log import LogAnswer, PodLog
from hyperpod_jlab.engines.kubernetes.observe.pods import parse_pod
from hyperpod_jlab.storage.partition import Partition
from hyperpod_jlab.storage.records import BundleReader
from tests.kubernetes.kubelet import BEGIN, SECOND, Fault, Kubelet, quick
from tests.kubernetes.pod_output import numbered, special

__all__ = ["quick"]

pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture
def bundle(tmp_path: Path) -> BundleReader:
    found = BundleReader(Partition(tmp_path), "20261121-120455-k3x9qd")
    found.folder.mkdir(parents=True)
    return found


async def reader(bundle: BundleReader, kubelet: Kubelet) -> PodLog:
    pod = parse_pod(await kubelet.get(""))
    return PodLog(bundle, pod, 0, PodRecorder(bundle, "mine"), kubelet, "n")


def log(bundle: BundleReader, attempt: int = 1) -> bytes:
    return (bundle.records / f"logs/attempt-{attempt}/node-0.rank-0.log").read_bytes()


async def fetch(bundle: BundleReader, kubelet: Kubelet, chance: float) -> int:
    """Fetch all, each reader dying with that chance after each part that it wrote; how many readers it took."""
    readers = 0
    while True:
        readers += 1
        copied = await reader(bundle, kubelet)
        if copied.is_complete:
            return readers
        store = copied._store

        def stored(answer: LogAnswer, chunk: bytes | None = None, store=store) -> None:
            store(answer, chunk)
            if kubelet.chance.random() < chance:
                raise OSError("killed")

        copied._store = stored
        try:
            await copied.copy(follow=True)
        except OSError:
            continue


@pytest.mark.parametrize("seed", range(4))
async def test_each_container_is_an_attempt(bundle: BundleReader, seed: int) -> None:
    """Answers are cut and readers die; the log is what the containers wrote."""
    kubelet = Kubelet("OnFailure")
    kubelet.chance = random.Random(seed)
    texts = [b"one\n\n\xff torn\n" + b"x" * 70_000 + b"\nno newline", numbered(0, 300)]
    for number, text in enumerate(texts):
        if number:
            kubelet.now.code = 3
            kubelet.restart()
        kubelet.now.write(BEGIN + number * SECOND, text)
    kubelet.now.code = 0
    whole = sum(map(len, texts))
    kubelet.faults = [Fault(kubelet.chance.randrange(whole), cut=True) for _ in range(20)]
    assert await fetch(bundle, kubelet, 0.2) > 1
    assert [log(bundle, attempt) for attempt in (1, 2)] == texts


async def test_several_readers_at_once_write_the_same(bundle: BundleReader) -> None:
    kubelet = Kubelet()
    for number, line in enumerate(re.findall(rb"[^\n]*\n|[^\n]+", special(7))):
        kubelet.now.lines.append((BEGIN + number * 300_000_000, line))
    kubelet.now.code = 0
    await asyncio.gather(*(fetch(bundle, kubelet, 0.001) for _ in range(3)))
    assert log(bundle) == special(7)
    index = (bundle.records / "logs/attempt-1/node-0.rank-0.idx").read_bytes()
    records = list(struct.iter_unpack("<qq", index))
    assert records == sorted(records)
    assert records[0] == (BEGIN, 0)


async def test_lines_that_come_out_of_order_after_a_cut_are_there(bundle: BundleReader) -> None:
    kubelet = Kubelet()
    kubelet.now.lines = [(BEGIN + SECOND, b"out\n")]
    await (await reader(bundle, kubelet)).copy(follow=False)
    kubelet.now.lines += [(BEGIN, b"err\n"), (BEGIN + 2 * SECOND, b"last\n")]
    kubelet.now.code = 0
    await (await reader(bundle, kubelet)).copy(follow=False)
    assert log(bundle) == b"out\nerr\nlast\n"


@pytest.mark.parametrize("kept_from", [1, 3, 5])
async def test_what_the_node_has_rotated_away_is_said(bundle: BundleReader, kept_from: int) -> None:
    """No line is missing unsaid, whether the last line that is stored is still there or not."""
    kubelet = Kubelet()
    kubelet.now.lines = [(BEGIN + n * SECOND, b"%d\n" % n) for n in range(3)]
    await (await reader(bundle, kubelet)).copy(follow=False)
    kubelet.now.lines += [(BEGIN + 2 * SECOND + n, b"%d\n" % n) for n in range(3, 8)]
    kubelet.now.kept_from = kept_from
    kubelet.now.code = 0
    await (await reader(bundle, kubelet)).copy(follow=False)
    first, _, rest = log(bundle).partition(b"hyperpod: lines are missing here")
    assert first == b"0\n1\n2\n"
    assert rest.splitlines()[1:] == [b"%d" % n for n in range(kept_from, 8)]


async def test_a_reader_that_lags_behind_a_rotation_goes_on_where_another_is(bundle: BundleReader) -> None:
    """Its own count of lines would move the others' lines."""
    kubelet = Kubelet()
    kubelet.now.lines = [(BEGIN + n * SECOND, b"%d\n" % n) for n in range(3)]
    slow = await reader(bundle, kubelet)
    state = await slow._state()
    await slow._step(state, follow=False)
    await slow._step(state, follow=False)
    kubelet.now.lines += [(BEGIN + (3 + n) * SECOND, b"%d\n" % (3 + n)) for n in range(7)]
    await (await reader(bundle, kubelet)).copy(follow=False)
    kubelet.now.kept_from = 6
    kubelet.now.lines += [(BEGIN + (10 + n) * SECOND, b"%d\n" % (10 + n)) for n in range(2)]
    kubelet.now.code = 0
    while not slow.is_complete:
        await slow._step(await slow._state(), follow=False)
    assert log(bundle) == b"".join(b"%d\n" % n for n in range(12))


async def test_a_pod_that_is_gone_is_said(bundle: BundleReader) -> None:
    kubelet = Kubelet()
    kubelet.now.write(BEGIN, b"begun\n")
    copied = await reader(bundle, kubelet)
    await copied.copy(follow=False)
    assert log(bundle) == b"begun\n"
    kubelet.gone = True
    await copied.copy(follow=False)
    assert copied.is_complete
    assert log(bundle) == b"begun\nhyperpod: the pod is gone; what it said after this line is lost\n"


async def test_a_log_that_the_node_has_removed_is_said(bundle: BundleReader, monkeypatch: pytest.MonkeyPatch) -> None:
    kubelet = Kubelet()
    kubelet.now.write(BEGIN, b"begun\n")
    kubelet.now.code, kubelet.now.removed = 0, True
    with pytest.raises(UnreachableError, match="does not provide the log"):
        await (await reader(bundle, kubelet)).copy(follow=False)
    monkeypatch.setattr(pod_log, "_REMOVED_AFTER_S", 0.0)
    await (await reader(bundle, kubelet)).copy(follow=True)
    assert log(bundle).startswith(b"hyperpod: the node no longer has the log of this container")


async def test_a_position_that_cannot_be_read_is_the_beginning(bundle: BundleReader) -> None:
    """Such as one of another version."""
    kubelet = Kubelet()
    kubelet.now.lines = [(BEGIN, b"a\n")]
    kubelet.now.code = 0
    place = bundle.records / "spool/p.u.json"
    place.parent.mkdir(parents=True)
    place.write_text('{"cursor": {"anchor": [1, 2, 3]}, "attempts": {}, "said": 0}')
    await fetch(bundle, kubelet, 0.0)
    assert log(bundle) == b"a\n"
