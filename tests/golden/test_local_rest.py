"""The REST API on the embedded cluster: its description, and its answers."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.golden.asking import MACHINE, OF_A_RUN
from tests.golden.contract import contract
from tests.golden.frozen import Golden
from tests.server.conftest import *  # noqa: F403 - fixtures

NOTEBOOK = {
    "nbformat": 4,
    "nbformat_minor": 5,
    "metadata": {},
    "cells": [
        {"cell_type": "code", "id": name, "metadata": {}, "source": text, "outputs": [], "execution_count": None}
        for name, text in (("a", "x = 1"), ("b", "print(2)"))
    ],
}
LINES = r"printf 'line 1\nline 2\nline 3\n'"
"""In one write: they have one time."""
OF_THIS_MACHINE = (
    *("cpus", "memory", "accelerators", "accelerators_free", "gpus", "free"),
    *("files_free", "index", "evidence", "parents", "after", "before", "next", "times", "size"),
    *("launcher_sha256", "mark", "traceback", "time", "scanned"),
)

OF_A_CHECK = ("level", "evidence", "fix", "who")


@pytest.fixture(autouse=True)
def plain(no_aws: pytest.MonkeyPatch, tmp_path) -> None:
    """No AWS, and one disk."""
    mounts = tmp_path / "mountinfo"
    mounts.write_text("22 1 259:1 / / rw - ext4 /dev/root rw\n")
    no_aws.setenv("HYPERPOD_MOUNT_TABLE", str(mounts))


def check(golden: Golden, name: str, document: Any, *kept: str, varying: tuple[str, ...] = ()) -> None:
    keys = {*OF_A_RUN, *OF_THIS_MACHINE, *varying} - set(kept)
    golden.check(f"local/rest-{name}", document, varying=keys, also=MACHINE)


async def asked(api, *lines: str) -> dict[str, Any]:
    """What each of these requests is answered: a verb, a path with its query, and a body."""
    found = {}
    for line in lines:
        verb, _, rest = line.partition(" ")
        path, _, body = rest.partition(" ")
        path, _, words = path.partition("?")
        query = dict(word.split("=", 1) for word in words.split("&") if word)
        status, answer = await api.request(verb, path, body or None, query=query)
        found[line] = {"status": status, "answer": answer}
    return found


async def sent(api, run_id: str, source: dict[str, Any] | str, **more: Any) -> None:
    """Send a run, and wait for its end."""
    if isinstance(source, str):
        source = {"kind": "command", "command": source}
    body: dict[str, Any] = {"run_id": run_id, "spec": {"source": source}}
    for name, value in more.items():
        (body if name in {"base", "notebook"} else body["spec"])[name] = value
    status, answer = await api.request("POST", "runs", body)
    assert status == 201, answer
    await api.ended(run_id)


async def test_what_describes_the_api(golden: Golden, api) -> None:
    golden.check("local/rest-schema", await api.get("schema"), static=True)
    golden.check("rest-contract", contract(await api.get("openapi.json")), static=True)


async def test_a_fresh_home(golden: Golden, api) -> None:
    lines = (
        *("clusters", "clusters/local/nodes", "clusters/local/queues", "clusters/local/jobs"),
        *("clusters/local/overview", "clusters/local/choices", "clusters/local/nodes/actions", "runs", "runs?limit=0"),
        *("clusters/nobody/nodes", "lifecycle/log", "nowhere"),
        *("runs/nobody", "runs/nobody/logs", "runs/nobody/why", "admin/work", "admin/steps"),
        *("runs?state=sleeping", "runs?cursor=x", "runs?sort=name", "doctor", "logs"),
    )
    check(golden, "fresh", await asked(api, *(f"GET {line}" for line in lines)))


async def test_what_needs_no_aws_to_answer(golden: Golden, api) -> None:
    """Without AWS these say so, or that there is nothing."""
    lines = (
        *("version", "lifecycle", "clusters", "clusters/ml", "clusters/ml/nodes"),
        *("admin/mode", "admin/choices", "clusters/ml/events"),
    )
    found = await asked(api, *(f"GET {line}" for line in lines), "POST admin/plan {}")
    check(golden, "without-aws", found, varying=("versions", "python"))


async def test_an_examination(golden: Golden, api) -> None:
    await asked(api, "POST doctor {}")
    async with asyncio.timeout(60):
        while (answer := await api.get("doctor"))["state"] == "running":  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    kept = [{**one, **dict.fromkeys(OF_A_CHECK, "<of this machine>")} for one in answer["checks"]]
    stages = [one["stage"] for one in answer["stages"]]
    check(golden, "doctor", {**answer, "checks": kept, "stages": stages}, varying=("version",))


async def test_runs(golden: Golden, api, jp_root_dir) -> None:
    (jp_root_dir / "work").mkdir()
    cells = {"kind": "notebook", "path": "n.ipynb", "cell_ids": ["b"]}
    await sent(api, "plain", LINES, name="plain")
    await sent(api, "failed", "echo no; exit 3")
    await sent(api, "array", "exit $HYPERPOD_ARRAY_INDEX", array="0-1%1")
    await sent(api, "cells", cells, base="work", notebook=NOTEBOOK)
    of_one = ("", "/spec", "/code", "/script", "/why", "/usage", "/access", "/streams", "/cells")
    lines = [f"GET runs/{name}{rest}" for name in ("plain", "cells") for rest in of_one]
    lines += [f"GET runs/array{rest}" for rest in ("", "/children", "/usage")]
    lines += ["GET runs/failed", "GET runs/array.1", "GET cells?notebook=work/n.ipynb"]
    lines += ["GET runs/plain/code/nowhere", "GET runs/cells/code/cells.json"]
    check(golden, "run", await asked(api, *lines), "after")
    lists = ("GET runs", "GET runs?limit=1", "GET runs?state=failed", "GET runs?cluster=other")
    check(golden, "runs", await asked(api, *lists))
    raw = await api.raw("GET", "runs/plain/logs/raw", query={"rank": "0"})
    golden.check("local/rest-raw-log", raw.body.decode())
    queries = ("", "?limit=1", "?direction=forward&limit=2", "?grep=2", "/search?grep=line&limit=2")
    check(golden, "logs", await asked(api, *(f"GET runs/plain/logs{query}" for query in queries)))


async def test_the_log_socket(golden: Golden, api, log_page) -> None:
    await sent(api, "lines", LINES)
    page = await log_page()
    await page.send(type="subscribe", id=7, run_id="lines")
    told = [await page.next()]
    while told[-1]["type"] != "end":
        told.append(await page.next())
        if told[-1]["type"] == "frame":
            await page.send(type="ack", id=7, seq=told[-1]["seq"])
    await page.send(type="subscribe", id=8, run_id="nobody")
    told.append(await page.next())
    check(golden, "log-socket", told)


async def test_sending_and_actions(golden: Golden, api) -> None:
    spec = {"source": {"kind": "command", "command": "sleep 60"}, "stop_grace": 1}
    preview = json.dumps({"run_id": "dry", "spec": spec})
    check(golden, "preview", await asked(api, f"POST runs/preview {preview}"))
    for name, after in (("first", []), ("second", ["first"])):
        body = {"run_id": name, "spec": {**spec, "after": after}}
        assert (await api.request("POST", "runs", body))[0] == 201
    await api.until("first", lambda run: run["state"] == "running")
    await api.until("second", lambda run: run["reason_code"] == "dependency")
    lines = (
        "GET runs/second/why",
        "GET clusters/local/jobs",
        "POST runs/first/change {}",
        'POST runs/first/change {"time_limit": "2h"}',
        "POST runs/first/release {}",
        "POST runs/first/hold {}",
        "POST runs/nobody/hold {}",
        'POST clusters/local/jobs/actions {"action": "hold", "jobs": ["nowhere"]}',
        "POST runs {}",
        "POST runs no-json",
        'POST runs {"spec": {"source": {"kind": "command", "command": "x", "more": 1}}}',
    )
    found = await asked(api, *lines)
    for name in ("second", "first"):
        await asked(api, f"POST runs/{name}/cancel {{}}")
        await api.ended(name)
    check(golden, "actions", found)
    check(golden, "cancelled", await asked(api, "POST runs/first/cancel {}", "GET runs/second"))


async def test_events(golden: Golden, api, jp_serverapp) -> None:
    told: list[dict[str, Any]] = []

    async def listen(logger, schema_id, data) -> None:
        told.append({name: one for name, one in data.items() if not name.startswith("__")})

    schema = "https://hyperpod-jlab.dev/events/run/v1"
    jp_serverapp.event_logger.add_listener(schema_id=schema, listener=listen)
    await sent(api, "heard", "exit 3")
    async with asyncio.timeout(30):
        while not told or told[-1]["state"] != "failed":  # noqa: ASYNC110 - nothing tells it
            await asyncio.sleep(0.05)
    # Which states on the way are seen is a matter of time.
    check(golden, "event", told[-1])


async def test_storage(golden: Golden, api) -> None:
    await sent(api, "one", "true")
    lines = (
        "GET storage?aws=false",
        "GET storage/paths?path=nowhere",
        'POST storage/link {"name": "linked"}',
        'POST storage/link {"name": "a/b"}',
        'POST storage/files/states {"paths": ["linked"]}',
        "POST storage/files/actions {}",
    )
    check(golden, "storage", await asked(api, *lines), varying=("total",))
