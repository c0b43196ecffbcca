"""How often AWS is asked: counted where it is asked, and told on the event bus without anybody asking."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from hyperpod_jlab.aws import session
from hyperpod_jlab.aws import signed as call_meter
from hyperpod_jlab.aws.session import Aws
from hyperpod_jlab.aws.signed import METER, CallMeter, OperationCalls
from hyperpod_jlab.core.errors import NotFoundError
from hyperpod_jlab.engines.kubernetes.api.eks import eks_access
from hyperpod_jlab.server import events as aws_call_events
from hyperpod_jlab.server.events import AWS_CALLS_SCHEMA_ID as SCHEMA_ID
from testbed.aws.example import example_account
from tests.aws.conftest import REGION
from tests.aws.test_rest import until_loaded
from tests.conftest import home  # noqa: F401 - the server's tests have another one than the command line's
from tests.server.conftest import *  # noqa: F403
from tests.server.test_events import until

LIST = "sagemaker:ListClusters"

CALLS = 6
"""What the list of the example's clusters costs: it, four descriptions, and whether one on EKS lets this role in."""


@pytest.fixture
def meter(monkeypatch):
    """The process's meter, as if nothing had been asked before; what earlier tests left under way has ended."""
    idle = threading.Barrier(session._MAX_CONNECTIONS + 1)
    for _ in range(session._MAX_CONNECTIONS):
        session._threads.submit(idle.wait, 60)
    idle.wait(60)
    monkeypatch.setattr(METER, "_recent", type(METER._recent)())
    monkeypatch.setattr(METER, "total", 0)
    return METER


@pytest.fixture
def heard(jp_serverapp):
    """What the event bus tells of calls."""
    told = []

    async def listen(logger, schema_id, data):
        told.append({name: value for name, value in data.items() if not name.startswith("__")})

    jp_serverapp.event_logger.add_listener(schema_id=SCHEMA_ID, listener=listen)
    return told


async def test_each_page_and_each_try_counts_as_aws_counts_it(endpoint, meter):
    aws = Aws()
    await aws.call("sts", "GetCallerIdentity")
    endpoint.faults.throttled[LIST] = 1
    pages = [page async for page in aws.pages("sagemaker", "ListClusters")]
    assert len(pages) == 1
    assert meter.last_minute() == [
        OperationCalls("sagemaker", "ListClusters", 2),
        OperationCalls("sts", "GetCallerIdentity", 1),
    ]
    assert meter.total == len(endpoint.calls) == 3


def test_what_kubernetes_asks_eks_is_counted_too(endpoint, meter):
    endpoint.account = example_account(REGION)
    with pytest.raises(NotFoundError):
        eks_access("nobody-has-this")
    assert OperationCalls("eks", "DescribeCluster", 1) in meter.last_minute()


def test_only_the_last_minute_counts(monkeypatch):
    meter = CallMeter()
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    meter.record("sagemaker", "ListClusters")
    now[0] += 59
    meter.record("sagemaker", "DescribeCluster")
    assert sum(one.calls for one in meter.last_minute()) == 2
    now[0] += 2
    assert meter.last_minute() == [OperationCalls("sagemaker", "DescribeCluster", 1)]
    assert meter.total == 2


def test_many_threads_lose_no_call():
    meter = CallMeter()

    def many():
        for _ in range(1000):
            meter.record("s", "O")

    threads = [threading.Thread(target=many) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert meter.last_minute() == [OperationCalls("s", "O", 8000)]
    assert meter.total == 8000


async def test_the_server_says_what_it_asked(endpoint, meter, api):
    endpoint.account = example_account(REGION)
    assert await api.get("aws/calls") == {"calls": 0, "total": 0, "operations": []}
    await until_loaded(api, "clusters")
    answer = await api.get("aws/calls")
    assert answer["calls"] == answer["total"] == len(endpoint.calls) == CALLS
    assert answer["operations"][0] == {"service": "sagemaker", "operation": "DescribeCluster", "calls": 4}


async def test_calls_are_told_and_that_they_are_over(endpoint, meter, api, heard, monkeypatch):
    monkeypatch.setattr(aws_call_events, "INTERVAL_S", 0.1)
    monkeypatch.setattr(call_meter, "WINDOW_S", 2.0)
    endpoint.account = example_account(REGION)
    await api.get("version")
    await asyncio.sleep(0.3)
    assert heard == []
    await until_loaded(api, "clusters")
    # Not "calls": on a busy machine the first of them is out of the window before the last is made.
    await until(lambda: heard and heard[-1]["total"] == CALLS)
    await until(lambda: heard[-1]["calls"] == 0)
    assert heard[-1] == {"calls": 0, "total": CALLS, "operations": []}
    told = len(heard)
    await asyncio.sleep(0.5)
    assert len(heard) == told
    assert len(endpoint.calls) == CALLS
    await api.get("clusters", refresh="true")
    await until(lambda: heard[-1]["total"] > CALLS)
