"""What AWS tells of runs that lost a node: by a list that is no older than the loss, and of the attempt that is meant."""

from __future__ import annotations

import asyncio
import time
from typing import cast

import pytest

from hyperpod_jlab.clusters.configuration import load_settings
from hyperpod_jlab.run import repairs
from hyperpod_jlab.run.services import Hyperpod
from hyperpod_jlab.storage.records import BundleReader
from tests.aws.conftest import REGION
from tests.model.recording import attempt, node, records, word

BEGUN = time.time()


class Recorded:
    """A run's bundle of which only the records are asked for."""

    run_id = "run"

    def __init__(self, host: str, *observations) -> None:
        its = node(start=BEGUN).model_copy(update={"node": host})
        self._records = records(attempt(its), observations=observations)

    def read(self):
        """Its records."""
        return self._records


@pytest.fixture
def worker(endpoint):
    cluster = endpoint.account.add_cluster("ml-cluster", REGION, orchestrator={"Slurm": {}})
    cluster.add_group("workers", "ml.g5.xlarge", 2)
    return cluster.nodes[0]


class Telling:
    """What is said of a run on a worker of which Slurm says this."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.hyperpod = Hyperpod(load_settings())

    async def __call__(self, said, *observations):
        """The code and the reason."""
        bundles = cast("list[BundleReader]", [Recorded(self.host, *observations)])
        words = await self.hyperpod._repairs.with_repairs("train", bundles, {"run": said})
        return words["run"].reason_code, words["run"].reason


@pytest.fixture
async def told(worker, home, hpj):
    del hpj  # this process in the user's home
    home.config.write_text('[clusters.train]\norchestrator = "slurm"\nhyperpod = "ml-cluster"\n')
    made = Telling("ip-" + worker.address.replace(".", "-"))
    yield made
    await made.hyperpod.close()


def lists(endpoint):
    return [one.action for one in endpoint.calls].count("sagemaker:ListClusterNodes")


def waits(number=1):
    return word(BEGUN + 5, "waiting", attempt=number)


async def test_a_list_from_before_the_loss_is_asked_for_anew_once(endpoint, worker, told):
    shown = await told.hyperpod.hyperpod_clusters().instances("ml-cluster")  # a page was open
    assert {one.state for one in shown.rows} == {"running"}
    before = lists(endpoint)
    worker.status = "Failure"
    expected = ("recovering", f"HyperPod repairs {told.host}, on which it ran")
    assert await told(waits()) == expected
    assert lists(endpoint) == before + 1
    for _ in range(5):
        assert await told(waits()) == expected
    assert lists(endpoint) == before + 1


async def test_many_losses_ask_no_more_than_now_and_then(endpoint, told, monkeypatch):
    for number in range(1, 6):
        assert await told(waits(number)) == (None, None)
        await asyncio.sleep(0.01)
    assert lists(endpoint) == 2  # the first list, and one anew
    monkeypatch.setattr(repairs, "_REFRESH_INTERVAL_S", 0.0)
    await told(waits(6))
    assert lists(endpoint) == 3


async def test_what_is_said_of_an_attempt_that_is_over_is_not_said_of_the_next_one(worker, told, monkeypatch):
    """Slurm runs the next attempt already, which has not written yet where."""
    monkeypatch.setattr(repairs, "_MIN_WATCH_S", -1.0)
    monkeypatch.setattr(repairs, "_QUICK_TIMEOUT_S", 3.0)
    worker.status = "ShuttingDown"
    runs = word(BEGUN + 6, "running")
    begin = f"HyperPod replaces {told.host}, on which it "
    code, reason = await told(runs)
    assert (code, reason.startswith(f"{begin}runs")) == ("recovering", True)
    over = word(BEGUN + 5, "waiting", attempt=1, verdict="NODE_FAIL")
    assert await told(waits(), over) == ("recovering", f"{begin}ran")
    assert await told(runs, over) == (None, None)
