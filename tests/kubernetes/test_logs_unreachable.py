"""Who reads the log of a run without shared storage while the API server is away is told so, and misses nothing when it is back."""

from __future__ import annotations

import asyncio

import pytest

from tests.kubernetes.client_fixtures import proxy
from tests.kubernetes.fault_fixtures import numbers, whole
from tests.kubernetes.proxy import FaultyProxy
from tests.kubernetes.session_fixtures import Sessions

__all__ = ["proxy"]

pytestmark = pytest.mark.full


async def test_logs_say_that_the_cluster_does_not_answer(
    sessions: Sessions, proxy: FaultyProxy
) -> None:
    bare = sessions(kubeconfig=proxy.kubeconfig, claim=False)
    run_id = await bare.submit(numbers(60, 0.8))
    await bare.until(run_id, lambda _: bare.log(run_id).count("\n") > 3)
    proxy.down()
    answer = await bare.hpj("logs", run_id)
    assert answer.out.startswith("0|1\n0|2\n")
    assert "k8s does not answer: " in answer.err, answer
    assert "newer lines may be missing" in answer.err
    followed = asyncio.create_task(bare.hpj("logs", "-f", run_id))
    await asyncio.sleep(14)
    proxy.up()
    answer = await asyncio.wait_for(followed, 100)
    assert answer.out == "".join(f"0|{line}\n" for line in whole(60))
    away, back = "the log continues when it responds ---", "--- k8s responds again ---"
    assert answer.err.find(away) < answer.err.find(back), answer.err
    assert away in answer.err
