"""``hpj admin budget`` with the limit of an account: the budget at the AWS test endpoint, the limit in a real Slurm's accounting."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from hyperpod_jlab.admin.budget.service import BudgetRequest, apply_budget, plan_budget
from hyperpod_jlab.run.services import Hyperpod
from testbed.aws.endpoint import Endpoint
from testbed.aws.example import example_account
from tests.aws.conftest import REGION, endpoint, no_aws
from tests.slurm.cluster import SlurmTestbed
from tests.slurm.hyperpod_fixtures import make_hyperpod

__all__ = ["endpoint", "no_aws"]

REQUEST = BudgetRequest(
    "slurm",
    tag="team=vision",
    amount=5000.0,
    emails=("team@example.com",),
    at=(80.0,),
    account="root",
    gpu_hours=1000.0,
)


@pytest.fixture
async def services(slurm: SlurmTestbed, endpoint: Endpoint) -> AsyncIterator[Hyperpod]:
    """A cluster of Slurm that AWS knows as ml-cluster."""
    endpoint.account = example_account(REGION)
    hyperpod = make_hyperpod(slurm, hyperpod="ml-cluster")
    yield hyperpod
    await hyperpod.close()
    slurm.exec(
        *("ctl", "sacctmgr", "-i", "modify", "account", "where", "name=root"),
        *("set", "GrpTRESMins=gres/gpu=-1"),
    )


async def test_the_limit_is_set_only_if_asked_for(services: Hyperpod, endpoint: Endpoint) -> None:
    plan, _ = await plan_budget(services, REQUEST)
    assert plan.account_limit is not None
    assert plan.account_limit.current_gpu_hours is None
    done: list[str] = []
    await apply_budget(services, REQUEST, plan, lambda step: done.append(step.target))
    assert done == ["budget hyperpod-jlab-ml-cluster"]
    plan, _ = await plan_budget(services, REQUEST)
    assert plan.account_limit is not None
    assert plan.account_limit.current_gpu_hours is None
    assert plan.changes == []
    await apply_budget(services, REQUEST, plan, lambda step: done.append(step.target), slurm=True)
    plan, _ = await plan_budget(services, REQUEST)
    assert plan.account_limit is not None
    assert plan.account_limit.is_set
    assert len(done) == 1
