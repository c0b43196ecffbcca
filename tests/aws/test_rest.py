"""HyperPod clusters over REST: a real server, real boto3, the testbed's AWS."""

from __future__ import annotations

import asyncio
import sys
import time

import pytest

from hyperpod_jlab.aws import studio as presence
from hyperpod_jlab.core import cache as looks
from hyperpod_jlab.core.cluster import Node
from hyperpod_jlab.core.errors import UnreachableError
from hyperpod_jlab.engines.slurm.tables import SlurmTables
from testbed.aws.example import example_account
from testbed.aws.state import Account
from tests.aws.conftest import KEY, REGION
from tests.conftest import home  # noqa: F401 - the server's tests have another one than the command line's
from tests.server.conftest import *  # noqa: F403

LIST, DESCRIBE = "sagemaker:ListClusters", "sagemaker:DescribeCluster"
NODES, TAGS = "sagemaker:ListClusterNodes", "sagemaker:ListTags"


@pytest.fixture
def example(endpoint):
    endpoint.account = example_account(REGION)
    return endpoint


def made(endpoint, action):
    """How often an action was asked for."""
    return [call.action for call in endpoint.calls].count(action)


async def until_loaded(api, path, **query):
    """What is there once all of it is there."""
    deadline = time.monotonic() + 60
    answer = await api.get(path, **query)
    while answer["loading"]:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)
        answer = await api.get(path, **{**query, "refresh": "false"})
    return answer


def at_aws(answer):
    """The rows of clusters that AWS lists, by their name there."""
    return {row["hyperpod"]["name"]: row for row in answer["clusters"] if row["hyperpod"]}


async def refused(api, path, **query):
    """The status and the error of a request that is refused."""
    return await api.request("GET", path, query=query)


async def test_the_clusters_with_what_their_descriptions_tell(example, api):
    answer = await until_loaded(api, "clusters")
    names = [row["name"] for row in answer["clusters"]]
    assert names == ["first-try", "local", "ml-cluster", "older-cluster", "research-eks"]
    assert (answer["total"], answer["problem"], answer["notes"]) == (5, None, [])
    rows = at_aws(answer)
    assert list(rows) == [name for name in names if name != "local"]
    slurm, eks = rows["ml-cluster"], rows["research-eks"]
    assert (slurm["orchestrator"], slurm["state"], slurm["nodes"]) == ("slurm", "in-service", 5)
    assert slurm["hyperpod"]["mounted_here"] == []
    assert (eks["orchestrator"], eks["nodes"], eks["hyperpod"]["target"]) == ("kubernetes", 6, 8)
    assert rows["first-try"]["reason"] == "Lifecycle scripts did not run successfully."
    assert all(row["hyperpod"]["described_at"] is not None for row in rows.values())
    only = await api.get("clusters", filter="KUBERNETES", sort="-nodes")
    assert [row["name"] for row in only["clusters"]] == ["research-eks"]


async def test_what_is_configured_and_what_only_aws_has(configured, api):
    answer = await until_loaded(api, "clusters")
    rows = {row["name"]: row for row in answer["clusters"]}
    assert list(rows) == ["first-try", "local", "older-cluster", "research-eks", "train"]
    train = rows["train"]
    assert (train["configured"], train["configure"]) == (True, None)
    assert train["hyperpod"]["name"] == "ml-cluster"
    assert train["hyperpod"]["configured_as"] == ["train"]
    assert train["hyperpod"]["state"] == "in-service"
    older = rows["older-cluster"]
    assert (older["configured"], older["default"]) == (False, False)
    assert older["configure"] == "hpj config add older-cluster"
    assert older["hyperpod"]["configured_as"] == []
    assert rows["local"]["hyperpod"] is None


async def test_two_clusters_of_one_name(example, cluster, api):
    """The configuration has given a name to another cluster than AWS has."""
    (cluster / "config.toml").write_text('[clusters.ml-cluster]\norchestrator = "local"\n')
    arn = example.account.clusters[REGION][0].arn
    answer = await until_loaded(api, "clusters")
    rows = {row["name"]: row for row in answer["clusters"]}
    assert (answer["total"], len(rows)) == (6, 6)
    assert (rows["ml-cluster"]["orchestrator"], rows["ml-cluster"]["hyperpod"]) == ("local", None)
    far = rows[arn]
    assert (far["orchestrator"], far["configured"]) == ("slurm", False)
    assert far["hyperpod"]["name"] == "ml-cluster"
    assert far["configure"] == "hpj config add ml-cluster-2 --hyperpod ml-cluster"
    # The name is that of the configuration, the ARN that of AWS.
    assert (await api.get("clusters/ml-cluster"))["cluster"]["orchestrator"] == "local"
    assert (await api.get("clusters/ml-cluster/nodes"))["total"] == 1
    assert (await api.get(("clusters", arn)))["cluster"]["hyperpod"]["arn"] == arn
    assert (await until_loaded(api, ("clusters", arn, "nodes")))["total"] == 5


async def test_the_list_is_there_before_the_descriptions(example, api):
    example.faults.slow[DESCRIBE] = 5.0
    begin = time.monotonic()
    answer = await api.get("clusters")
    assert time.monotonic() - begin < 10
    assert "local" in {row["name"] for row in answer["clusters"]}
    while not at_aws(answer):
        assert answer["loading"]
        assert time.monotonic() - begin < 60
        answer = await api.get("clusters")
    assert answer["loading"]
    assert len(at_aws(answer)) == 4
    assert all(row["hyperpod"]["described_at"] is None for row in at_aws(answer).values())
    answer = await until_loaded(api, "clusters")
    assert all(row["hyperpod"]["described_at"] is not None for row in at_aws(answer).values())


async def test_a_slow_list_keeps_nobody_waiting(configured, api):
    configured.faults.slow[LIST] = 5.0
    answer = await api.get("clusters")
    assert [row["name"] for row in answer["clusters"]] == ["local", "train"]
    assert (answer["loading"], answer["as_of"], answer["problem"]) == (True, None, None)
    assert answer["clusters"][1]["hyperpod"] is None
    answer = await until_loaded(api, "clusters")
    assert len(at_aws(answer)) == 4
    assert made(configured, LIST) == 1


async def test_the_configured_clusters_alone_cost_aws_nothing(example, api):
    answer = await api.get("clusters", configured="true")
    assert [row["name"] for row in answer["clusters"]] == ["local"]
    assert (answer["as_of"], answer["problem"], answer["loading"]) == (None, None, False)
    assert example.calls == []
    answer = await until_loaded(api, "clusters")
    assert {row["name"] for row in answer["clusters"]} > {"local", "ml-cluster"}


async def test_however_many_ask_aws_is_asked_once(example, api):
    example.faults.slow[LIST] = 0.3
    await asyncio.gather(*(api.get("clusters") for _ in range(8)))
    first = await until_loaded(api, "clusters")
    assert (made(example, LIST), made(example, DESCRIBE)) == (1, 4)
    example.account.clusters[REGION].pop()
    assert await api.get("clusters") == first
    answer = await until_loaded(api, "clusters", refresh="true")
    assert list(at_aws(answer)) == ["ml-cluster", "older-cluster", "research-eks"]
    assert answer["as_of"] > first["as_of"]
    assert (made(example, LIST), made(example, DESCRIBE)) == (2, 7)


async def test_the_eight_at_once_and_many_clusters_in_pages(endpoint, api):
    for number in range(230):
        endpoint.account.add_cluster(f"c-{number:03d}", REGION, orchestrator={"Slurm": {}})
    answer = await until_loaded(api, "clusters", limit="20")
    assert (answer["total"], len(answer["clusters"])) == (231, 20)  # and local
    assert answer["next"] is not None
    assert (made(endpoint, LIST), made(endpoint, DESCRIBE)) == (3, 230)
    assert endpoint.most_at_once <= 8
    more = await api.get("clusters", limit="20", cursor=answer["next"])
    assert more["clusters"][0]["name"] == "c-020"


async def test_old_looks_are_renewed_bit_by_bit(endpoint, api, monkeypatch):
    for number in range(30):
        endpoint.account.add_cluster(f"c-{number:03d}", REGION, orchestrator={"Slurm": {}})
    await until_loaded(api, "clusters")
    monkeypatch.setattr(looks, "SNAPSHOT_TTL_S", 0.0)
    monkeypatch.setattr(looks, "FRESH_S", 0.0)
    monkeypatch.setattr("hyperpod_jlab.clusters.aws.FRESH_S", 0.0)
    # One of those that were described last: by its age it would not be read now.
    endpoint.account.clusters[REGION][29].status = "Updating"
    before = made(endpoint, DESCRIBE)
    await api.get("clusters")
    monkeypatch.setattr(looks, "FRESH_S", 60.0)
    answer = await until_loaded(api, "clusters")
    states = {row["name"]: row["state"] for row in answer["clusters"]}
    assert states["c-029"] == "updating"
    asked = [call.given["ClusterName"] for call in endpoint.calls if call.action == DESCRIBE]
    assert len(asked) - before == 20
    assert "c-029" in asked[before:]


async def test_the_old_rows_stay_with_their_age_when_aws_refuses(example, api):
    first = await until_loaded(api, "clusters")
    example.faults.deny(LIST)
    answer = await until_loaded(api, "clusters", refresh="true")
    assert at_aws(answer) == at_aws(first)
    assert answer["as_of"] == first["as_of"]
    assert answer["problem"]["code"] == "missing_right"
    assert answer["problem"]["detail"]["right"] == {"action": LIST}
    example.faults.denied.clear()
    answer = await until_loaded(api, "clusters", refresh="true")
    assert answer["problem"] is None
    assert answer["as_of"] > first["as_of"]


async def test_without_the_right_to_list_it_is_said_once_and_not_asked_again_and_again(example, api, monkeypatch):
    example.faults.deny(LIST)
    monkeypatch.setattr(looks, "SNAPSHOT_TTL_S", 0.0)
    for _ in range(3):
        answer = await until_loaded(api, "clusters")
        assert answer["problem"]["code"] == "missing_right"
        assert LIST in answer["problem"]["message"]
        assert (answer["as_of"], [row["name"] for row in answer["clusters"]]) == (None, ["local"])
    assert made(example, LIST) == 1


async def test_clusters_that_may_not_be_described_are_listed_all_the_same(example, api):
    example.faults.deny(DESCRIBE, "research-eks")
    answer = await until_loaded(api, "clusters")
    assert len(at_aws(answer)) == 4
    eks = at_aws(answer)["research-eks"]
    assert (eks["name"], eks["orchestrator"], eks["nodes"]) == ("research-eks", "unknown", None)
    assert (eks["hyperpod"]["orchestrator"], eks["hyperpod"]["described_at"]) == (None, None)
    assert eks["reason"] == f"you do not have the permission {DESCRIBE}"
    assert answer["notes"][0].startswith("1 of 4 clusters could not be described")


async def test_when_aws_has_too_many_calls_no_more_are_made(endpoint, api):
    for number in range(60):
        endpoint.account.add_cluster(f"c-{number:03d}", REGION, orchestrator={"Slurm": {}})
    endpoint.faults.throttled[DESCRIBE] = 10_000
    answer = await until_loaded(api, "clusters")
    assert answer["problem"]["code"] == "aws_throttled"
    assert len(at_aws(answer)) == 60
    # Four tries for each of the eight that were under way.
    assert made(endpoint, DESCRIBE) <= 32


async def test_one_cluster_with_groups_tags_and_links(example, api):
    answer = await until_loaded(api, "clusters/ml-cluster")
    arn = example.account.clusters[REGION][0].arn
    cluster, found = answer["cluster"], answer["cluster"]["hyperpod"]
    assert (cluster["name"], cluster["configured"]) == ("ml-cluster", False)
    assert (cluster["state"], cluster["nodes"]) == ("in-service", 5)
    assert (found["name"], found["arn"], found["state"]) == ("ml-cluster", arn, "in-service")
    controller, workers = found["groups"]
    assert controller["slurm_role"] == "Controller"
    assert (workers["current"], workers["target"], workers["capacity"]) == (4, 4, "OnDemand")
    assert workers["script"] == "s3://sagemaker-scripts/hyperpod/on_create.sh"
    assert workers["checks"] == ["InstanceStress", "InstanceConnectivity"]
    assert answer["tags"] == [{"key": "stage", "value": "test"}, {"key": "team", "value": "vision"}]
    assert answer["log_group"] == f"/aws/sagemaker/Clusters/ml-cluster/{arn.rpartition('/')[2]}"
    assert answer["links"]["cluster"] == (
        f"https://{REGION}.console.aws.amazon.com/sagemaker/home?region={REGION}#/cluster-management/ml-cluster"
    )
    assert answer["links"]["eks"] is None
    eks = await until_loaded(api, "clusters/research-eks")
    assert eks["links"]["eks"].endswith("#/clusters/research")


@pytest.mark.parametrize(
    ("partition", "region", "console"),
    [
        ("aws-cn", "cn-north-1", "console.amazonaws.cn"),
        ("aws-us-gov", "us-gov-west-1", "console.amazonaws-us-gov.com"),
        ("aws-iso", "us-iso-east-1", None),
    ],
)
async def test_links_are_those_of_the_partition(endpoint, api, no_aws, partition, region, console):
    no_aws.setenv("AWS_REGION", region)
    endpoint.account = Account(partition=partition)
    endpoint.account.add_caller(KEY)
    eks = endpoint.account.eks("train", region)
    endpoint.account.add_cluster("one", region, orchestrator=eks)
    links = (await api.get("clusters/one"))["links"]
    for link in links.values():
        assert link is None if console is None else link.startswith(f"https://{region}.{console}/")


async def test_without_the_right_to_tags_there_is_the_rest(example, api):
    example.faults.deny(TAGS)
    answer = await until_loaded(api, "clusters/ml-cluster")
    assert answer["tags"] is None
    assert len(answer["cluster"]["hyperpod"]["groups"]) == 2
    assert TAGS in answer["notes"][0]


async def test_slow_tags_keep_nobody_waiting(example, api):
    example.faults.slow[TAGS] = 3.0
    answer = await api.get("clusters/ml-cluster")
    assert (answer["tags"], answer["loading"]) == (None, True)
    assert len(answer["cluster"]["hyperpod"]["groups"]) == 2
    answer = await until_loaded(api, "clusters/ml-cluster")
    assert len(answer["tags"]) == 2
    assert made(example, TAGS) == 1


async def test_a_cluster_that_is_deleted_while_it_is_shown_is_gone(example, api):
    await until_loaded(api, "clusters/ml-cluster")
    await until_loaded(api, "clusters/ml-cluster/nodes")
    example.account.clusters[REGION].pop(0)
    for path in ("clusters/ml-cluster", "clusters/ml-cluster/nodes"):
        status, error = await refused(api, path, refresh="true")
        assert (status, error["code"]) == (404, "not_found")


async def test_the_instances_without_a_scheduler(example, api):
    answer = await until_loaded(api, "clusters/ml-cluster/nodes", sort="-state", filter="worker")
    assert answer["total"] == 4
    states = [row["state"] for row in answer["nodes"]]
    assert states == ["running", "running", "running", "failed"]
    failed = answer["nodes"][-1]
    assert failed["reason"] == "EC2 health check failed; the instance is being replaced"
    assert (failed["instance_state"], failed["instance_status"]) == ("failed", "Failure")
    assert (failed["instance_type"], failed["jobs"]) == ("ml.p5.48xlarge", [])
    assert (failed["name"], failed["cpus_free"]) == (failed["instance"], None)
    assert answer["notes"] == ["no scheduler was asked, because ml-cluster is not configured"]


@pytest.fixture
def configured(example, cluster):
    """The example, whose Slurm cluster is in the configuration as `train`."""
    text = '[clusters.local]\n[clusters.train]\norchestrator = "slurm"\nhyperpod = "ml-cluster"\n'
    (cluster / "config.toml").write_text(text)
    return example


def slurm_nodes(example, monkeypatch, *, after=0.0, error=None):
    """Let the scheduler tell its nodes: those of the workers but the last, and one that AWS does not list."""
    hosts = [f"ip-{node.address.replace('.', '-')}" for node in example.account.clusters[REGION][0].nodes]
    found = [Node(host, "up", accelerators=8, accelerators_free=2, jobs=("7",)) for host in hosts[1:4]]

    async def nodes(self):
        await asyncio.sleep(after)
        if error is not None:
            raise error
        return [*found, Node("ip-9-9-9-9", "down", reason="gone")]

    monkeypatch.setattr(SlurmTables, "nodes", nodes)


async def test_the_instances_joined_with_the_schedulers_nodes(configured, api, monkeypatch):
    slurm_nodes(configured, monkeypatch)
    answer = await until_loaded(api, "clusters/ml-cluster/nodes", sort="-jobs")
    assert answer["notes"] == []
    rows = answer["nodes"]
    assert len(rows) == 6
    assert [(row["state"], row["instance_state"]) for row in rows[:3]] == [("up", "running")] * 3
    assert {row["host"].partition(".")[0] for row in rows[:3]} == {row["name"] for row in rows[:3]}
    assert all(row["instance"].startswith("i-") for row in rows[:3])
    assert (rows[0]["accelerators"], rows[0]["accelerators_free"]) == (8, 2)
    lost = next(row for row in rows if row["name"] == "ip-9-9-9-9")
    assert (lost["state"], lost["reason"]) == ("down", "gone")
    assert (lost["instance"], lost["instance_state"], lost["instance_status"]) == (None, None, None)
    assert lost["instance_reason"].startswith("AWS lists no instance of this name")
    # A cluster is found by both of its names, and by its ARN.
    arn = configured.account.clusters[REGION][0].arn
    for name in ("train", arn):
        again = await until_loaded(api, ("clusters", name, "nodes"), sort="-jobs")
        assert again["nodes"] == rows
    for name in ("train", "ml-cluster", arn):
        found = (await api.get(("clusters", name)))["cluster"]
        assert (found["name"], found["configured"]) == ("train", True)
        assert found["hyperpod"]["arn"] == arn
    assert at_aws(await until_loaded(api, "clusters"))["ml-cluster"]["name"] == "train"


async def test_a_slow_scheduler_does_not_hold_up_the_instances(configured, api, monkeypatch):
    slurm_nodes(configured, monkeypatch, after=4.0)
    answer = await api.get("clusters/ml-cluster/nodes")
    assert (answer["total"], answer["loading"]) == (5, True)
    assert answer["notes"] == ["the scheduler of train has not answered yet"]
    answer = await until_loaded(api, "clusters/ml-cluster/nodes")
    assert (answer["total"], answer["notes"]) == (6, [])


async def test_a_scheduler_that_does_not_answer_is_told_beside_the_instances(configured, api, monkeypatch):
    slurm_nodes(configured, monkeypatch, error=UnreachableError("no controller"))
    answer = await until_loaded(api, "clusters/ml-cluster/nodes")
    assert answer["total"] == 5
    assert answer["notes"] == ["the scheduler of train does not answer: no controller"]


async def test_without_the_right_to_list_instances_the_schedulers_nodes_are_shown(configured, api, monkeypatch):
    slurm_nodes(configured, monkeypatch)
    configured.faults.deny(NODES)
    answer = await until_loaded(api, "clusters/train/nodes")
    assert "ip-9-9-9-9" in {row["name"] for row in answer["nodes"]}
    assert (answer["total"], answer["problem"]) == (4, None)
    assert all(row["instance"] is row["instance_reason"] is None for row in answer["nodes"])
    (note,) = answer["notes"]
    assert note.startswith(f"AWS does not list the instances: you do not have the permission {NODES}")


async def test_when_neither_side_answers_it_is_an_error(configured, api, monkeypatch):
    slurm_nodes(configured, monkeypatch, error=UnreachableError("no controller"))
    configured.faults.deny(NODES)
    status, error = await refused(api, "clusters/train/nodes")
    assert (status, error["code"]) == (502, "unreachable")
    words = "no controller; AWS does not list the instances either: you do not have the permission "
    assert error["message"].startswith(words + NODES)


async def test_a_configured_cluster_that_aws_does_not_describe(configured, api, monkeypatch):
    slurm_nodes(configured, monkeypatch)
    configured.faults.deny(DESCRIBE)
    answer = await until_loaded(api, "clusters/train")
    assert (answer["cluster"]["name"], answer["cluster"]["hyperpod"]) == ("train", None)
    assert answer["problem"]["code"] == "missing_right"
    assert (answer["tags"], answer["log_group"], answer["links"]) == (None, None, None)
    nodes = await until_loaded(api, "clusters/train/nodes")
    assert nodes["total"] == 6
    assert any(DESCRIBE in note for note in nodes["notes"])


async def test_a_cluster_that_is_not_at_aws(api, no_aws):
    answer = await api.get("clusters/local")
    assert (answer["cluster"]["name"], answer["cluster"]["state"]) == ("local", "up")
    assert [answer[name] for name in ("tags", "log_group", "links", "as_of", "problem")] == [None] * 5
    for path in ("clusters/loca", "clusters/loca/nodes", "clusters/loca/events"):
        status, error = await refused(api, path)
        assert (status, error["code"]) == (404, "unknown_cluster")
        assert error["message"] == "cluster 'loca' not found"
        assert error["hint"] == "did you mean 'local'?"


async def test_the_first_page_of_a_large_group_does_not_wait_for_the_last(endpoint, api):
    cluster = endpoint.account.add_cluster("large", REGION, orchestrator={"Slurm": {}})
    cluster.add_group("workers", "ml.p5.48xlarge", 6758)
    endpoint.faults.slow[NODES] = 0.2  # so that all take at least 13 s
    begin = time.monotonic()
    answer = await api.get("clusters/large/nodes", limit="50")
    first = time.monotonic() - begin
    assert len(answer["nodes"]) == 50
    assert answer["loading"]
    assert answer["total"] < 6758 / 2
    answer = await until_loaded(api, "clusters/large/nodes", limit="50")
    assert (answer["total"], made(endpoint, NODES)) == (6758, 68)
    assert first < (time.monotonic() - begin) / 2
    assert len({row["name"] for row in answer["nodes"]}) == 50


async def test_nobody_who_looks_nothing_that_is_asked(endpoint, api, monkeypatch):
    cluster = endpoint.account.add_cluster("large", REGION, orchestrator={"Slurm": {}})
    cluster.add_group("workers", "ml.p5.48xlarge", 3000)
    endpoint.faults.slow[NODES] = 0.1
    monkeypatch.setattr(looks, "IDLE_TIMEOUT_S", 0.5)
    await api.get("clusters/large/nodes")
    await asyncio.sleep(1.5)
    paused = made(endpoint, NODES)
    assert paused < 30
    await asyncio.sleep(1.0)
    assert made(endpoint, NODES) == paused
    answer = await until_loaded(api, "clusters/large/nodes")
    assert (answer["total"], made(endpoint, NODES)) == (3000, 30)


async def test_a_listing_that_breaks_off_shows_what_came(endpoint, api):
    cluster = endpoint.account.add_cluster("large", REGION, orchestrator={"Slurm": {}})
    cluster.add_group("workers", "ml.p5.48xlarge", 300)

    def fail_then(_):
        endpoint.faults.denied[NODES] = {"large"}

    endpoint.faults.later[NODES] = fail_then
    answer = await until_loaded(api, "clusters/large/nodes")
    assert answer["total"] == 100
    assert answer["problem"]["code"] == "missing_right"


async def test_without_aws_there_is_a_sentence_and_boto3_is_not_loaded(api, no_aws):
    for name in [name for name in sys.modules if name.partition(".")[0] == "boto3"]:
        no_aws.delitem(sys.modules, name)
    answer = await api.get("clusters")
    assert [row["name"] for row in answer["clusters"]] == ["local"]
    assert (answer["as_of"], answer["loading"]) == (None, False)
    assert answer["problem"]["code"] == "no_aws_credentials"
    assert "aws configure" in answer["problem"]["hint"]
    assert "boto3" not in sys.modules


async def test_a_user_who_wants_it_has_aws_asked_all_the_same(api, no_aws):
    no_aws.setenv("AWS_REGION", REGION)
    answer = await api.get("clusters", refresh="true")
    assert answer["problem"]["code"] == "no_aws_credentials"
    assert "boto3" in sys.modules


async def test_without_boto3_it_is_said_what_to_install(api, endpoint, no_aws):
    no_aws.setitem(sys.modules, "boto3", None)
    answer = await api.get("clusters")
    assert answer["problem"]["code"] == "boto3_missing"
    assert "hyperpod-jlab[aws]" in answer["problem"]["hint"]
    status, error = await refused(api, "clusters/ml-cluster")
    assert (status, error["code"]) == (422, "boto3_missing")


async def test_what_points_to_aws(no_aws, tmp_path):
    none = tmp_path / "none"
    assert not presence.points_to_aws(none)
    (tmp_path / "no-aws-config").touch()
    assert presence.points_to_aws(none)
    (tmp_path / "no-aws-config").unlink()
    (tmp_path / "vendor").write_text("Amazon EC2\n")
    assert not presence.points_to_aws(tmp_path / "vendor")
    no_aws.delenv("AWS_EC2_METADATA_DISABLED")
    assert presence.points_to_aws(tmp_path / "vendor")
    no_aws.setenv("AWS_PROFILE", "work")
    assert presence.points_to_aws(none)
