"""Preflight: what a real cluster has to say about a spec before anything is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from hyperpod_jlab.core.errors import InvalidInputError, UnreachableError
from tests.slurm.asked import Asked, spec_of
from tests.slurm.cluster import SlurmTestbed

pytest_plugins = ["tests.slurm.preflight_fixtures"]


def test_a_plain_run_is_refused_by_nothing(here: Asked):
    assert here.errors() == []


def test_preflight_sends_nothing(here: Asked, slurm_cluster: SlurmTestbed):
    before = slurm_cluster.exec("ctl", "squeue", "-h", "-t", "all", "-o", "%A %j")
    here.findings(name="never sent")
    assert slurm_cluster.exec("ctl", "squeue", "-h", "-t", "all", "-o", "%A %j") == before


def test_preflight_makes_two_calls_and_then_one(here: Asked, slurm_cluster: SlurmTestbed):
    async def twice() -> list[list[str]]:
        names = []
        for cpus in (1, 2, 2):
            slurm_cluster.forget_calls()
            await here.engine.preflight(spec_of(resources={"cpus": cpus}))
            names.append(sorted(call.name for call in slurm_cluster.calls()))
        return names

    assert asyncio.run(twice()) == [["sbatch", "sinfo"], ["sbatch"], []]


# ------------------------------------------------------------------------------ queue, account, QoS


def test_an_unknown_queue_has_the_nearest_name(here: Asked):
    error = here.error(queue="batsh")
    assert error.code == "unknown_queue"
    assert error.hint == "did you mean 'batch'?"
    assert error.field == "queue"


def test_one_of_several_queues_is_unknown(here: Asked):
    assert here.error(queue="dev,nope").code == "unknown_queue"


def test_several_queues_are_right_when_one_has_room(here: Asked):
    assert here.errors(queue="batch,dev", time_limit="2h") == []


def test_an_unknown_account_has_the_nearest_name(login: Callable[..., Asked]):
    found = login("alice").about("account", account="reserch")
    assert found.code == "no_association"
    assert found.hint == "did you mean 'research'?"


def test_an_account_of_somebody_else_is_refused(here: Asked):
    assert here.error(account="research").code == "no_association"


def test_an_own_account_is_fine(login: Callable[..., Asked]):
    found = login("alice").findings(account="research", qos="normal")
    assert [entry for entry in found if entry.field in {"account", "qos"}] == []


def test_an_unknown_qos_has_the_nearest_name(here: Asked):
    error = here.error(qos="normale")
    assert error.code == "invalid_qos"
    assert error.hint == "did you mean 'normal'?"


# ------------------------------------------------------------------------------ sizes


@pytest.mark.parametrize(
    ("resources", "code", "field"),
    [
        ({"nodes": 5}, "too_many_nodes", "resources.nodes"),
        ({"gpus_per_node": 9}, "too_many_gpus", "resources.gpus_per_node"),
        ({"cpus": 17}, "too_many_cpus", "resources.cpus"),
        ({"processes_per_node": 17}, "too_many_cpus", "resources.processes_per_node"),
        ({"memory": "1T"}, "too_much_memory", "resources.memory"),
        ({"accelerators": {"type": "h200"}}, "no_such_type", "resources.accelerators"),
        ({"accelerators": {"kind": "neuron"}}, "no_accelerators", "resources.accelerators"),
        ({"accelerators": {"type": "h100", "count": 9}}, "too_many_gpus", "resources.accelerators"),
    ],
)
def test_more_than_the_queue_has(here: Asked, resources: dict[str, Any], code: str, field: str):
    error = here.error(resources=resources, queue="dev")
    assert error.code == code
    assert error.field == field


def test_a_type_that_is_not_there_has_the_nearest(here: Asked):
    error = here.error(resources={"accelerators": {"type": "h10"}})
    assert error.hint == "did you mean 'h100'?"


def test_nodes_are_those_of_the_queue(here: Asked):
    assert "queue batch has 2 nodes, 3 requested" in here.error(queue="batch", resources={"nodes": 3}).message


def test_what_is_refused_here_the_scheduler_refuses_too(slurm_cluster: SlurmTestbed):
    """The findings are no opinion of ours: sbatch says no as well."""
    for options in (["-N5"], ["--gpus-per-node=9"], ["-c17"], ["--mem=1T"], ["--gres=gpu:h200:1"]):
        done = slurm_cluster.run("ctl", "sbatch", "--test-only", *options, "--wrap=true")
        assert done.returncode != 0, options


# ------------------------------------------------------------------------------ time


def test_a_time_limit_over_the_queues(here: Asked):
    error = here.error(queue="dev", time_limit="2h")
    assert error.code == "time_limit"
    assert error.hint == "use --time-limit 1h00m or less, or another queue"


def test_no_time_limit_anywhere_is_a_warning(here: Asked):
    assert "no_time_limit" in here.codes("warning", queue="batch")


@pytest.mark.parametrize("spec", [{"queue": "dev"}, {"queue": "batch", "time_limit": "1h"}])
def test_a_time_limit_from_queue_or_user_is_no_warning(here: Asked, spec: dict[str, Any]):
    assert "no_time_limit" not in here.codes("warning", **spec)


@pytest.mark.parametrize(("queue", "limit"), [("dev", 600), (None, 600), ("batch", None)])
def test_the_time_limit_is_that_of_the_queue(here: Asked, queue: str | None, limit: int | None):
    assert here.time_limit(queue=queue) == limit


# ------------------------------------------------------------------------------ the rest of a spec


def test_an_image_without_pyxis(here: Asked):
    error = here.error(environment={"image": "ubuntu"})
    assert error.code == "unsupported"
    assert error.field == "environment.image"


def test_a_priority_that_is_a_class(here: Asked):
    assert here.error(priority="high-priority").code == "bad_priority"


@pytest.mark.parametrize(
    "spec",
    [
        {"kubernetes": {"namespace": "a"}},
        {"kubernetes": {"patch": {"a": 1}}},
        {"resources": {"instance_group": "g"}},
        {"resources": {"efa": 1}},
    ],
)
def test_what_the_cluster_has_no_use_for(here: Asked, spec: dict[str, Any]):
    assert "ignored" in here.codes("info", **spec)


def test_an_instance_type_is_not_heeded(here: Asked):
    assert "ignored" in here.codes("warning", resources={"instance_type": "ml.p5.48xlarge"})


@pytest.mark.parametrize(
    ("flag", "value", "code"),
    [
        ("constraint", "none", "invalid_feature"),
        ("reservation", "none", "invalid_reservation"),
        ("licenses", "none:1", "invalid_license"),
        ("nodelist", "node9", "unknown_node"),
    ],
)
def test_a_flag_that_the_controller_refuses(here: Asked, flag: str, value: str, code: str):
    error = here.error(slurm={"flags": {flag: value}})
    assert error.code == code
    assert error.field == f"slurm.flags.{flag}"


def test_a_queue_that_takes_no_jobs(here: Asked, slurm: SlurmTestbed):
    slurm.exec("ctl", "scontrol", "update", "PartitionName=batch", "State=DRAIN")
    try:
        assert here.error(queue="batch").code == "queue_closed"
    finally:
        slurm.exec("ctl", "scontrol", "update", "PartitionName=batch", "State=UP")


def test_a_flag_whose_value_sbatch_cannot_read(here: Asked):
    assert here.error(slurm={"flags": {"begin": "soon"}}).field == "slurm.flags.begin"


def test_a_flag_that_is_ours(here: Asked):
    with pytest.raises(InvalidInputError, match="--wrap cannot be set here"):
        here.findings(slurm={"flags": {"wrap": "true"}})


def test_the_queue_with_all_nodes(here: Asked):
    assert "default_queue_has_all" in here.codes("warning")


def test_a_named_queue_is_no_trap(here: Asked):
    assert "default_queue_has_all" not in here.codes("warning", queue="dev")


# ------------------------------------------------------------------------------ choices, and nobody there


def test_choices_are_those_of_the_user(login: Callable[..., Asked]):
    assert login("alice").choices() == {"queue": ["dev", "batch"], "account": ["research"], "qos": ["normal"]}


def test_a_controller_that_is_down_is_said_at_once(here: Asked, slurm: SlurmTestbed):
    slurm.controller_kill()
    with pytest.raises(UnreachableError):
        here.findings()
    assert here.time_limit() is None
