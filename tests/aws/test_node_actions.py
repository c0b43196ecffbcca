"""``hpj node reboot`` and ``hpj node replace``: what is said before, and one result for each node."""

from __future__ import annotations

import pytest

from hyperpod_jlab.aws import session
from hyperpod_jlab.aws.session import forget_session
from hyperpod_jlab.core.cluster import Job, Node
from hyperpod_jlab.core.errors import UnreachableError
from hyperpod_jlab.engines.slurm.tables import SlurmTables
from testbed.aws.example import example_account
from testbed.aws.node_actions import finish_repairs
from tests.aws.conftest import REGION

REBOOT, REPLACE = "sagemaker:BatchRebootClusterNodes", "sagemaker:BatchReplaceClusterNodes"


@pytest.fixture
def example(endpoint):
    endpoint.account = example_account(REGION)
    return endpoint


@pytest.fixture
def slurm(example):
    """The cluster with Slurm."""
    return example.account.clusters[REGION][0]


@pytest.fixture
def scheduler(home, monkeypatch):
    """The cluster in the configuration, with a scheduler that knows its nodes and two jobs."""
    home.config.write_text(
        'default_cluster = "train"\n[clusters.train]\norchestrator = "slurm"\nhyperpod = "ml-cluster"\n'
    )
    on = ("ip-10-0-0-2", "ip-10-0-0-3")
    jobs = [
        Job("7", "llama", "alice", "running", nodes=on, run_id="20261122-120000-abcdef"),
        Job("8", "eval", "bob", "running", nodes=on[:1]),
        Job("9", "done", "bob", "succeeded", nodes=on),
    ]

    async def nodes(self):
        return [Node(f"ip-10-0-0-{number}", "up") for number in range(2, 6)]

    async def listed(self):
        if not jobs:
            raise UnreachableError("no route to host")
        return jobs

    monkeypatch.setattr(SlurmTables, "nodes", nodes)
    monkeypatch.setattr(SlurmTables, "jobs", listed)
    return jobs


def sent(endpoint, action=REBOOT):
    return [call.given["NodeIds"] for call in endpoint.calls if call.action == action]


def test_a_reboot_by_instance_id(example, slurm, hpj):
    node = slurm.nodes[1]
    done = hpj("node", "reboot", node.instance_id, "--cluster", "ml-cluster", "--yes").ok()
    assert f"{node.instance_id} is being rebooted" in done.out
    assert sent(example) == [[node.instance_id]]
    states = {row["instance"]: row["instance_state"] for row in _nodes(hpj)}
    assert states[node.instance_id] == "starting"
    finish_repairs(slurm)
    states = {row["instance"]: row["instance_state"] for row in _nodes(hpj)}
    assert states[node.instance_id] == "running"


def test_a_replaced_node_has_a_new_instance_id_and_the_place_of_the_old(example, slurm, hpj):
    old = slurm.nodes[2]
    words = ("node", "replace", "ip-10-0-0-3", "--cluster", "ml-cluster", "--yes", "--json")
    (result,) = hpj(*words).ok().json["results"]
    assert (result["ok"], result["instance"], result["error"]) == (True, old.instance_id, None)
    assert sent(example, REPLACE) == [[old.instance_id]]
    hosts = [row["host"] for row in _nodes(hpj)]
    assert len([host for host in hosts if host.startswith("ip-10-0-0-3.")]) == 2
    # While AWS lists both, the name alone does not say which is meant.
    again = hpj(*words)
    assert again.json["results"][0]["error"]["code"] == "ambiguous_node"
    finish_repairs(slurm)
    names = [row["instance"] for row in _nodes(hpj)]
    assert old.instance_id not in names
    assert len(set(names)) == 5


def test_what_will_become_of_the_jobs_is_said_first(example, scheduler, hpj):
    done = hpj("node", "replace", "ip-10-0-0-2", "ip-10-0-0-4", "--dry-run").ok()
    first, second = done.out.split("replace ip-10-0-0-4")
    assert "job 7 (llama, of alice, run 20261122-120000-abcdef) ends" in first
    assert "job 8 (eval, of bob) ends: Slurm requeues it" in first
    assert "job 9" not in done.out
    assert "no job runs on it" in second
    assert "new instance id" in second
    assert "data on the nodes' own disks is lost" in second
    assert sent(example, REPLACE) == []
    plan = hpj("node", "replace", "ip-10-0-0-2", "--dry-run", "--json").ok().json
    assert [job["scheduler_id"] for job in plan["nodes"][0]["jobs"]] == ["7", "8"]


def test_nothing_is_done_without_a_word(example, slurm, hpj):
    words = ("node", "reboot", slurm.nodes[1].instance_id, "--cluster", "ml-cluster")
    refused = hpj(*words, "--json")
    assert (refused.code, refused.error["code"]) == (2, "not_confirmed")
    assert refused.error["detail"]["nodes"][0]["instance"] == slurm.nodes[1].instance_id
    plain = hpj(*words, "ip-10-9-9-9")
    assert plain.code == 2
    assert "skipped: the cluster has no node 'ip-10-9-9-9'" in plain.out
    assert "the jobs on the nodes are unknown" in plain.err
    assert "all work on the nodes ends" in plain.out
    assert sent(example) == []


def test_jobs_that_cannot_be_listed_are_a_note(example, scheduler, hpj):
    scheduler.clear()
    done = hpj("node", "reboot", "ip-10-0-0-2", "--yes").ok()
    assert "the jobs on the nodes are unknown: no route to host" in done.err
    assert "no job runs" not in done.out
    assert len(sent(example)) == 1


def test_batches_of_25_with_one_result_each(example, slurm, hpj):
    workers = slurm.groups[1]
    for _ in range(60):
        slurm.add_node(workers)
    names = [node.instance_id for node in slurm.nodes if node.group == workers.name]
    busy, gone = slurm.nodes[3], slurm.nodes[4]
    busy.status, gone.status = "SystemUpdating", "ShuttingDown"
    done = hpj("node", "reboot", *names, "--cluster", "ml-cluster", "--yes", "--json")
    assert [len(batch) for batch in sent(example)] == [25, 25, 14]
    results = {result["name"]: result for result in done.json["results"]}
    assert list(results) == names
    assert sum(result["ok"] for result in results.values()) == 62
    assert results[busy.instance_id]["error"]["code"] == "node_busy"
    assert results[busy.instance_id]["error"]["detail"]["aws_code"] == "InstanceIdInUse"
    assert results[gone.instance_id]["error"]["code"] == "wrong_state"
    assert (done.code, done.error["code"]) == (2, "node_busy")


def test_after_a_refusal_the_others_are_not_sent(example, slurm, hpj):
    workers = slurm.groups[1]
    for _ in range(40):
        slurm.add_node(workers)
    names = [node.instance_id for node in slurm.nodes[1:]]
    example.faults.deny(REPLACE)
    done = hpj("node", "replace", *names, "--cluster", "ml-cluster", "--yes", "--json")
    assert (done.code, done.error["code"]) == (4, "missing_right")
    assert REPLACE in done.error["message"]
    codes = [result["error"]["code"] for result in done.json["results"]]
    assert codes == ["missing_right"] * 25 + ["not_sent"] * 19
    assert len(sent(example, REPLACE)) <= 1
    told = hpj("node", "replace", *names, "--cluster", "ml-cluster", "--yes").err.splitlines()
    assert "and 22 more: you do not have the permission" in told[-2]
    assert [line for line in told if "not submitted because all nodes before it failed" in line]


def test_a_right_that_is_missing_to_look_is_named(example, slurm, hpj):
    example.faults.deny("sagemaker:ListClusterNodes")
    done = hpj("node", "reboot", "i-0123456789abcdef0", "--cluster", "ml-cluster", "--json")
    assert (done.code, done.error["detail"]["right"]) == (4, {"action": "sagemaker:ListClusterNodes"})


def test_the_controller_is_not_replaced_but_rebooted(example, slurm, hpj):
    controller = slurm.nodes[0].instance_id
    words = (controller, "--cluster", "ml-cluster", "--yes", "--json")
    done = hpj("node", "replace", *words)
    assert (done.code, done.error["code"]) == (2, "controller_node")
    assert sent(example, REPLACE) == []
    plan = hpj("node", "reboot", *words, "--dry-run").ok().json
    assert "it is Slurm's controller" in plan["nodes"][0]["effects"][0]
    hpj("node", "reboot", *words).ok()
    # Where the description may not be read, AWS says it.
    example.faults.deny("sagemaker:DescribeCluster")
    finish_repairs(slurm)
    done = hpj("node", "replace", *words)
    assert (done.code, done.error["code"]) == (2, "wrong_state")
    assert "Slurm controller nodes cannot be replaced" in done.error["message"]


def test_an_unknown_node_stops_no_other(example, slurm, hpj):
    name = slurm.nodes[1].instance_id
    words = ("node", "reboot", "ip-10-9-9-9", name, "--cluster", "ml-cluster", "--yes", "--json")
    done = hpj(*words)
    assert [result["ok"] for result in done.json["results"]] == [False, True]
    assert (done.code, done.error["code"]) == (3, "no_such_node")


def test_two_names_of_one_node_are_one(example, slurm, hpj):
    names = (slurm.nodes[1].instance_id, "IP-10-0-0-2", "ip-10-0-0-2.us-west-2.compute.internal")
    done = hpj("node", "reboot", *names, "--cluster", "ml-cluster", "--yes", "--json").ok()
    assert len(done.json["results"]) == 1
    assert sent(example) == [[slurm.nodes[1].instance_id]]


@pytest.mark.parametrize("action", ["reboot", "replace"])
def test_a_boto3_that_is_too_old_is_named(example, slurm, hpj, monkeypatch, action):
    operation = f"Batch{action.capitalize()}ClusterNodes"
    made = session._Session._make_client

    def old(self, call, *more):
        client = made(self, call, *more)
        model = client.meta.service_model
        names = [name for name in model.operation_names if name != operation]
        model.__dict__["operation_names"] = names
        return client

    monkeypatch.setattr(session._Session, "_make_client", old)
    forget_session()
    words = ("node", action, slurm.nodes[1].instance_id, "--cluster", "ml-cluster", "--yes")
    done = hpj(*words, "--json")
    assert (done.code, done.error["code"]) == (2, "boto3_too_old")
    assert "it needs boto3 >= 1.41.1" in done.error["message"]


def test_without_an_answer_it_is_not_known(example, slurm, hpj, monkeypatch):
    monkeypatch.setattr(session, "_READ_TIMEOUT_S", 0.4)
    monkeypatch.setattr(session, "_ATTEMPTS", 1)
    forget_session()
    example.faults.slow[REBOOT] = 1.5
    words = ("node", "reboot", slurm.nodes[1].instance_id, "--cluster", "ml-cluster", "--yes")
    done = hpj(*words, "--json")
    assert (done.code, done.error["code"]) == (5, "aws_unreachable")
    assert "the result is unknown" in done.error["message"]


def test_a_cluster_that_is_not_in_service_is_a_note(example, hpj):
    old = example.account.clusters[REGION][2]
    words = ("node", "reboot", old.nodes[0].instance_id, "--cluster", old.name, "--dry-run")
    assert "the cluster is updating-software" in hpj(*words).ok().err


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("reboot", "i-1"), "no_hyperpod_cluster"),
        (("reboot", "i-1", "--cluster", "ml-cluster", "--reason", "x"), "invalid_input"),
        (("drain", "n1", "--cluster", "research-eks", "--reason", "x"), "no_configured_cluster"),
        (("drain", "n1"), "no_reason"),
        (("drain", "n1", "--reason", " \n "), "no_reason"),
        (("drain", "n1", "--reason", "Action:Replace"), "invalid_input"),
        (("drain", "n1", "--reason", "x" * 201), "invalid_input"),
        (("drain", "n1", "--reason", "x"), "unsupported"),
        (("resume", "n1"), "unsupported"),
        (("explode", "n1"), "usage"),
    ],
)
def test_what_does_not_fit(example, hpj, words, code):
    done = hpj("node", *words, "--json")
    assert (done.code, done.error["code"]) == (2, code)
    assert sent(example) == []


def _nodes(hpj):
    return hpj("nodes", "--cluster", "ml-cluster", "--json").ok().json["nodes"]
