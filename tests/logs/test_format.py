from __future__ import annotations

import json

from hyperpod_jlab.logs.format import json_line
from hyperpod_jlab.services.logs import LogRequest, LogService
from tests.logs.writing import RunFolder


async def test_text_and_json(run: RunFolder, logs: LogService) -> None:
    run.node_name(0, "ip-10-0-0-1")
    run.write(None, "setup\n", at=1_795_000_000.0)
    run.write(1, "hällo\n", at=1_795_000_000.5)
    run.write(1, "no time\n", attempt=2)
    lines = [line async for batch in logs.lines(LogRequest("run")) for line in batch]
    assert [str(line) for line in lines] == [
        "node0|setup",
        "1|hällo",
        "--- attempt 2 started ---",
        "1|no time",
    ]
    objects = [json.loads(json_line(line)) for line in lines]
    assert objects[1] == {
        "attempt": 1,
        "node": "ip-10-0-0-1",
        "rank": 1,
        "time": "2026-11-18T11:06:40.500Z",
        "line": "hällo",
        "cursor": lines[1].cursor,
    }
    assert [each.get("mark") for each in objects] == [None, None, "attempt", None]
    assert (objects[0]["rank"], objects[3]["time"], objects[3]["node"]) == (None, None, "node-0")
