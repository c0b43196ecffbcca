"""A real Slurm attached to the AWS endpoint: a slurmd that is killed is an instance that failed and is replaced."""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
import time
from datetime import timedelta
from pathlib import Path

import pytest

from hyperpod_jlab.clusters.configuration import load_settings
from hyperpod_jlab.clusters.connect import connect
from hyperpod_jlab.run import repairs
from hyperpod_jlab.run.services import Hyperpod
from testbed.aws.attached import BedError
from testbed.aws.pricing import add_price_list
from testbed.aws.slurm_bed import PREFIX, SCRIPT, AttachedSlurm, nodes_of, slurm_bed
from tests.aws.conftest import REGION
from tests.slurm.cluster import ONE, install

pytestmark = pytest.mark.slurm

FIRST = f"{PREFIX}1"


@pytest.fixture(scope="module")
def bed():
    install("22.05")
    with tempfile.TemporaryDirectory(prefix="hpj-bed-") as folder:
        base = Path(folder)
        base.chmod(0o755)  # munge's socket is everybody's
        (base / "fsx").mkdir()
        options = ("--nodes", "2", "--mount", f"{base / 'fsx'}:/fsx")
        with ONE.only(slurm_bed(base / "slurm", *options)) as made:
            yield made


@pytest.fixture
def attached(endpoint, bed, home):
    home.config.write_text(
        f'default_cluster = "train"\n[storage]\npath = "{bed.parent / "fsx"}"\n'
        '[clusters.train]\norchestrator = "slurm"\nhyperpod = "ml-cluster"\n'
        'storage = "/fsx"\npython = "/usr/bin/python3"\n'
        f'slurm_conf = "{bed}/etc/slurm.conf"\n'
    )
    with AttachedSlurm(endpoint, bed, REGION) as made:
        yield made
    assert made.problems == []


@pytest.fixture
def rows(hpj):
    """What ``hpj nodes`` shows of the compute nodes: state at AWS, node, what is said of the instance; by instance id."""

    def found():
        told = hpj("nodes", "--cluster", "ml-cluster", "--json").ok().json["nodes"]
        return {
            row["instance"]: (
                row["instance_state"],
                row["name"] if row["name"] != row["instance"] else None,
                row["instance_reason"],
            )
            for row in told
            if row["instance_group"] != "controller-machine"
        }

    return found


def until(done, seconds=30):
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.1)


def sinfo(bed, node):
    command = [SCRIPT, "exec", bed, "ctl", "sinfo", "-h", "-N", "-n", node, "-o", "%T"]
    return set(subprocess.run(command, capture_output=True, text=True).stdout.split())


def slurmd_of(bed, node):
    try:
        return int((bed / "run" / f"slurmd-{node}.pid").read_text())
    except (FileNotFoundError, ValueError):  # it does not run, or is about to
        return None


def test_a_killed_slurmd_is_a_failed_instance_and_comes_back_as_another(attached, bed, rows):
    first = rows()
    assert sorted(first.values()) == [("running", f"{PREFIX}1", None), ("running", f"{PREFIX}2", None)]
    (old,) = [name for name, row in first.items() if row[1] == FIRST]
    pid = slurmd_of(bed, FIRST)
    subprocess.run([SCRIPT, "node-kill", bed, FIRST], check=True)
    until(lambda: rows()[old][0] == "failed")

    attached.endpoint.advance(timedelta(seconds=15))
    both = rows()
    (new,) = set(both) - set(first)
    assert both[old][0] == "ending"
    assert f"replaced by {new}" in both[old][2]
    assert both[new][0] == "starting"

    attached.endpoint.advance(timedelta(minutes=25))
    # Slurm calls a node idle for some seconds after its end, so it is the process that tells.
    until(lambda: slurmd_of(bed, FIRST) not in {None, pid})
    until(lambda: sinfo(bed, FIRST) == {"idle"})
    assert rows() == {new: ("running", FIRST, None), **{name: row for name, row in first.items() if name != old}}
    time.sleep(1)  # a node that was just started is not taken for a failed one
    assert rows()[new][0] == "running"


def test_a_replacement_that_somebody_asks_for_ends_the_slurmd(attached, bed, rows):
    node = next(one for one in attached.cluster.nodes if one.address == "10.0.0.2")
    pid = slurmd_of(bed, f"{PREFIX}2")
    with attached.endpoint.changing():
        attached.lifecycle.replace(node)
    until(lambda: slurmd_of(bed, f"{PREFIX}2") is None)
    attached.endpoint.advance(timedelta(minutes=25))
    until(lambda: slurmd_of(bed, f"{PREFIX}2") not in {None, pid})
    until(lambda: sinfo(bed, f"{PREFIX}2") == {"idle"})
    assert len(rows()) == 2


@pytest.fixture
def sleeper(attached, hpj, home):
    """A run that has begun, and its node."""
    del attached, hpj  # AWS, and this process in the user's home
    words = ("-c", "sleep 600", "--no-project-files", "--time-limit", "20m")
    run_id = home.process("submit", *words).ok().out.strip()

    def nodes():
        run = home.process("show", run_id, "--json").ok().json
        return run["attempts"][-1]["nodes"] if run["attempts"] and run["state"] == "running" else []

    until(nodes)
    return run_id, nodes()[0]


async def test_a_run_recovers_before_slurm_knows(attached, bed, sleeper, home, monkeypatch):
    """AWS was asked to reboot the node: Slurm misses it half a minute later, and is told of no repair at all."""
    run_id, node = sleeper
    home.process("node", "reboot", node, "--cluster", "ml-cluster", "--yes").ok()
    monkeypatch.setattr(repairs, "_MIN_WATCH_S", 0.0)  # somebody has been looking for a while
    hyperpod = Hyperpod(load_settings())
    try:
        run = await hyperpod.runs.get(run_id)
        end = time.monotonic() + 10
        while run.status.reason_code != "recovering":
            assert time.monotonic() < end, run.status
            await asyncio.sleep(0.3)
            run = await hyperpod.runs.get(run_id)
        assert (run.state, run.status.reason) == (
            "running",
            f"HyperPod reboots {node}, on which it runs; it is resumed there or requeued",
        )
        asked = [one.action for one in attached.endpoint.calls].count("sagemaker:ListClusterNodes")
        for _ in range(10):
            await hyperpod.runs.get(run_id)
        again = [one.action for one in attached.endpoint.calls].count("sagemaker:ListClusterNodes")
        assert again == asked  # one look serves all who look for the next minute
        await hyperpod.runs.act(run_id, "cancel")
        attached.endpoint.advance(timedelta(minutes=3))
        assert (await asyncio.wait_for(hyperpod.runs.wait(run_id), 60)).state == "cancelled"
    finally:
        await hyperpod.close()
    until(lambda: slurmd_of(bed, node) is not None)


async def test_aws_that_does_not_tell_keeps_nobody_waiting(attached, sleeper, monkeypatch):
    """The run is told as Slurm has it, at once, and AWS is not asked again and again."""
    run_id, _ = sleeper
    monkeypatch.setattr(repairs, "_MIN_WATCH_S", 0.0)
    attached.endpoint.faults.deny("sagemaker:ListClusterNodes")
    attached.endpoint.calls.clear()  # to show the sleeping run asked for the nodes, too
    hyperpod = Hyperpod(load_settings())
    try:
        for _ in range(5):
            run = await hyperpod.runs.get(run_id)
            assert (run.state, run.status.reason_code) == ("running", None)
            await asyncio.sleep(0.2)
        calls = [one.action for one in attached.endpoint.calls]
        assert calls.count("sagemaker:ListClusterNodes") == 1
        attached.endpoint.faults.slow["sagemaker:ListClusterNodes"] = 20.0
        monkeypatch.setattr(repairs, "_ERROR_TTL_S", 0.0)
        async with asyncio.timeout(10):
            await hyperpod.runs.get(run_id)
        await hyperpod.runs.act(run_id, "cancel")
    finally:
        await hyperpod.close()


def test_a_folder_that_is_no_such_testbed(tmp_path):
    with pytest.raises(BedError, match="--prefix"):
        nodes_of(tmp_path)


def test_one_can_submit_from_a_machine_of_its_slurm(endpoint, bed, home, hpj, monkeypatch):
    home.config.write_text("")
    monkeypatch.setenv("SLURM_CONF", f"{bed}/etc/slurm.conf")
    with AttachedSlurm(endpoint, bed, REGION) as made:
        found = hpj("show", made.cluster.name, "--json").ok().json
        assert found["configure"] == f"hpj config add {made.cluster.name}"
        reach = found["hyperpod"]["reach"]
        assert reach["word"] == "ready"
        assert "knows 2 of its 2 instances" in reach["sentence"]
        services = Hyperpod()
        tested = asyncio.run(connect(services, made.cluster.name, "train", test=True))
        assert (tested.written, tested.problem) == (True, None)
        nodes = hpj("nodes", "--cluster", "train", "--json").ok().json["nodes"]
        assert {node["name"] for node in nodes} >= {FIRST}
        told = hpj("clusters", "--json").ok().json["clusters"]
        found = [one for one in told if one["hyperpod"]]
        assert [(one["name"], one["hyperpod"]["reach"]["word"]) for one in found] == [("train", "configured")]
        # A cluster of other machines is not this one, though Slurm answers.
        other = endpoint.account.add_cluster("other", REGION, orchestrator={"Slurm": {}})
        group = other.add_group("workers", "ml.g5.xlarge", 0)
        other.add_node(group, address="10.7.7.7")
        told = hpj("show", "other", "--json").ok().json
        assert told["hyperpod"]["reach"]["word"] == "no-login-node"


def test_what_a_run_costs_by_the_price_list_and_what_is_idle(attached, hpj):
    account = attached.endpoint.account
    add_price_list(account, REGION)
    hpj("submit", "-c", "sleep 1", "--run-id", "priced", "--no-project-files", "--wait").ok()
    cost = hpj("cost", "priced", "--json").ok().json
    (price,) = cost["prices"]
    assert price["source"] == "price_list"
    assert 0 < cost["amount"] <= cost["node_hours"] * price["price"] * 1.001
    usage = hpj("usage", "--cluster", "train", "--json").ok().json
    idle = next(one for one in usage["idle"] if one["instance_type"] == price["instance_type"])
    assert (idle["cluster"], idle["price"]) == ("train", price["price"])
    assert 0 < idle["used_hours"] < idle["paid_hours"]
    assert [one["cluster"] for one in usage["bills"]] == ["train"]
    dry = hpj("submit", "-c", "true", "--time-limit", "1h", "--dry-run", "--json").ok().json
    assert 0 < dry["cost"]["at_most"] <= price["price"]
    assert dry["cost"]["shares"] == []
