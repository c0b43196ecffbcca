"""The log socket on a real local cluster."""

import asyncio
import json

import pytest
from tornado.httpclient import HTTPClientError

from tests.server.conftest import lines_of

COUNT = "seq -f 'line %.0f' {}"
LONG = 1_000_000
"""Lines that make more frames than are sent ahead."""


async def test_a_runs_log_is_followed_to_its_end(api, log_page):
    run = await api.submit("echo one; sleep 0.5; echo two")
    page = await log_page()
    await page.send(type="subscribe", id=7, run_id=run["run_id"])
    assert await page.next() == {"type": "subscribed", "id": 7}
    frames = await page.read(7)
    assert lines_of(frames) == ["one", "two"]
    assert [frame["seq"] for frame in frames] == list(range(1, len(frames) + 1))
    block = next(block for frame in frames for block in frame["blocks"] if block["lines"])
    assert set(block) == {"attempt", "node", "node_rank", "rank", "index", "mark", "lines", "times", "flags"}
    assert (block["attempt"], block["rank"], block["index"]) == (1, 0, None)
    assert isinstance(block["times"], int | float)


async def test_after_a_break_no_line_is_lost_or_repeated(api, log_page):
    run = await api.submit(COUNT.format(300) + "; sleep 1; echo last")
    lines = []
    cursor = None
    for _ in range(2):
        page = await log_page()
        await page.send(type="subscribe", id=1, run_id=run["run_id"], cursor=cursor)
        (frame,) = await page.read(frames=1)
        lines += lines_of([frame])
        cursor = frame["after"]
        page.socket.close()
    page = await log_page()
    await page.send(type="subscribe", id=1, run_id=run["run_id"], cursor=cursor)
    lines += lines_of(await page.read())
    assert lines == [f"line {number}" for number in range(1, 301)] + ["last"]


async def test_a_server_that_stops_closes_its_sockets(api, log_page, process):
    run = await api.submit("sleep 60")
    page = await log_page()
    await page.send(type="subscribe", id=1, run_id=run["run_id"])
    await page.next()
    await process.close()
    while await page.next() is not None:
        pass
    assert page.socket.close_code == 1001


async def test_twenty_subscribers_are_one_reader(api, log_page, process):
    run = await api.submit("echo here; sleep 60")
    pages = [await log_page() for _ in range(20)]
    for page in pages:
        await page.send(type="subscribe", id=1, run_id=run["run_id"], ranks=[0])
    for page in pages:
        assert lines_of(await page.read(frames=1)) == ["here"]
    (feed,) = (await process.hyperpod()).logs.hub._feeds.values()
    assert len(feed.readers) == 1


async def test_a_page_that_takes_nothing_in_is_sent_four_frames(api, log_page):
    run = await api.submit(COUNT.format(LONG))
    await api.ended(run["run_id"])
    page = await log_page()
    await page.send(type="subscribe", id=1, run_id=run["run_id"])
    frames = await page.read(frames=4, acknowledge=False)
    with pytest.raises(TimeoutError):
        await page.next(timeout=1)
    assert [frame["seq"] for frame in frames] == [1, 2, 3, 4]


async def test_lines_are_chosen(api, log_page):
    run = await api.submit(COUNT.format(100), resources={"processes_per_node": 1})
    await api.ended(run["run_id"])
    page = await log_page()
    await page.send(type="subscribe", id=1, run_id=run["run_id"], grep="LINE 9.$", ignore_case=True)
    assert lines_of(await page.read(1)) == [f"line {number}" for number in range(90, 100)]
    await page.send(type="subscribe", id=2, run_id=run["run_id"], tail=3)
    assert lines_of(await page.read(2)) == ["line 98", "line 99", "line 100"]
    await page.send(type="subscribe", id=3, run_id=run["run_id"], ranks=[0], tail=1)
    assert lines_of(await page.read(3)) == ["line 100"]


async def test_an_unsubscribed_log_is_silent(api, log_page):
    run = await api.submit("for i in $(seq 100); do echo $i; sleep 0.05; done")
    page = await log_page()
    await page.send(type="subscribe", id=1, run_id=run["run_id"])
    await page.read(frames=1)
    await page.send(type="unsubscribe", id=1)
    await page.send(type="subscribe", id=2, run_id="no-such-run")
    while (message := await page.next())["id"] == 1:
        pass
    assert (message["type"], message["error"]["code"]) == ("error", "no_such_run")
    with pytest.raises(TimeoutError):
        await page.next(timeout=0.5)


@pytest.mark.parametrize(
    ("message", "field", "number"),
    [
        ("{", "", None),
        ("[]", "", None),
        ("\x00", "", None),
        ('{"type": "dance"}', "type", None),
        ('{"type": ["ack"]}', "type", None),
        ('{"type": "ack", "id": 1}', "seq", None),
        ('{"type": "subscribe", "id": -1, "run_id": "x"}', "id", None),
        ('{"type": "subscribe", "id": 3}', "run_id", 3),
        ('{"type": "subscribe", "id": 3, "run_id": "x", "tail": -1}', "tail", 3),
        ('{"type": "subscribe", "id": 3, "run_id": "x", "follow": 1}', "follow", 3),
        ('{"type": "subscribe", "id": 3, "run_id": "X!"}', "run_id", 3),
        ('{"type": "subscribe", "id": 3, "run_id": "x", "since": "soon"}', "since", 3),
    ],
)
async def test_a_bad_message_is_told_and_the_socket_stays(log_page, message, field, number):
    page = await log_page()
    await page.socket.write_message(message)
    told = await page.next()
    assert (told["type"], told.get("id")) == ("error", number)
    assert told["error"]["detail"]["field"] == field
    await page.send(type="unsubscribe", id=1)
    await page.send(type="subscribe", id=1, run_id="no-such-run")
    assert (await page.next())["error"]["code"] == "no_such_run"


@pytest.mark.parametrize("choice", [{"grep": "("}, {"cursor": "nonsense"}])
async def test_a_wrong_choice_ends_the_subscription_with_its_field(api, log_page, choice):
    run = await api.submit()
    page = await log_page()
    await page.send(type="subscribe", id=1, run_id=run["run_id"], **choice)
    while (told := await page.next())["type"] != "error":
        assert told["type"] == "subscribed"
    assert [told["error"]["detail"]["field"]] == list(choice)


@pytest.mark.parametrize("choice", [{"ranks": [99]}, {"node": 7}])
async def test_what_a_run_has_not_cannot_be_followed(api, log_page, choice):
    run = await api.submit()
    page = await log_page()
    await page.send(type="subscribe", id=1, run_id=run["run_id"], **choice)
    told = await page.next()
    assert (told["type"], told["error"]["code"]) == ("error", "no_such_log")


async def test_each_subscribe_asks_the_authorizer(api, log_page, authorizer):
    run = await api.submit()
    page = await log_page()
    authorizer.answer = False
    authorizer.asked = []
    await page.send(type="subscribe", id=1, run_id=run["run_id"])
    told = await page.next()
    assert (told["id"], told["error"]["code"]) == (1, "denied")
    assert authorizer.asked == [("read", "hyperpod")]


async def test_a_denied_user_gets_no_socket(log_page, authorizer):
    authorizer.answer = False
    with pytest.raises(HTTPClientError) as caught:
        await log_page()
    assert caught.value.code == 403
    assert json.loads(caught.value.response.body)["code"] == "denied"


async def test_a_stranger_gets_no_socket(log_page):
    with pytest.raises(HTTPClientError) as caught:
        await log_page(headers={"Authorization": ""})
    assert caught.value.code == 403


async def test_another_origin_gets_no_socket(api, log_page):
    """A token is proof enough for Jupyter; the browser's cookie, which other pages' requests carry too, is not."""
    headers = await api.browser()
    page = await log_page(headers=headers)
    await page.send(type="unsubscribe", id=1)
    with pytest.raises(HTTPClientError) as caught:
        await log_page(headers={**headers, "Origin": "http://evil.example"})
    assert caught.value.code == 403
    assert json.loads(caught.value.response.body)["code"] == "denied"


async def test_the_socket_is_no_page(api):
    status, error = await api.request("GET", "logs")
    assert (status, error["code"]) == (426, "upgrade_required")


async def test_a_page_that_has_gone_is_not_served(api, log_page, process):
    run = await api.submit("sleep 60")
    page = await log_page()
    await page.send(type="subscribe", id=1, run_id=run["run_id"])
    await page.next()
    hub = (await process.hyperpod()).logs.hub
    page.socket.close()
    async with asyncio.timeout(10):
        while hub._feeds or process.sockets:  # noqa: ASYNC110 - nothing tells it
            await asyncio.sleep(0.02)


async def test_the_server_pings(log_page, jp_serverapp):
    jp_serverapp.web_app.settings["websocket_ping_interval"] = 0.1
    page = await log_page()
    pinged = asyncio.Event()
    page.socket.on_ping = lambda _: pinged.set()
    reading = asyncio.create_task(page.next())
    async with asyncio.timeout(10):
        await pinged.wait()
    reading.cancel()


async def test_many_logs_share_a_socket_up_to_a_limit(api, log_page, monkeypatch):
    monkeypatch.setattr("hyperpod_jlab.server.log_socket.MAX_SUBSCRIPTIONS", 2)
    run = await api.submit("sleep 60")
    page = await log_page()
    for number in range(3):
        await page.send(type="subscribe", id=number, run_id=run["run_id"])
    told = [await page.next() for _ in range(3)]
    assert {(message["id"], message["type"]) for message in told} == {
        (0, "subscribed"),
        (1, "subscribed"),
        (2, "error"),
    }


async def test_a_late_page_reads_on_where_it_stopped(api, log_page):
    run = await api.submit(COUNT.format(LONG))
    await api.ended(run["run_id"])
    page = await log_page()
    await page.send(type="subscribe", id=1, run_id=run["run_id"])
    frames = await page.read(frames=4, acknowledge=False)
    await asyncio.sleep(0.5)
    await page.send(type="ack", id=1, seq=4)
    lines = lines_of(frames + await page.read())
    assert len(lines) == LONG
    assert (lines[0], lines[-1]) == ("line 1", f"line {LONG}")


async def test_a_restart_in_mid_stream_loses_no_line(api, log_page, process):
    run = await api.submit("for i in $(seq 40); do echo line $i; sleep 0.05; done")
    page = await log_page()
    await page.send(type="subscribe", id=1, run_id=run["run_id"])
    frames = await page.read(frames=3)
    await process.close()
    while (message := await page.next()) is not None:
        if message["type"] == "frame":
            frames.append(message)
    again = await log_page()
    await again.send(type="subscribe", id=1, run_id=run["run_id"], cursor=frames[-1]["after"])
    lines = lines_of(frames + await again.read())
    assert lines == [f"line {number}" for number in range(1, 41)]


@pytest.mark.parametrize(
    ("ranks", "code"),
    [
        (["a"] * 300_000, "invalid_message"),
        ([-1] * 300_000, "invalid_message"),
        ([0] * 300_000, "invalid_message"),
        (["a" * 5_000_000], "body_too_large"),
    ],
)
async def test_a_huge_message_is_refused_and_the_socket_goes_on(api, log_page, ranks, code):
    run = await api.submit("echo one")
    page = await log_page()
    await page.send(type="subscribe", id=1, run_id=run["run_id"], ranks=ranks)
    answer = await page.next()
    assert (answer["type"], answer["error"]["code"]) == ("error", code)
    assert len(json.dumps(answer)) < 1_000
    await page.send(type="subscribe", id=2, run_id=run["run_id"])
    assert lines_of(await page.read(2)) == ["one"]
