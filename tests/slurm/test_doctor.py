"""``hpj doctor`` on a real Slurm: every step to its controller, what each fault of it becomes, and a real tiny job."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.session import Answer, run_hpj, write_config
from tests.slurm.cluster import SlurmTestbed
from tests.slurm.hyperpod_fixtures import CLUSTER, settings_for

Checks = dict[str, dict[str, Any]]
Examine = Callable[..., Any]


@pytest.fixture
def examine(slurm: SlurmTestbed, transport: str, tmp_path: Path) -> Examine:
    """Runs the doctor on the cluster's part of the way: exit code, and its checks by their keys."""

    async def run(*words: str, **more: Any) -> tuple[int, Checks]:
        config = tmp_path / "config.toml"
        write_config(settings_for(slurm, transport, **more), config)
        answer = await _hpj(config, tmp_path, *words)
        found = json.loads(answer.out)["checks"]
        return answer.code, {check["key"]: check for check in found}

    return run


async def _hpj(config: Path, folder: Path, *words: str) -> Answer:
    environment = {"XDG_CACHE_HOME": str(folder / "cache"), "XDG_STATE_HOME": str(folder / "state")}
    return await run_hpj(
        *("doctor", "--cluster", CLUSTER, "--json", *words), config=config, folder=folder, environment=environment
    )


async def test_a_cluster_where_all_is_well(examine: Examine, transport: str, slurm: SlurmTestbed) -> None:
    code, checks = await examine()
    assert code == 0
    assert "slurm" in checks["slurm-client"]["evidence"]
    assert "UP" in checks["controller"]["evidence"]
    assert "auth/munge" in checks["controller"]["evidence"]
    assert checks["identity"]["level"] == "ok"
    assert "uid" in checks["identity"]["evidence"]
    assert "accepts a job of one task" in checks["queue"]["evidence"]
    assert checks["cluster"]["level"] == "ok"
    assert ("clock" in checks, "far-side" in checks) == (transport == "ssh", transport == "ssh")
    assert {check["about"] for key, check in checks.items() if key == "controller"} == {CLUSTER}
    assert not any("sbatch --parsable" in str(call) for call in slurm.calls())


def bundles(slurm: SlurmTestbed) -> list[Path]:
    """What runs have left on the partition."""
    return list(slurm.partition.glob(".hyperpod/runs/*/*"))


@pytest.mark.both_transports
async def test_a_real_job_runs_and_nothing_of_it_stays(examine: Examine, slurm: SlurmTestbed) -> None:
    before = set(bundles(slurm))
    code, checks = await examine("--job")
    assert (code, checks["job"]["level"]) == (0, "ok")
    assert "its log arrived" in checks["job"]["evidence"]
    left = slurm.exec("ctl", "squeue", "--noheader", "--states=PD,R,CG", "--name=doctor")
    assert not any(" R " in line or " PD " in line for line in left.splitlines())
    assert set(bundles(slurm)) <= before  # those of other tests


@pytest.mark.parametrize("transport", ["here"], indirect=True)
async def test_without_its_controller_the_rest_is_unknown(examine: Examine, slurm: SlurmTestbed) -> None:
    slurm.controller_stop()
    code, checks = await examine()
    assert code == 2
    assert checks["slurm-client"]["level"] == "ok"
    assert (checks["controller"]["level"], checks["controller"]["who"]) == ("fail", "admin")
    for key in ("identity", "queue", "cluster"):
        assert checks[key]["level"] == "unknown"
        assert f"not checked: controller {CLUSTER} failed" in checks[key]["evidence"]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("transport", ["here"], indirect=True)
async def test_without_munge_that_is_what_is_named(examine: Examine, slurm: SlurmTestbed) -> None:
    slurm.munge_kill()
    code, checks = await examine()
    assert (code, checks["controller"]["level"], checks["controller"]["who"]) == (2, "fail", "admin")
    assert "munge" in checks["controller"]["fix"]
    assert checks["identity"]["level"] == "unknown"


@pytest.mark.parametrize("transport", ["here"], indirect=True)
async def test_commands_that_are_not_there_are_named(examine: Examine, tmp_path: Path) -> None:
    code, checks = await examine(commands=str(tmp_path))
    assert (code, checks["slurm-client"]["level"]) == (2, "fail")
    assert "is not on this machine" in checks["slurm-client"]["evidence"]
    assert 'transport = "ssh"' in checks["slurm-client"]["fix"]
    assert checks["controller"]["level"] == "unknown"


@pytest.mark.parametrize("transport", ["ssh"], indirect=True)
async def test_a_partition_that_is_elsewhere_on_the_login_node(examine: Examine) -> None:
    code, checks = await examine(storage="/nowhere")
    assert (code, checks["far-side"]["level"]) == (2, "fail")
    assert "folder /nowhere of the storage partition not found on the login node" in checks["far-side"]["evidence"]
    assert "storage" in checks["far-side"]["fix"]


@pytest.mark.parametrize("transport", ["here"], indirect=True)
async def test_queues_that_take_nothing(examine: Examine, slurm: SlurmTestbed) -> None:
    names = slurm.exec("ctl", "sinfo", "--noheader", "--format=%R").split()
    for name in set(names):
        slurm.exec("ctl", "scontrol", "update", f"PartitionName={name}", "State=DOWN")
    try:
        code, checks = await examine()
    finally:
        for name in set(names):
            slurm.exec("ctl", "scontrol", "update", f"PartitionName={name}", "State=UP")
    assert (code, checks["queue"]["level"], checks["queue"]["who"]) == (2, "fail", "admin")
    assert "no queue is up" in checks["queue"]["evidence"]
    assert "State=UP" in checks["queue"]["fix"]


@pytest.mark.parametrize("transport", ["here"], indirect=True)
async def test_nodes_out_of_service_are_named(examine: Examine, slurm: SlurmTestbed) -> None:
    update = ("scontrol", "update", "NodeName=node2")
    slurm.exec("ctl", *update, "State=DRAIN", "Reason=GPU 3 has fallen off the bus")
    try:
        code, checks = await examine()
    finally:
        slurm.exec("ctl", *update, "State=RESUME")
    assert (code, checks["nodes"]["level"], checks["nodes"]["who"]) == (0, "warn", "admin")
    assert "1 of 4 nodes cannot start new jobs: node2 (drained: GPU 3" in checks["nodes"]["evidence"]
    assert checks["nodes"]["fix"] == f"see their reasons with: hpj nodes {CLUSTER}"
