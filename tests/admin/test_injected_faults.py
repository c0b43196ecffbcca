"""AWS that has too many calls, fails, and drops connections, at random and for half a minute: hundreds of profiles come to the same end."""

from __future__ import annotations

import random
import threading
import time
from datetime import timedelta

import pytest

from hyperpod_jlab.admin.fsx import aws as patience
from hyperpod_jlab.admin.fsx.folders import LocalFolderProvisioner
from hyperpod_jlab.admin.fsx.models import DesiredState
from hyperpod_jlab.admin.fsx.reconcile import Reconciler
from hyperpod_jlab.admin.fsx.request import StorageRequest
from hyperpod_jlab.aws.session import Aws
from testbed.aws.faults import ConnectionCutError
from testbed.aws.replies import ApiError
from testbed.aws.state import Profile, Space, lustre_at
from tests.admin.conftest import DOMAIN, FILE_SYSTEM
from tests.admin.executor_kills import account_of_others, seen

SHARED, PER_USER, NOTHING = (DesiredState("shared"), DesiredState("per-user"), DesiredState(None))


class AtRandom:
    """Spoils one call in so many, in one of the ways in which AWS does; the answer of a call that was done too.

    Args:
        one_in: How many calls there are for one that is spoiled.
        seed: Which ones.
    """

    def __init__(self, one_in: int, seed: int) -> None:
        self._random = random.Random(seed)
        self._one_in = one_in
        self._lock = threading.Lock()
        self.spoiled = 0

    def __call__(self, action, when):
        with self._lock:
            if self._random.randrange(2 * self._one_in):
                return
            self.spoiled += 1
            kind = self._random.randrange(4)
        if kind == 0 and when == "before":
            raise ApiError("ThrottlingException", "Rate exceeded")
        if kind == 1:
            raise ApiError("InternalFailure", "The request processing has failed", 500)
        if kind == 2:
            raise ApiError("ServiceUnavailable", "Try again", 503)
        raise ConnectionCutError


def wirer_of(wanted, disk):
    return Reconciler(
        Aws(), StorageRequest(DOMAIN, wanted, file_system=FILE_SYSTEM), provisioner=LocalFolderProvisioner(disk)
    )


async def apply(wanted, disk):
    reconciler = wirer_of(wanted, disk)
    there, made = await reconciler.plan()
    last = {}
    async for result in reconciler.apply(there, made):
        last[result.step.target] = result
    return {target: one.error for target, one in last.items() if one.error is not None}


async def drift(wanted, disk):
    _, made = await wirer_of(wanted, disk).plan()
    return made.drift


@pytest.fixture
def quick(monkeypatch):
    """Pauses are short, as what they wait for is."""
    monkeypatch.setattr(patience, "FIRST_PAUSE_S", 0.05)
    monkeypatch.setattr(patience, "MAX_PAUSE_S", 0.5)


@pytest.mark.parametrize(
    ("count", "one_in"),
    [
        pytest.param(30, 6, id="30"),
        pytest.param(500, 10, id="500", marks=[pytest.mark.full, pytest.mark.timeout(1200)]),
    ],
)
async def test_faults_at_random_change_nothing_of_the_end(endpoint, disk, quick, count, one_in):
    endpoint.account = account = account_of_others()
    account.add_caller("AKIATESTBEDEXAMPLE01")
    account.update_time = timedelta(seconds=0.05)
    for number in range(count):
        account.profiles[DOMAIN, f"user{number:03d}"] = Profile()
        if not number % 5:
            account.spaces[DOMAIN, f"space{number:03d}"] = Space(f"user{number:03d}")
    before = seen(account, disk)
    for wanted in (PER_USER, SHARED, NOTHING):
        endpoint.faults.interrupt = spoils = AtRandom(one_in, seed=count)
        errors = await apply(wanted, disk)
        endpoint.faults.interrupt = None
        assert spoils.spoiled > count / 10
        assert errors == {}
        assert list(await drift(wanted, disk)) == []
    assert seen(account, disk)[:-1] == before[:-1]


@pytest.mark.parametrize("seconds", [4, pytest.param(30, marks=[pytest.mark.full, pytest.mark.timeout(300)])])
@pytest.mark.parametrize("where", ["plan", "apply"])
async def test_too_many_calls_for_a_while(account, endpoint, disk, seconds, where):
    began = time.monotonic()
    calls = 0

    def throttle(action, when):
        nonlocal calls
        concerned = when == "before" and ("Update" in action or where == "plan")
        if concerned and time.monotonic() - began < seconds:
            calls += 1
            raise ApiError("ThrottlingException", "Rate exceeded")

    endpoint.faults.interrupt = throttle
    assert await apply(PER_USER, disk) == {}
    assert time.monotonic() - began >= seconds
    assert account.profiles[DOMAIN, "alice"].file_systems == [lustre_at(FILE_SYSTEM, "/alice")]
    # Fewer and fewer while it lasts: 8 at a time, each with botocore's four tries for each of ours.
    assert calls <= 150
