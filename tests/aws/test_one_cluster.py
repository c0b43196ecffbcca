"""A cluster is one, whatever it is called and whoever knows of it: the configuration, its scheduler, AWS."""

from __future__ import annotations

import pytest

from hyperpod_jlab.core.cluster import Node, Rows
from hyperpod_jlab.core.errors import UnreachableError
from hyperpod_jlab.engines.kubernetes.tables.view import KubernetesTables
from hyperpod_jlab.engines.slurm.tables import SlurmTables
from testbed.aws.example import example_account
from tests.aws.conftest import REGION

LIST, DESCRIBE = "sagemaker:ListClusters", "sagemaker:DescribeCluster"
NODES, REBOOT = "sagemaker:ListClusterNodes", "sagemaker:BatchRebootClusterNodes"
ELSEWHERE = "eu-central-1"


@pytest.fixture
def example(endpoint):
    endpoint.account = example_account(REGION)
    return endpoint


@pytest.fixture
def slurm(example, home, monkeypatch):
    """The example's Slurm cluster in the configuration as `train`; its scheduler has the workers, or raises what is put here."""
    home.config.write_text(
        'default_cluster = "train"\n[clusters.train]\norchestrator = "slurm"\nhyperpod = "ml-cluster"\n'
    )
    broken: list[Exception] = []

    async def nodes(self):
        if broken:
            raise broken[0]
        return [Node(f"ip-10-0-0-{number}", "up") for number in range(2, 6)]

    monkeypatch.setattr(SlurmTables, "nodes", nodes)
    return broken


@pytest.fixture
def eks(example, home, monkeypatch):
    """The example's cluster on EKS in the configuration by its EKS cluster alone; its scheduler has the first of its nodes."""
    home.config.write_text('[clusters.mine]\norchestrator = "kubernetes"\neks = "research"\n')
    cluster = example.account.clusters[REGION][1]

    async def nodes(self):
        return [Node(f"hyperpod-{cluster.nodes[0].instance_id}", "up")]

    monkeypatch.setattr(KubernetesTables, "nodes", nodes)
    return cluster


def rows(done):
    return {row["name"]: row for row in done.ok().json["clusters"]}


def asked(endpoint):
    return [call.action for call in endpoint.calls]


class TestList:
    """``hpj clusters``."""

    def test_a_configured_one_has_what_aws_knows_and_another_how_to_add_it(self, slurm, hpj):
        found = rows(hpj("clusters", "--json"))
        assert list(found) == ["local", "train", "research-eks", "older-cluster", "first-try"]
        train, other = found["train"], found["research-eks"]
        assert (train["configured"], train["configure"], train["default"]) == (True, None, True)
        assert train["hyperpod"]["name"] == "ml-cluster"
        assert train["hyperpod"]["configured_as"] == ["train"]
        assert (other["configured"], other["configure"]) == (False, "hpj config add research-eks")
        assert (other["state"], other["hyperpod"]["configured_as"]) == ("in-service", [])
        assert found["local"]["hyperpod"] is None
        lines = {line.split()[0]: line for line in hpj("clusters").ok().out.splitlines()}
        assert " ml-cluster " in lines["train"]
        assert " 5/5 " in lines["train"]

    def test_what_aws_refuses_is_a_note_and_the_configured_ones_are_there(self, example, slurm, hpj):
        example.faults.deny(LIST)
        done = hpj("clusters", "--json").ok()
        assert list(rows(done)) == ["local", "train"]
        (note,) = done.json["notes"]
        assert note.startswith(f"AWS does not list all HyperPod clusters: you do not have the permission {LIST}")
        assert f"note: {note}" in hpj("clusters").ok().err

    def test_without_aws_nothing_is_said_of_it(self, no_aws, home, hpj):
        done = hpj("clusters", "--json").ok()
        assert list(rows(done)) == ["local"]
        assert "notes" not in done.json
        assert hpj("clusters").ok().err == ""
        # Who names a region wants to know.
        assert "note: AWS does not list" in hpj("clusters", "--region", REGION).ok().err

    def test_one_name_in_the_configuration_and_another_cluster_of_that_name_in_aws(self, example, home, hpj):
        home.config.write_text('[clusters.ml-cluster]\norchestrator = "local"\n')
        arn = example.account.clusters[REGION][0].arn
        found = rows(hpj("clusters", "--json"))
        assert len(found) == 6
        assert found["ml-cluster"]["hyperpod"] is None
        assert found[arn]["hyperpod"]["name"] == "ml-cluster"
        assert found[arn]["configure"] == "hpj config add ml-cluster-2 --hyperpod ml-cluster"
        assert hpj("show", "ml-cluster", "--json").ok().json["orchestrator"] == "local"
        assert hpj("show", arn, "--json").ok().json["hyperpod"]["arn"] == arn
        assert len(hpj("nodes", "ml-cluster", "--json").ok().json["nodes"]) == 1
        assert len(hpj("nodes", arn, "--json").ok().json["nodes"]) == 5

    def test_the_command_that_adds_one_adds_it(self, example, home, hpj):
        home.config.write_text('[clusters.ml-cluster]\norchestrator = "local"\n')
        arn = example.account.clusters[REGION][0].arn
        words = rows(hpj("clusters", "--json"))[arn]["configure"].split()
        hpj(*words[1:], "--login-node", "me@host").ok()
        found = rows(hpj("clusters", "--json"))
        assert found["ml-cluster-2"]["configured"]
        assert found["ml-cluster-2"]["hyperpod"]["arn"] == arn
        assert arn not in found


class TestRegion:
    """``--region``: for clusters that are not configured."""

    @pytest.fixture(autouse=True)
    def twin(self, example):
        made = example.account.add_cluster("ml-cluster", ELSEWHERE, orchestrator={"Slurm": {}})
        made.add_group("far-away", "ml.g5.xlarge", 2, slurm_node_type="Compute")
        return made

    def test_the_list(self, example, slurm, twin, hpj):
        found = rows(hpj("clusters", "--region", ELSEWHERE, "--json"))
        assert list(found) == ["local", "train", "ml-cluster"]
        assert found["train"]["hyperpod"] is None
        far = found["ml-cluster"]
        assert (far["configured"], far["hyperpod"]["arn"]) == (False, twin.arn)
        assert far["configure"] == f"hpj config add ml-cluster --region {ELSEWHERE}"
        assert {call.region for call in example.calls} == {ELSEWHERE}

    def test_the_command_that_adds_one_adds_that_of_the_region(self, slurm, twin, hpj):
        far = rows(hpj("clusters", "--region", ELSEWHERE, "--json"))["ml-cluster"]
        hpj(*far["configure"].split()[1:], "--login-node", "me@host").ok()
        found = rows(hpj("clusters", "--region", ELSEWHERE, "--json"))
        assert found["ml-cluster"]["configured"]
        assert found["ml-cluster"]["hyperpod"]["arn"] == twin.arn
        here = rows(hpj("clusters", "--json"))
        assert here["train"]["hyperpod"]["region"] == REGION
        assert here["ml-cluster"]["hyperpod"] is None

    def test_nodes_of_a_cluster_of_the_same_name(self, example, slurm, hpj):
        done = hpj("nodes", "ml-cluster", "--region", ELSEWHERE, "--json").ok().json
        assert {row["instance_group"] for row in done["nodes"]} == {"far-away"}
        assert done["notes"] == ["no scheduler was asked, because ml-cluster is not configured"]
        assert {call.region for call in example.calls} == {ELSEWHERE}
        here = hpj("nodes", "ml-cluster", "--json").ok().json
        assert "far-away" not in {row["instance_group"] for row in here["nodes"]}
        assert "notes" not in here

    def test_an_arn_names_its_own(self, example, slurm, twin, hpj):
        found = hpj("show", twin.arn, "--json").ok().json
        assert (found["name"], found["configured"]) == ("ml-cluster", False)
        assert found["hyperpod"]["region"] == ELSEWHERE
        assert {call.region for call in example.calls} == {ELSEWHERE}


class TestNames:
    """What a cluster is found by."""

    def test_by_its_name_here_by_that_of_aws_and_by_its_arn(self, example, slurm, hpj):
        arn = example.account.clusters[REGION][0].arn
        nodes = hpj("nodes", "--json").ok().json["nodes"]
        for name in ("train", "ml-cluster", arn):
            found = hpj("show", name, "--json").ok().json
            assert (found["name"], found["configured"], found["hyperpod"]["arn"]) == (*("train", True), arn)
            assert hpj("nodes", name, "--json").ok().json["nodes"] == nodes
        assert [row["name"] for row in nodes][1:] == [f"ip-10-0-0-{n}" for n in range(2, 6)]
        assert hpj("nodes", "--cluster", arn, "--json").ok().json["nodes"] == nodes

    def test_by_its_eks_cluster_alone(self, eks, hpj):
        for name in ("mine", "research-eks", eks.arn):
            nodes = hpj("nodes", name, "--json").ok().json["nodes"]
            assert nodes[0]["name"] == f"hyperpod-{eks.nodes[0].instance_id}"
            assert (nodes[0]["state"], nodes[0]["instance_state"]) == ("up", "running")
            assert len(nodes) == len(eks.nodes)
        assert hpj("events", "--cluster", "mine").ok()

    def test_an_unknown_one_without_aws(self, no_aws, home, hpj):
        for words in (("nodes", "lokal"), ("events", "lokal"), ("quotas", "lokal")):
            done = hpj(*words, "--json")
            assert (done.code, done.error["code"]) == (3, "unknown_cluster")
            assert done.error["message"] == "cluster 'lokal' not found"
            assert done.error["hint"] == "did you mean 'local'?"
        done = hpj("show", "lokal", "--json")
        assert (done.code, done.error["code"]) == (3, "no_such_run")

    def test_a_mistyped_one_where_there_is_aws(self, slurm, hpj):
        done = hpj("nodes", "trian", "--json")
        assert (done.code, done.error["code"]) == (3, "not_found")
        assert done.error["hint"] == "did you mean 'train'?"

    def test_show_says_when_aws_could_not_be_asked_whether_it_is_a_cluster(self, example, hpj):
        done = hpj("show", "nope", "--json")
        assert done.error["message"] == "no run or cluster named 'nope' found"
        done = hpj("show", "No-Run-Id", "--json")
        assert (done.code, done.error["code"]) == (2, "invalid_run_id")
        example.account.add_cluster("No-Run-Id", REGION, orchestrator={"Slurm": {}})
        assert hpj("show", "No-Run-Id", "--json").ok().json["name"] == "No-Run-Id"
        example.faults.deny(DESCRIBE)
        done = hpj("show", "ml-cluster", "--json")
        assert (done.code, done.error["code"]) == (3, "no_such_run")
        assert done.error["message"] == (
            "run ml-cluster not found; it is unknown whether it is a HyperPod cluster: "
            f"you do not have the permission {DESCRIBE}"
        )


class TestOneSide:
    """Where only one side answers."""

    def test_the_schedulers_nodes_where_aws_lists_no_instances(self, example, slurm, hpj):
        example.faults.deny(NODES)
        done = hpj("nodes", "--json").ok().json
        assert [(row["name"], row["state"], row["instance"]) for row in done["nodes"]] == [
            (f"ip-10-0-0-{number}", "up", None) for number in range(2, 6)
        ]
        assert {row["instance_reason"] for row in done["nodes"]} == {None}
        (note,) = done["notes"]
        assert note.startswith(f"AWS does not list the instances: you do not have the permission {NODES}")
        assert f"note: {note}" in hpj("nodes").ok().err

    def test_the_instances_where_the_scheduler_does_not_answer(self, slurm, hpj):
        slurm.append(UnreachableError("no route to host"))
        done = hpj("nodes", "--json").ok().json
        assert [row["name"] == row["instance"] for row in done["nodes"]] == [True] * 5
        assert done["notes"] == ["the scheduler of train does not answer: no route to host"]

    def test_neither(self, example, slurm, hpj):
        slurm.append(UnreachableError("no route to host"))
        example.faults.deny(NODES)
        done = hpj("nodes", "--json")
        assert (done.code, done.error["code"]) == (5, "unreachable")
        assert "no route to host" in done.error["message"]
        assert f"you do not have the permission {NODES}" in done.error["message"]

    def test_a_list_of_instances_that_breaks_off(self, example, slurm, hpj):
        cluster = example.account.clusters[REGION][0]
        for _ in range(200):
            cluster.add_node(cluster.groups[1])

        def fail_then(_):
            example.faults.denied[NODES] = {"ml-cluster"}

        example.faults.later[NODES] = fail_then
        done = hpj("nodes", "--json").ok().json
        assert {f"ip-10-0-0-{number}" for number in range(2, 6)} <= {row["name"] for row in done["nodes"]}
        assert len(done["nodes"]) == 100
        (note,) = done["notes"]
        assert note.startswith(f"AWS does not list all instances: you do not have the permission {NODES}")

    def test_a_description_that_aws_refuses(self, example, slurm, hpj):
        example.faults.deny(DESCRIBE)
        found = hpj("show", "train", "--json").ok().json
        assert (found["name"], found["hyperpod"]) == ("train", None)
        assert any(f"you do not have the permission {DESCRIBE}" in note for note in found["notes"])
        done = hpj("nodes", "--json").ok().json
        assert [row["name"] for row in done["nodes"][1:]] == [f"ip-10-0-0-{number}" for number in range(2, 6)]
        (note,) = done["notes"]
        assert note.startswith(f"AWS does not describe ml-cluster: you do not have the permission {DESCRIBE}")

    def test_aws_that_does_not_say_which_hyperpod_cluster_it_is(self, example, eks, hpj):
        """An EKS cluster in the configuration: what AWS refuses is no "is not a HyperPod cluster"."""
        example.faults.deny(LIST)
        done = hpj("nodes", "mine", "--json").ok().json
        assert [row["instance"] for row in done["nodes"]] == [None]
        (note,) = done["notes"]
        assert f"you do not have the permission {LIST}" in note
        assert any(LIST in note for note in hpj("show", "mine", "--json").ok().json["notes"])
        for words in (
            ("events", "mine"),
            ("quotas", "mine"),
            ("metrics", "--cluster", "mine"),
            ("node", "reboot", "i-0123456789abcdef0", "--cluster", "mine", "--dry-run"),
        ):
            done = hpj(*words, "--json")
            assert (done.code, done.error["code"]) == (4, "missing_right"), words

    def test_nodes_that_the_scheduler_hides_are_not_said_to_be_missing(self, eks, hpj, monkeypatch):
        async def nodes(self):
            return Rows([], ["nodes are hidden: you may not list them"])

        monkeypatch.setattr(KubernetesTables, "nodes", nodes)
        done = hpj("nodes", "mine", "--json").ok()
        assert len(done.json["nodes"]) == len(eks.nodes)
        assert not [row for row in done.json["nodes"] if "scheduler" in (row["instance_reason"] or "")]
        assert "nodes are hidden: you may not list them" in done.json["notes"]

    @pytest.mark.parametrize("words", [("reboot",), ("drain", "--reason", "x")], ids=["reboot", "drain"])
    def test_an_order_to_an_instance_that_aws_does_not_list_says_why(self, example, slurm, hpj, words):
        """A table is shown without the instances; that there is no such node would be wrong."""
        instance = example.account.clusters[REGION][0].nodes[1].instance_id
        example.faults.deny(NODES)
        action, *more = words
        done = hpj("node", action, instance, *more, "--yes", "--json")
        assert (done.code, done.error["code"]) == (4, "missing_right")
        assert REBOOT not in asked(example)
