"""The output of a user's own pods becomes a log of the run, over broken answers and readers that die: against a stand-in for the cluster."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hyperpod_jlab.engines.kubernetes.observe.native_recorder import PodRecorder
from hyperpod_jlab.engines.kubernetes.observe.pods import RunPod, parse_pod
from hyperpod_jlab.engines.kubernetes.observe.spool import PodSpool, RawPod, spool_path
from hyperpod_jlab.engines.kubernetes.observe.spool_files import Modes
from hyperpod_jlab.storage.partition import Partition
from hyperpod_jlab.storage.records import BundleReader
from tests.kubernetes.kubelet import BEGIN, Kubelet, log_of, quick
from tests.kubernetes.pod_output import numbered

__all__ = ["quick"]

pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture
def bundle(tmp_path: Path) -> BundleReader:
    found = BundleReader(Partition(tmp_path), "20261121-120455-k3x9qd")
    found.folder.mkdir(parents=True)
    return found


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
    kubelet.now.lines = [(BEGIN, b"a\n")]
    kubelet.now.code = 0
    place = bundle.records / spool_path("p", "u")
    place.parent.mkdir(parents=True)
    place.write_text('{"cursor": {"anchor": [1, 2, 3]}, "attempts": {}, "said": 0}')
    modes = Modes(bundle.folder, 0o700, 0o600)

    def spool(pod: RunPod) -> PodSpool:
        return RawPod(bundle, pod, 0, modes, PodRecorder(bundle, "mine"), "n")

    await fetch(kubelet, spool, 0.0)
    assert (bundle.records / "logs/attempt-1/node-0.rank-0.log").read_bytes() == b"a\n"
    assert json.loads(place.read_text())["cursor"]["over"] is True
