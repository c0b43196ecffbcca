"""Runs with many attempts and logs with huge lines: the work for a page, and its size, are limited."""

from __future__ import annotations

import pytest

from hyperpod_jlab.logs.follow import Hub
from hyperpod_jlab.logs.service import Direction, LogRequest, LogService
from tests.logs.writing import RunFolder

_PAGE_BYTES = 6 << 20
"""The limit of a page, and the batch that passes it."""


async def test_many_attempts_are_asked_for_once(run: RunFolder) -> None:
    asked = []

    async def reasons(run_id: str) -> dict[int, str | None]:
        asked.append(run_id)
        return {number: f"reason {number}" for number in range(1, 40)}

    for attempt in range(1, 41):
        run.write(0, "x\n", at=attempt, attempt=attempt)
    logs = LogService(run, Hub(notifications=False), reasons)
    lines = [line async for batch in logs.lines(LogRequest("run")) for line in batch]
    marks = [line.line for line in lines if line.mark == "attempt"]
    assert marks == [f"attempt {number + 1} started: reason {number}" for number in range(1, 40)]
    assert asked == ["run"]


async def test_attempts_whose_records_cannot_be_read_are_not_asked_for_each_time(run: RunFolder) -> None:
    asked = []

    async def reasons(run_id: str) -> dict[int, str | None]:
        asked.append(run_id)
        return {}

    for attempt in range(1, 201):
        run.write(0, "x\n", at=attempt, attempt=attempt)
    logs = LogService(run, Hub(notifications=False), reasons)
    async for _ in logs.lines(LogRequest("run")):
        pass
    assert 0 < len(asked) < 20  # at most one a second


@pytest.mark.parametrize("direction", ["forward", "backward"])
async def test_a_page_of_huge_lines_is_short_and_leads_on(
    run: RunFolder, logs: LogService, direction: Direction
) -> None:
    line = "x" * 16_000
    run.write(0, f"{line}\n" * 1000, at=1)
    cursor, count, pages = None, 0, 0
    while True:
        request = LogRequest("run", cursor=cursor)
        page = await logs.page(request, direction, 2000)
        texts = [one.line for one in page.lines]
        assert sum(map(len, texts)) < _PAGE_BYTES
        assert set(texts) == {line}
        count += len(texts)
        pages += 1
        if page.at_end if direction == "forward" else page.at_start:
            break
        cursor = page.after if direction == "forward" else page.before
    assert count == 1000
    assert pages > 2
