"""Clusters and their tables: on the local cluster, and on one with many rows."""

import asyncio
import time

import pytest

from hyperpod_jlab.core.cache import SNAPSHOT_TTL_S, Snapshots
from hyperpod_jlab.core.cluster import Job, Node, Resource
from hyperpod_jlab.core.errors import InvalidInputError, UnreachableError
from hyperpod_jlab.engines.local.observe import LocalTables
from hyperpod_jlab.server.pages import TableQuery, build_page


async def test_clusters_are_listed(api):
    answer = await api.get("clusters")
    (local,) = answer["clusters"]
    assert (local["name"], local["orchestrator"], local["default"]) == ("local", "local", True)
    assert (answer["next"], answer["total"]) == (None, 1)


async def test_nodes_queues_and_jobs(api):
    run = await api.submit("sleep 60", name="sleeper")
    await api.until(run["run_id"], lambda run: run["state"] == "running")
    assert (await api.get("clusters/local/nodes"))["total"] >= 1
    assert (await api.get("clusters/local/queues"))["queues"][0]["name"]
    jobs = await api.get("clusters/local/jobs", filter="SLEEPER running")
    assert [job["run_id"] for job in jobs["jobs"]] == [run["run_id"]]
    assert (await api.get("clusters/local/jobs", filter="nobody"))["total"] == 0
    overview = await api.get("clusters/local/overview")
    assert [job["run_id"] for job in overview["running"]] == [run["run_id"]]
    (node,) = overview["nodes"]
    assert [share["job"] for share in node["shares"]] == [jobs["jobs"][0]["scheduler_id"]]


@pytest.mark.parametrize("table", ["nodes", "queues", "jobs"])
@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"sort": "colour"}, "sort"),
        ({"sort": "-"}, "sort"),
        ({"limit": "0"}, "limit"),
        ({"cursor": "é"}, "cursor"),
        ({"cursor": "eyJ9"}, "cursor"),
        ({"order": "name"}, "order"),
    ],
)
async def test_a_wrong_query_names_the_field(api, table, query, field):
    await api.submit("sleep 60")
    status, error = await api.request("GET", f"clusters/local/{table}", query=query)
    assert (status, error["detail"]["field"]) == (400, field)


async def test_the_local_cluster_has_nothing_to_choose(api):
    assert await api.get("clusters/local/choices") == {"choices": {}}


@pytest.mark.parametrize("what", ["nodes", "choices"])
async def test_an_unknown_cluster_is_not_found(api, what):
    status, error = await api.request("GET", f"clusters/lokal/{what}")
    assert (status, error["code"], error["hint"]) == (404, "unknown_cluster", "did you mean 'local'?")


def nodes(count):
    return [
        Node(f"node-{number}", "idle", cpus=number % 3 or None, jobs=("a",) * (number % 2)) for number in range(count)
    ]


def walk(rows, **query):
    """All pages of a table."""
    found, cursor = [], None
    while True:
        page = build_page(Node, rows, TableQuery(cursor=cursor, **query), name="name", sort="name")
        found += page.rows
        cursor = page.next
        if cursor is None:
            assert page.total == len(found)
            return found


@pytest.mark.parametrize("sort", ["name", "-name", "cpus", "-cpus", "jobs", "-state"])
def test_pages_hold_each_row_once(sort):
    found = walk(nodes(50), sort=sort, limit=7)
    assert sorted(row.name for row in found) == sorted(node.name for node in nodes(50))


def test_names_are_sorted_as_people_count():
    assert [row.name for row in walk(nodes(12))][-3:] == ["node-9", "node-10", "node-11"]


def test_rows_without_a_value_come_last_both_ways():
    for sort in ("cpus", "-cpus"):
        values = [row.cpus for row in walk(nodes(9), sort=sort)]
        assert values[-3:] == [None] * 3
        assert values[:6] == sorted(values[:6], reverse=sort == "-cpus")


def test_a_page_goes_on_where_its_row_stood_when_that_is_gone():
    first = build_page(Node, nodes(10), TableQuery(limit=5), name="name", sort="name")
    left = [node for node in nodes(10) if node.name not in {"node-4", "node-1"}]
    rest = build_page(Node, left, TableQuery(cursor=first.next), name="name", sort="name")
    assert [row.name for row in rest.rows] == [f"node-{number}" for number in range(5, 10)]


def test_ten_times_the_jobs_cost_about_ten_times_the_time():
    def cost(number):
        """Seconds of computing."""
        jobs = [Job(str(one), f"job {one}", "user", "running", submitted_at=float(one)) for one in range(number)]
        query = TableQuery(filter=f"job {number // 100 - 1}")
        costs = []
        for _ in range(5):
            begin = time.process_time()
            page = build_page(Job, jobs, query, name="scheduler_id", sort="-submitted_at")
            costs.append(time.process_time() - begin)
            assert page.rows[0].scheduler_id == str(number - 1)
        return min(costs)

    assert cost(10_000) < 40 * cost(1000)


def test_a_column_must_exist_even_in_an_empty_table():
    with pytest.raises(InvalidInputError):
        build_page(Node, [], TableQuery(sort="colour"), name="name", sort="name")


async def test_those_who_ask_at_once_cost_one_look():
    looks = []

    async def look():
        looks.append(1)
        return "seen"

    snapshots = Snapshots()
    for _ in range(3):
        assert await snapshots.get("nodes", look) == "seen"
    assert len(looks) == 1


async def test_a_failed_look_is_not_kept():
    async def fail():
        raise InvalidInputError("away")

    async def look():
        return "seen"

    snapshots = Snapshots()
    with pytest.raises(InvalidInputError):
        await snapshots.get("nodes", fail)
    assert await snapshots.get("nodes", look) == "seen"


async def test_a_cluster_that_does_not_answer_is_shown_as_it_was():
    async def look():
        return ["seen"]

    async def fail():
        raise UnreachableError("away", code="controller_down")

    snapshots = Snapshots()
    with pytest.raises(UnreachableError):
        await snapshots.last("nodes", fail)
    before = time.time()
    fresh = await snapshots.last("nodes", look)
    assert (fresh.value, fresh.problem) == (["seen"], None)
    assert fresh.as_of == pytest.approx(before, abs=1)
    await asyncio.sleep(SNAPSHOT_TTL_S)
    old = await snapshots.last("nodes", fail)
    assert old.value == ["seen"]
    assert old.as_of == pytest.approx(before, abs=1)
    assert old.problem is not None
    assert old.problem.to_dict() == {"code": "controller_down", "message": "away", "hint": None, "detail": {}}
    await asyncio.sleep(0.01)
    assert (await snapshots.last("nodes", look)).problem is None


async def test_other_faults_are_told_as_faults():
    async def look():
        return ["seen"]

    async def fail():
        raise InvalidInputError("wrong")

    snapshots = Snapshots()
    await snapshots.last("nodes", look)
    await asyncio.sleep(SNAPSHOT_TTL_S)
    with pytest.raises(InvalidInputError):
        await snapshots.last("nodes", fail)


def all_pages(rows, **query):
    """The names on all pages, one row a page."""
    told, cursor = [], None
    while True:
        wanted = TableQuery(limit=1, cursor=cursor, **query)
        page = build_page(Node, rows, wanted, name="name", sort="name")
        told += [row.name for row in page.rows]
        cursor = page.next
        if cursor is None:
            return told


def test_names_that_count_alike_are_all_there():
    names = ["gpu-1", "gpu-01", "gpu-001", "GPU-1", "gpu-2"]
    assert sorted(all_pages([Node(name, "idle") for name in names])) == sorted(names)


@pytest.mark.parametrize("sort", ["jobs", "-jobs", "reason", "-reason"])
def test_rows_with_very_long_values_have_pages_too(sort):
    many = tuple(f"node-with-a-long-name-{number}" for number in range(500))
    rows = [Node(f"n{number}", "idle", reason="r" * 9000, jobs=many) for number in range(4)]
    assert sorted(all_pages(rows, sort=sort)) == ["n0", "n1", "n2", "n3"]


async def test_jobs_that_ended_are_apart_from_those_that_have_not(api, monkeypatch):
    async def jobs(self):
        states = ["waiting", "held", "running", "suspended", "succeeded", "failed", "cancelled"]
        return [Job(str(number), "n", "u", state) for number, state in enumerate(states)]

    monkeypatch.setattr(LocalTables, "jobs", jobs)
    there = await api.get("clusters/local/jobs", ended="false", sort="scheduler_id")
    gone = await api.get("clusters/local/jobs", ended="true")
    assert [job["state"] for job in there["jobs"]] == ["waiting", "held", "running", "suspended"]
    assert {job["state"] for job in gone["jobs"]} == {"succeeded", "failed", "cancelled"}
    assert (await api.get("clusters/local/jobs"))["total"] == 7


def test_the_filter_looks_at_what_is_shown():
    gpu = Resource("gpu", "h100", 8, free=3, accelerator=True)
    rows = [Node("n1", "up", resources=(gpu,), queues=("dev", "batch")), Node("n2", "up")]

    def found(text):
        page = build_page(Node, rows, TableQuery(filter=text), name="name", sort="name")
        return [row.name for row in page.rows]

    assert found("h100") == ["n1"]
    assert found("gpu:h100 3/8") == ["n1"]
    assert found("batch") == ["n1"]
    assert found("true") == []
    assert found("resource") == []
