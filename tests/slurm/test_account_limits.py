"""Limits of accounts in the accounting of a real Slurm."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hyperpod_jlab.core.cluster import AccountLimit
from hyperpod_jlab.core.errors import DeniedError, InvalidInputError, NotFoundError
from hyperpod_jlab.engines.protocol import AccountLimits
from hyperpod_jlab.run.services import Hyperpod
from tests.slurm.cluster import SlurmTestbed
from tests.slurm.hyperpod_fixtures import make_hyperpod

pytest_plugins = ["tests.slurm.services_fixtures"]


@pytest.fixture
def account(slurm: SlurmTestbed) -> Iterator[str]:
    """An account for this test."""
    slurm.exec("ctl", "sacctmgr", "-i", "add", "account", "limited")
    yield "limited"
    slurm.exec("ctl", "sacctmgr", "-i", "delete", "account", "limited")


def _limits(services: Hyperpod) -> AccountLimits:
    found = services.engines.get("slurm").account_limits
    assert found is not None
    return found


async def _planned(services: Hyperpod, account: str, hours: float) -> AccountLimit:
    return await _limits(services).account_limit(account, hours)


async def test_a_limit_is_shown_set_changed_and_set_again(
    services: Hyperpod, slurm: SlurmTestbed, account: str
) -> None:
    limit = await _planned(services, account, 1000.5)
    assert limit.current_gpu_hours is None
    (command,) = limit.commands
    assert command.startswith("sacctmgr --immediate modify account where name=limited cluster=")
    assert command.endswith("set GrpTRESMins=gres/gpu=60030")
    assert any("PriorityUsageResetPeriod=NONE" in note for note in limit.notes)
    await _limits(services).set_limit(limit)
    told = slurm.exec(
        "ctl", "sacctmgr", "-nP", "show", "assoc", "account=limited", "format=GrpTRESMins"
    )
    assert told.strip() == "gres/gpu=60030"
    again = await _planned(services, account, 1000.5)
    assert again.is_set
    await _limits(services).set_limit(again)
    await _limits(services).set_limit(await _planned(services, account, 20))
    assert (await _planned(services, account, 20)).current_gpu_hours == 20


async def test_a_user_without_the_right_changes_nothing(
    slurm: SlurmTestbed, services: Hyperpod, account: str
) -> None:
    alice = make_hyperpod(slurm, "ssh", login_nodes=["alice@login1"])
    try:
        limit = await _planned(alice, account, 5)
        with pytest.raises(DeniedError) as caught:
            await _limits(alice).set_limit(limit)
    finally:
        await alice.close()
    assert caught.value.code == "missing_right"
    assert "set GrpTRESMins=gres/gpu=300" in str(caught.value.hint)
    assert (await _planned(services, account, 5)).current_gpu_hours is None


async def test_an_account_that_is_none(services: Hyperpod) -> None:
    with pytest.raises(NotFoundError, match="no account nobody") as caught:
        await _planned(services, "nobody", 1)
    assert "sacctmgr add account nobody" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("account", "hours"),
    [("a b", 1.0), ("", 1.0), ("x;id", 1.0), ("--help", 1.0), ("x", -1.0), ("x", float("nan"))],
)
async def test_bad_values_reach_no_command(
    services: Hyperpod, slurm: SlurmTestbed, account: str, hours: float
) -> None:
    slurm.forget_calls()
    with pytest.raises(InvalidInputError):
        await _planned(services, account, hours)
    assert slurm.calls() == []
