"""Pages, searches, downloads and lists of logs, and what else belongs to a run."""

import asyncio
import io
import os
import time
import zipfile

import pytest
from tornado.httpclient import HTTPClientError

from hyperpod_jlab.run.services import Hyperpod
from tests.server.conftest import lines_of

COUNT = "for i in $(seq {}); do echo line $i; done"


@pytest.fixture
async def ended_run(api):
    run = await api.submit(COUNT.format(50))
    return await api.ended(run["run_id"])


async def test_a_log_is_paged_backward_to_its_first_line(api, ended_run):
    path = f"runs/{ended_run['run_id']}/logs"
    page = await api.get(path, limit="20")
    assert lines_of(page["frames"]) == [f"line {number}" for number in range(31, 51)]
    assert (page["at_start"], page["at_end"]) == (False, True)
    lines = lines_of(page["frames"])
    while not page["at_start"]:
        page = await api.get(path, limit="20", cursor=page["before"])
        lines = lines_of(page["frames"]) + lines
    assert lines == [f"line {number}" for number in range(1, 51)]


async def test_a_log_is_paged_forward(api, ended_run):
    path = f"runs/{ended_run['run_id']}/logs"
    page = await api.get(path, direction="forward", limit="30")
    assert page["at_start"] is True
    assert page["frames"][-1]["after"] == page["after"]
    rest = await api.get(path, direction="forward", cursor=page["after"])
    assert rest["at_end"] is True
    lines = lines_of(page["frames"]) + lines_of(rest["frames"])
    assert lines == [f"line {number}" for number in range(1, 51)]


async def test_a_page_ends_where_the_socket_goes_on(api, log_page):
    run = await api.submit("echo one; sleep 1; echo two")
    await api.until(run["run_id"], lambda run: run["state"] == "running")
    page = await api.get(f"runs/{run['run_id']}/logs")
    follower = await log_page()
    await follower.send(type="subscribe", id=1, run_id=run["run_id"], cursor=page["after"])
    assert lines_of(page["frames"]) + lines_of(await follower.read()) == ["one", "two"]


async def test_lines_are_chosen_by_query(api, ended_run):
    path = f"runs/{ended_run['run_id']}/logs"
    chosen = await api.get(path, ranks="0", node="0", attempt="1", node_logs="false", grep="4[0-9]")
    assert lines_of(chosen["frames"]) == [f"line {number}" for number in range(40, 50)]


async def test_a_log_is_searched(api, ended_run):
    path = f"runs/{ended_run['run_id']}/logs/search"
    found = await api.get(path, grep="LINE 1[0-9]", ignore_case="true", limit="3")
    assert [hit["line"] for hit in found["hits"]] == ["line 10", "line 11", "line 12"]
    assert found["hits"][0]["match"] == [0, 7]
    more = await api.get(path, grep="line 1[0-9]", cursor=found["next"])
    assert more["hits"][0]["line"] == "line 13"
    assert more["next"] is None
    page = await api.get(
        f"runs/{ended_run['run_id']}/logs", direction="forward", cursor=found["hits"][0]["cursor"], limit="1"
    )
    assert lines_of(page["frames"]) == ["line 10"]


async def test_a_page_begins_at_a_time(api):
    run = await api.submit("echo early; sleep 1.5; echo late")
    await api.ended(run["run_id"])
    path = f"runs/{run['run_id']}/logs"
    found = await api.get(f"{path}/search", grep="late")
    page = await api.get(path, direction="forward", since=str(found["hits"][0]["time"] - 0.2))
    assert lines_of(page["frames"]) == ["late"]
    before = await api.get(path, cursor=page["before"])
    assert lines_of(before["frames"]) == ["early"]


async def test_all_ranks_are_downloaded_as_one_text(api):
    run = await api.submit("printf 'one\\ntwo'", resources={"nodes": 2})
    await api.ended(run["run_id"])
    path = f"runs/{run['run_id']}/logs/download"
    response = await api.raw("GET", path, query={"node_logs": "false"})
    assert f'filename="{run["run_id"]}.log"' in response.headers["Content-Disposition"]
    lines = response.body.decode().splitlines()
    assert sorted(lines) == ["0|one", "0|two", "1|one", "1|two"]
    response = await api.raw("GET", path, query={"ranks": "1", "grep": "t"})
    assert response.body == b"two\n"


async def test_a_line_of_many_pieces_is_downloaded_as_one(api):
    run = await api.submit("head -c 50000 /dev/zero | tr '\\0' x; echo; echo end")
    await api.ended(run["run_id"])
    response = await api.raw("GET", f"runs/{run['run_id']}/logs/download")
    assert response.body == b"0|" + b"x" * 50_000 + b"\n0|end\n"


async def test_all_ranks_are_downloaded_as_an_archive(api):
    run = await api.submit("printf 'bar\\rfoo'", resources={"nodes": 2})
    await api.ended(run["run_id"])
    query = {"format": "zip", "node_logs": "false"}
    response = await api.raw("GET", f"runs/{run['run_id']}/logs/download", query=query)
    with zipfile.ZipFile(io.BytesIO(response.body)) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    assert contents == {f"attempt-1/rank-{rank}.log": b"bar\rfoo" for rank in (0, 1)}


async def test_a_histogram_counts_bytes_and_matching_lines_over_time(api):
    run = await api.submit("echo ok; sleep 1.2; echo ERROR bad; sleep 1.2; echo ok")
    await api.ended(run["run_id"])
    path = f"runs/{run['run_id']}/logs/histogram"
    found = await api.get(path, grep="ERROR", buckets="3", node_logs="false")
    assert found["sizes"] == [3, 10, 3]
    assert found["matches"] == [0, 1, 0]
    assert (found["logs"], found["logs_total"], found["matches_until"]) == (1, 1, None)
    assert found["end"] - found["begin"] > 2


async def test_a_log_without_a_line_has_no_histogram(api):
    run = await api.submit("true")
    await api.ended(run["run_id"])
    found = await api.get(f"runs/{run['run_id']}/logs/histogram", node_logs="false")
    assert (found["begin"], found["sizes"]) == (None, [])


@pytest.mark.parametrize(
    ("rest", "query", "field"),
    [
        ("logs", {"limit": "0"}, "limit"),
        ("logs", {"limit": "2001"}, "limit"),
        ("logs", {"ranks": "0,x"}, "ranks.1"),
        ("logs", {"direction": "up"}, "direction"),
        ("logs", {"cursor": "x"}, "cursor"),
        ("logs", {"grep": "("}, "grep"),
        ("logs", {"follow": "true"}, "follow"),
        ("logs/search", {}, "grep"),
        ("logs/search", {"grep": "x" * 3000}, "grep"),
        ("logs/raw", {"rank": "-1"}, "rank"),
        ("logs/raw", {"attempt": "0"}, "attempt"),
        ("streams", {"attempt": "1"}, "attempt"),
    ],
)
async def test_a_wrong_query_names_the_field(api, ended_run, rest, query, field):
    status, error = await api.request("GET", f"runs/{ended_run['run_id']}/{rest}", query=query)
    assert (status, error["detail"]["field"]) == (400, field)


async def test_a_streams_exact_bytes_are_downloaded(api):
    run = await api.submit("printf 'a\\r\\nb\\033[0m\\377 end'")
    await api.ended(run["run_id"])
    response = await api.raw("GET", f"runs/{run['run_id']}/logs/raw", query={"rank": "0"})
    assert response.body == b"a\r\nb\x1b[0m\xff end"
    assert response.headers["Content-Type"] == "application/octet-stream"
    assert response.headers["Content-Disposition"] == (f'attachment; filename="{run["run_id"]}.rank-0.log"')
    status, error = await api.request("GET", f"runs/{run['run_id']}/logs/raw", query={"rank": "9"})
    assert (status, error["code"]) == (404, "no_such_log")


@pytest.mark.parametrize(
    ("rest", "query"),
    [
        ("logs", {"ranks": "0,99"}),
        ("logs", {"node": "7"}),
        ("logs", {"attempt": "2"}),
        ("logs/search", {"ranks": "99", "grep": "x"}),
        ("logs/raw", {"rank": "99"}),
        ("logs/raw", {"node": "7"}),
    ],
)
async def test_what_a_run_has_not_is_not_found(api, ended_run, rest, query):
    status, error = await api.request("GET", f"runs/{ended_run['run_id']}/{rest}", query=query)
    assert (status, error["code"]) == (404, "no_such_log")
    assert error["hint"].startswith("it has ")


async def test_streams_tell_who_is_silent(api):
    run = await api.submit("echo here", resources={"nodes": 2}, launcher="none")
    await api.ended(run["run_id"])
    reader = Hyperpod()
    logs = reader.runs.records_folder(run["run_id"]) / "logs" / "attempt-1"
    (attempt,) = (await api.get(f"runs/{run['run_id']}/streams"))["attempts"]
    assert attempt["number"] == 1
    ranks = [stream for stream in attempt["streams"] if stream["rank"] is not None]
    assert [(one["rank"], one["size"], one["silent"]) for one in ranks] == [(0, 5, False), (1, 5, False)]
    for record in logs.glob("*.activity.json"):
        record.unlink()
    os.utime(logs / "node-1.rank-0.log", times=(time.time() - 600,) * 2)
    (attempt,) = (await api.get(f"runs/{run['run_id']}/streams"))["attempts"]
    assert [one["rank"] for one in attempt["streams"] if one["silent"]] == [1]
    await reader.close()


async def test_what_was_sent_can_be_looked_at(api, jp_root_dir):
    (jp_root_dir / "main.py").write_text("print('hello')\n")
    (jp_root_dir / "data.bin").write_bytes(b"\0\1")
    spec = {"source": {"kind": "script", "path": "main.py"}, "name": "look"}
    status, run = await api.request("POST", "runs", {"spec": spec})
    assert status == 201, run
    path = f"runs/{run['run_id']}"
    assert (await api.get(f"{path}/spec"))["name"] == "look"
    assert (await api.get(f"{path}/script"))["name"] == "local.json"
    files = {file["path"]: file["size"] for file in (await api.get(f"{path}/code"))["files"]}
    assert files["work/main.py"] == 15
    text = await api.get(f"{path}/code/work/main.py")
    assert text == {"path": "work/main.py", "text": "print('hello')\n"}
    for name, wanted in (
        ("work/data.bin", (422, "no_text")),
        ("work/gone.py", (404, "no_such_file")),
        ("../bundle.json", (404, "no_such_file")),
        ("bundle.json", (404, "no_such_file")),
        ("%2e%2e/bundle.json", (404, "no_such_file")),
    ):
        status, error = await api.request("GET", f"{path}/code/{name}")
        assert (status, error["code"]) == wanted, name
    await api.ended(run["run_id"])


async def test_arrays_have_children(api):
    run = await api.submit("echo child $HYPERPOD_ARRAY_INDEX", array="0-2")
    await api.ended(run["run_id"])
    children = (await api.get(f"runs/{run['run_id']}/children"))["runs"]
    assert [child["run_id"] for child in children] == [f"{run['run_id']}.{i}" for i in range(3)]
    page = await api.get(f"runs/{run['run_id']}/logs")
    assert {block["index"] for frame in page["frames"] for block in frame["blocks"]} == {0, 1, 2}
    child = await api.get(f"runs/{run['run_id']}.1")
    assert child["parent"] == run["run_id"]


async def test_why_a_run_waits(api):
    run = await api.submit("sleep 60")
    await api.until(run["run_id"], lambda run: run["state"] == "running")
    answer = await api.get(f"runs/{run['run_id']}/why")
    assert (answer["run_id"], answer["reason_code"]) == (run["run_id"], "running")


async def test_the_schema_marks_what_a_form_shows_first(api):
    schema = await api.get("schema")
    resources = schema["$defs"]["Resources"]["properties"]
    assert resources["nodes"]["x-basic"] is True
    assert "x-basic" not in resources["memory"]


async def test_one_who_goes_away_breaks_the_reading_off(api, process, monkeypatch):
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def slow(*_args, **_options):
        begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    hyperpod = await process.hyperpod()
    monkeypatch.setattr(hyperpod.logs, "page", slow)
    asking = asyncio.create_task(api.raw("GET", "runs/some-run/logs", timeout=0.5))
    async with asyncio.timeout(20):
        await begun.wait()
        await cancelled.wait()
    with pytest.raises(HTTPClientError):
        await asking


async def test_an_arrays_child_that_has_ended_is_not_silent(api):
    run = await api.submit("echo here", array="0-1")
    await api.ended(run["run_id"])
    reader = Hyperpod()
    logs = reader.runs.records_folder(f"{run['run_id']}.0") / "logs" / "attempt-1"
    for record in logs.glob("*.activity.json"):
        record.unlink()
    os.utime(logs / "node-0.rank-0.log", times=(time.time() - 600,) * 2)
    (attempt,) = (await api.get(f"runs/{run['run_id']}/streams"))["attempts"]
    ranks = [stream for stream in attempt["streams"] if stream["rank"] is not None]
    assert [(one["index"], one["silent"]) for one in ranks] == [(0, False), (1, False)]
    await reader.close()
