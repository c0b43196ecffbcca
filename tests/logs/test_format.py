from __future__ import annotations

import json

from hyperpod_jlab.logs.lines import json_line
from hyperpod_jlab.logs.service import LogRequest, LogService
from tests.logs.writing import RunFolder


async def test_text_and_json(run: RunFolder, logs: LogService) -> None:
    run.node_name(0, "ip-10-0-0-1")
    run.write(None, "setup\n", at=1_795_000_000.0)
    run.write(1, "hällo\n", at=1_795_000_000.5)
    run.write(1, "no time\n", attempt=2)
    lines = [line async for batch in logs.lines(LogRequest("run")) for line in batch]
    assert [str(line) for line in lines] == ["node0|setup", "1|hällo", "--- attempt 2 started ---", "1|no time"]
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


async def test_the_pieces_of_a_long_line_say_so(run: RunFolder, logs: LogService) -> None:
    text = "x" * 40_000
    run.write(0, f"before\n{text}\nafter\nopen")
    lines = [line async for batch in logs.lines(LogRequest("run")) for line in batch]
    objects = [json.loads(json_line(line)) for line in lines]
    pieces = objects[1:-2]
    assert "".join(piece["line"] for piece in pieces) == text
    assert len(pieces) == 3
    assert [piece.get("continued") for piece in pieces] == [None, True, True]
    assert [piece.get("partial") for piece in pieces] == [True, True, None]
    for whole in (objects[0], objects[-2]):
        assert not {"continued", "partial"} & whole.keys()
    assert (objects[-1]["line"], objects[-1]["partial"]) == ("open", True)
