"""An API server that refuses, answers with something else or not at all: clear words meanwhile, and nothing lost or doubled afterwards."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from hyperpod_jlab.core.errors import HyperpodError, UnreachableError
from tests.kubernetes.client_fixtures import proxy
from tests.kubernetes.fault_fixtures import behind, follow, numbers, whole, why
from tests.kubernetes.proxy import FaultyProxy, Pipe, append, cut, cut_bytes, drop, end, expire, hang, page, refuse
from tests.kubernetes.session_fixtures import KubernetesSession, Sessions

__all__ = ["behind", "proxy"]

HTML = "<html><head><title>502</title></head><body>Bad Gateway</body></html>"
COUNT = 80

#: What becomes of all requests for some seconds, the open ones included.
FAULTS = {
    "401-token-expired": refuse(401, message="Unauthorized", reason="Unauthorized"),
    "429": refuse(429, message="too many requests", retry_after=1),
    "500-html": page(500, HTML),
    "503": refuse(503, message="the server is shutting down", retry_after=1),
    "dropped": drop(),
    "silent": hang(),
    "cut": cut(after=0.3),
    "cut-in-the-middle": cut_bytes(100),
    "clean-end": end(after=0.3),
    "410-in-watches": expire(),
}
OFTEN = {"401-token-expired"}


def only_streams(name: str) -> str:
    """The paths that a fault is for."""
    return r"watch=|follow=" if name in {"410-in-watches", "clean-end", "cut"} else ""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in OFTEN else pytest.mark.full) for name in FAULTS]
)
async def test_for_some_seconds_in_the_middle_of_a_run(
    name: str, behind: KubernetesSession, proxy: FaultyProxy
) -> None:
    """Who follows the log misses nothing and reads nothing twice, and the run's state is right at the end."""
    run_id = await behind.submit(numbers(COUNT))
    reading = asyncio.create_task(follow(behind, run_id))
    await behind.running(run_id)
    fault: Pipe = FAULTS[name]
    made = proxy.add(fault, path=only_streams(name))
    proxy.cut_all()
    await asyncio.sleep(4)
    during = await behind.hyperpod.runs.get(run_id)
    assert during.state in {"running", "unknown"}, during.status
    proxy.remove(made)
    if name == "silent":
        proxy.cut_all()
    run = await behind.ended(run_id)
    assert (run.state, len(run.status.attempts)) == ("succeeded", 1)
    assert await asyncio.wait_for(reading, 30) == whole(COUNT)
    assert behind.log(run_id).split() == whole(COUNT)


@pytest.mark.parametrize(
    ("fault", "code", "said"),
    [
        pytest.param(refuse(401, message="Unauthorized"), "unauthorized", "your credentials", id="401"),
        pytest.param(page(500, HTML), "unreachable", "500", id="500-html"),
        pytest.param(
            page(200, HTML), "no_api_server", "not a Kubernetes API server", id="200-html", marks=pytest.mark.full
        ),
        pytest.param(page(403, HTML), "denied", "", id="403-html", marks=pytest.mark.full),
        pytest.param(
            page(404, HTML), "no_api_server", "not a Kubernetes API server", id="404-html", marks=pytest.mark.full
        ),
        pytest.param(refuse(429, retry_after=60), "too_many_requests", "overloaded", id="429", marks=pytest.mark.full),
        pytest.param(drop(), "unreachable", "", id="dropped", marks=pytest.mark.full),
    ],
)
async def test_what_the_user_reads_of_it(
    fault: Pipe, code: str, said: str, behind: KubernetesSession, proxy: FaultyProxy
) -> None:
    """Submit says what is wrong in our words, never with the page's; afterwards the same command works."""
    proxy.add(fault)
    words = ("submit", "--json", "--run-id", "run-once", "--no-project-files", "-c", "echo once")
    answer = await behind.hpj(*words)
    assert answer.code not in {0, 1}, answer
    assert answer.error["code"] == code, answer.error
    assert said in answer.error["message"]
    assert answer.error["hint"]
    assert "<" not in answer.error["message"] + answer.error["hint"]
    assert "Traceback" not in answer.err
    shown = await behind.hyperpod.clusters.configured()
    line = next(cluster for cluster in shown if cluster.name == "k8s")
    assert line.reason
    assert "<" not in line.reason
    proxy.clear()
    assert (await behind.hpj(*words)).code == 0
    run = await behind.ended("run-once")
    assert (run.state, behind.log("run-once")) == ("succeeded", "once\n")


@pytest.mark.full
async def test_a_run_whose_cluster_is_gone_is_told_by_its_launchers(
    behind: KubernetesSession, proxy: FaultyProxy
) -> None:
    """One that waits is unknown, one that runs goes on where its launchers can be heard; both are right again when it is back."""
    waits = await behind.submit(environment={"image": "localhost/testbed/nothing:1"})
    await why(behind, waits, "image_registry")
    run_id = await behind.submit(numbers(COUNT))
    await behind.running(run_id)
    proxy.down()
    # Launchers are heard of once they have written that they go on.
    await behind.until(run_id, lambda run: "API server" in (run.status.reason or "") and run.state == "running", 30)
    other = await behind.until(waits, lambda run: run.state == "unknown", 30)
    assert other.status.reason_code == "unreachable"
    with pytest.raises(UnreachableError):
        await behind.hyperpod.runs.act(waits, "cancel")
    proxy.up()
    run = await behind.ended(run_id)
    assert (run.state, behind.log(run_id).split()) == ("succeeded", whole(COUNT))
    again = await behind.until(waits, lambda run: run.state != "unknown")
    assert not again.status.ended
    await behind.hyperpod.runs.act(waits, "cancel")
    assert (await behind.ended(waits)).state == "cancelled"


@pytest.mark.full
async def test_an_error_in_the_middle_of_a_list_is_not_an_empty_list(
    behind: KubernetesSession, proxy: FaultyProxy
) -> None:
    """A job that is not in a broken answer is not taken for gone."""
    run_id = await behind.submit(numbers(COUNT))
    await behind.running(run_id)
    proxy.add(cut_bytes(300), verb="GET", path="/pytorchjobs")
    proxy.add(append(b'{"kind":"Status"}'), verb="GET", path="/pods")
    proxy.cut_all()
    for _ in range(8):
        assert (await behind.hyperpod.runs.get(run_id)).state in {"running", "unknown"}
        await asyncio.sleep(0.5)
    proxy.clear()
    run = await behind.ended(run_id)
    assert (run.state, len(run.status.attempts)) == ("succeeded", 1)


@pytest.mark.full
async def test_a_cancel_whose_answer_is_lost_can_be_given_again(behind: KubernetesSession, proxy: FaultyProxy) -> None:
    run_id = await behind.submit("echo begun; sleep 600")
    await behind.running(run_id)
    for verb in ("DELETE", "PATCH"):
        proxy.add(drop(), verb=verb, times=1)
    with contextlib.suppress(HyperpodError):
        await behind.hyperpod.runs.act(run_id, "cancel")
    await behind.hyperpod.runs.act(run_id, "cancel")
    assert (await behind.ended(run_id)).state == "cancelled"


async def test_credentials_that_end_are_asked_for_anew(sessions: Sessions, proxy: FaultyProxy) -> None:
    """A token that the server no longer takes is fetched again, once for all, and nobody notices."""
    session = sessions(kubeconfig=proxy.kubeconfig)
    run_id = await session.submit("sleep 1; echo ran")
    proxy.add(refuse(401, message="Unauthorized"), times=1)
    run = await session.ended(run_id)
    assert (run.state, session.log(run_id)) == ("succeeded", "ran\n")
