"""What launchers print in pods becomes the files that they would have written, over broken answers and readers that die: against a stand-in for the cluster."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hyperpod_jlab.engines.kubernetes.observe.native_recorder import PodRecorder
from hyperpod_jlab.engines.kubernetes.observe.pods import RunPod, parse_pod
from hyperpod_jlab.engines.kubernetes.observe.spool import FramedPod, PodSpool, RawPod, spool_path
from hyperpod_jlab.engines.kubernetes.observe.spool_files import Modes
from hyperpod_jlab.launcher.frames import FrameEcho, content_frames, document_frames
from hyperpod_jlab.storage.partition import Partition
from hyperpod_jlab.storage.records import BundleReader
from tests.kubernetes.kubelet import BEGIN, Kubelet, log_of, quick
from tests.kubernetes.pod_output import numbered, special

__all__ = ["quick"]

pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture
def bundle(tmp_path: Path) -> BundleReader:
    found = BundleReader(Partition(tmp_path), "20261121-120455-k3x9qd")
    found.folder.mkdir(parents=True)
    return found


def attempt(number: int, incarnation: str, logs: dict[str, bytes]) -> bytes:
    """What a launcher prints in an attempt whose ranks write these logs at the same time."""
    claim = {"scheduler_id": "run-x", "incarnation": incarnation, "time": 1.0}
    text = document_frames(f"status/attempt-{number}/claim.json", claim, True)
    echoes = {key: FrameEcho(f"{number}.0.{key}") for key in logs}
    left = dict(logs)
    text += b"".join(echo.opening for echo in echoes.values())
    while any(left.values()):
        for key, echo in echoes.items():
            piece, left[key] = left[key][:100_000], left[key][100_000:]
            text += echo.feed(piece, 0.0)
    text += b"".join(echo.close() for echo in echoes.values())
    record = {"format": 1, "node_rank": 0, "attempt": number, "exit_code": 0}
    return text + document_frames(f"status/attempt-{number}/node-0.json", record, False)


async def fetch(kubelet: Kubelet, spool: Callable[[RunPod], PodSpool], chance: float) -> int:
    """Fetch all, each reader dying with that chance after each portion it wrote; how many readers it took."""
    readers = 0
    while True:
        readers += 1
        pod = spool(parse_pod(await kubelet.get("")))
        if pod.is_complete:
            return readers

        def dies() -> bool:
            return kubelet.chance.random() < chance

        step = pod._step

        def stepping(portion: Any, step: Callable[[Any], None] = step) -> None:
            step(portion)
            if dies():
                raise OSError("killed")

        pod._step = stepping
        try:
            await pod.follow(log_of(kubelet))
        except OSError:
            continue


@pytest.mark.parametrize("seed", range(4))
async def test_logs_and_records_are_what_the_launcher_wrote(
    bundle: BundleReader, seed: int
) -> None:
    kubelet = Kubelet()
    kubelet.chance, kubelet.faulty = random.Random(seed), True
    ranks = {"0": special(0), "1": special(1), "node": numbered(0, 50)}
    result = random.Random(seed).randbytes(100_000)
    text = b"waiting for the others\n" + attempt(1, "a", ranks)
    text += content_frames("result.pkl", result, False) + b"Killed\n"
    for number, line in enumerate(text.split(b"\n")[:-1]):
        kubelet.now.lines.append((BEGIN + number * 1_000_000, line + b"\n"))
    kubelet.now.code = 0
    modes = Modes(bundle.folder, 0o700, 0o600)
    readers = await fetch(kubelet, lambda pod: FramedPod(bundle, pod, modes), 0.05)
    assert readers > 2
    logs = bundle.records / "logs"
    for rank in (0, 1):
        assert (logs / f"attempt-1/node-0.rank-{rank}.log").read_bytes() == special(rank)
    assert (logs / "attempt-1/node-0.log").read_bytes() == ranks["node"]
    assert (logs / "pods/p.u.log").read_bytes() == b"waiting for the others\nKilled\n"
    assert (bundle.records / "result.pkl").read_bytes() == result
    record = json.loads((bundle.records / "status/attempt-1/node-0.json").read_text())
    assert record["exit_code"] == 0


async def test_several_processes_fetch_at_once(bundle: BundleReader) -> None:
    kubelet = Kubelet()
    kubelet.faulty = True
    for number, line in enumerate(attempt(1, "a", {"0": special(7)}).split(b"\n")[:-1]):
        kubelet.now.lines.append((BEGIN + number * 1_000_000, line + b"\n"))
    kubelet.now.code = 0
    modes = Modes(bundle.folder, 0o700, 0o600)

    def spool(pod: RunPod) -> PodSpool:
        return FramedPod(bundle, pod, modes)

    await asyncio.gather(*(fetch(kubelet, spool, 0.05) for _ in range(3)))
    assert (bundle.records / "logs/attempt-1/node-0.rank-0.log").read_bytes() == special(7)


async def test_pods_that_count_from_1_again_open_the_next_attempt(bundle: BundleReader) -> None:
    modes = Modes(bundle.folder, 0o700, 0o600)
    for uid, text in (("u", b"first\n"), ("v", b"second\n")):
        kubelet = Kubelet()
        kubelet.uid = uid
        for number, line in enumerate(attempt(1, uid, {"0": text}).split(b"\n")[:-1]):
            kubelet.now.lines.append((BEGIN + number, line + b"\n"))
        kubelet.now.code = 0
        await fetch(kubelet, lambda pod: FramedPod(bundle, pod, modes), 0.0)
    logs = bundle.records / "logs"
    found = [(logs / f"attempt-{one}/node-0.rank-0.log").read_bytes() for one in (1, 2)]
    assert found == [b"first\n", b"second\n"]
    assert (bundle.records / "status/attempt-2/node-0.json").exists()


@pytest.mark.parametrize("seed", range(4))
async def test_without_a_launcher_each_container_is_an_attempt(
    bundle: BundleReader, seed: int
) -> None:
    kubelet = Kubelet("OnFailure")
    kubelet.chance, kubelet.faulty = random.Random(seed), True
    texts = [b"one\n\n\xff torn\n" + b"x" * 70_000 + b"\nno newline", numbered(0, 300)]
    for number, text in enumerate(texts):
        if number:
            kubelet.now.code = 3
            kubelet.restart()
        kubelet.now.write(BEGIN + number * 1_000_000_000, text)
    kubelet.now.code = 0
    modes = Modes(bundle.folder, 0o700, 0o600)

    def spool(pod: RunPod) -> PodSpool:
        return RawPod(bundle, pod, 0, modes, PodRecorder(bundle, "mine"), "n")

    await fetch(kubelet, spool, 0.2)
    logs = bundle.records / "logs"
    found = [(logs / f"attempt-{one}/node-0.rank-0.log").read_bytes() for one in (1, 2)]
    assert found == texts


async def test_a_place_that_cannot_be_read_is_begun_anew(bundle: BundleReader) -> None:
    """Such as one of another version."""
    kubelet = Kubelet()
    kubelet.now.lines = [(BEGIN, line) for line in attempt(1, "a", {"0": b"a\n"}).splitlines(True)]
    kubelet.now.code = 0
    place = bundle.records / spool_path("p", "u")
    place.parent.mkdir(parents=True)
    place.write_text('{"cursor": {"anchor": [1, 2, 3]}, "attempts": {}, "said": 0}')
    modes = Modes(bundle.folder, 0o700, 0o600)
    await fetch(kubelet, lambda pod: FramedPod(bundle, pod, modes), 0.0)
    assert (bundle.records / "logs/attempt-1/node-0.rank-0.log").read_bytes() == b"a\n"
    assert json.loads(place.read_text())["cursor"]["over"] is True
