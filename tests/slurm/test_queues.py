"""Queues as the cluster says them: from recorded answers of two versions, and from a real cluster."""

from collections.abc import Callable

import pytest

from hyperpod_jlab.core.cluster import Queue
from hyperpod_jlab.engines.slurm.client import parse_queue
from hyperpod_jlab.engines.slurm.tables import node_rows, parse_nodes, parse_partitions, queue_rows
from hyperpod_jlab.run.services import Hyperpod
from tests.slurm.cluster import SlurmTestbed
from tests.slurm.hyperpod_fixtures import make_hyperpod
from tests.slurm.jobs_fixtures import sbatch
from tests.slurm.recorded import MARK, VERSIONS, recorded

pytest_plugins = ["tests.slurm.services_fixtures"]


def rows_of(version: str, groups: frozenset[str] | None = None) -> dict[str, Queue]:
    """The queues that a version answered, as one in these groups sees them."""
    jobs = parse_queue(recorded(version, "jobs"), MARK)
    nodes = node_rows(parse_nodes(recorded(version, "nodes"), MARK).values(), jobs)
    found = queue_rows(parse_partitions(recorded(version, "queues")), nodes, jobs, groups)
    return {queue.name: queue for queue in found}


@pytest.fixture(params=VERSIONS)
def rows(request: pytest.FixtureRequest) -> dict[str, Queue]:
    """The queues that a version answered."""
    return rows_of(request.param)


def test_limits_and_the_default(rows: dict[str, Queue]) -> None:
    assert list(rows) == ["dev", "batch", "closed", "cloud"]
    assert rows["dev"].default
    assert not rows["batch"].default
    assert rows["dev"].time_limit == 3600
    assert rows["dev"].default_time == 600
    assert rows["batch"].time_limit is None
    assert rows["batch"].max_nodes is None
    assert rows["dev"].priority == 1


def test_what_is_free_is_that_of_the_nodes_which_take_jobs(rows: dict[str, Queue]) -> None:
    assert rows["dev"].nodes == 4
    assert rows["dev"].nodes_free == 0
    assert rows["dev"].accelerators == 60
    assert rows["dev"].accelerators_free == 9
    assert rows["dev"].cpus_free == 12
    assert rows["batch"].accelerators_free == 0


def test_gpus_by_type(rows: dict[str, Queue]) -> None:
    found = {one.type: one for one in rows["dev"].resources if one.accelerator}
    assert (found["h100"].total, found["h100"].free) == (32, 4)
    assert (found["1g.10gb"].total, found["1g.10gb"].free) == (28, 5)
    assert found["h100"].used == 8


def test_a_job_that_takes_any_of_two_queues_waits_in_both(rows: dict[str, Queue]) -> None:
    assert rows["batch"].waiting == 1
    assert rows["dev"].running == 6
    assert rows["dev"].waiting == 5


def test_who_may_use_it(rows: dict[str, Queue]) -> None:
    assert rows["closed"].groups == ("nogroup",)
    assert rows["closed"].accounts == ("research", "physics")
    assert rows["closed"].usable is None
    assert rows["dev"].groups == ()
    assert rows["dev"].usable is True


@pytest.mark.parametrize("version", VERSIONS)
def test_one_of_no_group_that_may_is_told_so(version: str) -> None:
    assert rows_of(version, frozenset({"users"}))["closed"].usable is False
    assert rows_of(version, frozenset({"nogroup"}))["closed"].usable is None


STATES = {"UP": "up", "DOWN": "down", "DRAIN": "draining", "INACTIVE": "inactive"}


@pytest.mark.parametrize("word", STATES)
def test_states_in_words(word: str) -> None:
    line = f"PartitionName=a AllowGroups=ALL RootOnly=YES MaxNodes=4 State={word} TotalNodes=9"
    (partition,) = parse_partitions(line)
    assert partition.state == STATES[word]
    assert partition.root_only
    assert partition.max_nodes == 4
    assert partition.nodes == 9


def test_values_with_an_equals_sign_are_one_value() -> None:
    line = "PartitionName=a JobDefaults=DefCpuPerGPU=2,DefMemPerGPU=9 DenyAccounts=x,y State=UP"
    (partition,) = parse_partitions(line)
    assert partition.denied == ("x", "y")
    assert partition.state == "up"


# ---------------------------------------------------------------------------- a real cluster


async def _queue(services: Hyperpod, name: str) -> Queue:
    found = {queue.name: queue for queue in await services.queues()}
    return found[name]


async def test_free_gpus_of_a_real_queue(slurm: SlurmTestbed, services: Hyperpod) -> None:
    sbatch(slurm, "--partition=dev", "--nodes=2", "--gpus-per-node=3", wait="RUNNING")
    sbatch(slurm, "--partition=dev", "--hold")
    queue = await _queue(services, "dev")
    assert queue.default
    assert queue.time_limit == 3600
    assert queue.accelerators == 32
    assert queue.accelerators_free == 26
    assert queue.nodes_free == 2
    assert queue.running == 1
    assert queue.waiting == 1


async def test_a_queue_that_is_down_says_so(slurm: SlurmTestbed, services: Hyperpod) -> None:
    slurm.exec("ctl", "scontrol", "update", "PartitionName=batch", "State=DOWN")
    try:
        assert (await _queue(services, "batch")).state == "down"
    finally:
        slurm.exec("ctl", "scontrol", "update", "PartitionName=batch", "State=UP")


@pytest.mark.usefixtures("fresh_cache")
async def test_typed_and_fractional_gpus(slurm_start: Callable[..., SlurmTestbed]) -> None:
    cluster = slurm_start("--gres-extra", "shard:16 gpu:1g.10gb:7 fpga:2")
    sbatch(cluster, "--gres=gpu:1g.10gb:2,fpga:1", "--nodelist=node1", wait="RUNNING")
    job = sbatch(cluster, "--gres=shard:1g.10gb:1", "--nodelist=node1", wait="RUNNING")
    services = make_hyperpod(cluster)
    try:
        nodes = {node.name: node for node in await services.nodes()}
        small = next(one for one in nodes["node1"].resources if one.type == "1g.10gb")
        assert len(small.used_at) == 2
        assert len(small.shared_at) == 1
        assert small.free == 4
        queue = await _queue(services, "dev")
        assert {one.full_name for one in queue.resources} >= {"gpu:h100", "gpu:1g.10gb", "fpga"}
        jobs = {entry.scheduler_id: entry for entry in await services.jobs()}
        assert [str(one.full_name) for one in jobs[job].resources] == ["shard:1g.10gb"]
        assert jobs[job].accelerators == 0
    finally:
        await services.close()
