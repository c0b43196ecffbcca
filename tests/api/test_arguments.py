"""Arguments that make no sense are refused in words, and a run says what it is when it was waited for too long."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hyperpod_jlab
from hyperpod_jlab.cli.main import main
from hyperpod_jlab.core.errors import InvalidInputError, NotFoundError

_CALLS: dict[str, tuple[Callable[[Any], object], str, str]] = {
    "rank of letters": (lambda run: run.logs(rank="x"), "rank must be .*, not a str", "rank"),
    "ranks of letters": (lambda run: run.logs(rank=[0, "x"]), "rank must be .*, not a str", "rank"),
    "negative rank": (lambda run: run.logs(rank=-1), "rank must be at least \\d, not -1", "rank"),
    "rank of a fraction": (lambda run: run.logs(rank=0.5), "rank must be .*, not a float", "rank"),
    "node of letters": (lambda run: run.logs(node="x"), "node must be .*, not a str", "node"),
    "attempt 0": (lambda run: run.logs(attempt=0), "attempt must be at least \\d, not 0", "attempt"),
    "tail of letters": (lambda run: run.logs(tail="x"), "tail must be .*, not a str", "tail"),
    "number as a pattern": (lambda run: run.logs(grep=5), "grep must be .*, not an int", "grep"),
    "number as a cursor": (lambda run: run.logs(cursor=5), "cursor must be .*, not an int", "cursor"),
    "timeout of letters": (lambda run: run.wait("x"), "timeout must be .*, not a str", "timeout"),
    "limit of words": (lambda run: run.change(time_limit="soon"), "is not a duration", "time_limit"),
    "limit of a fraction": (lambda run: run.change(time_limit=0.5), "not a duration", "time_limit"),
    "queue of a number": (lambda run: run.change(queue=5), "queue must be .*, not an int", "queue"),
    "nothing to change": (lambda run: run.change(), "nothing to change", "time_limit"),
    "get of nothing": (lambda _: hyperpod_jlab.get(None), "run_id must be .*, not None", "run_id"),  # type: ignore[arg-type]
    "get of a number": (lambda _: hyperpod_jlab.get(5), "run_id must be .*, not an int", "run_id"),  # type: ignore[arg-type]
    "no runs": (lambda _: hyperpod_jlab.runs(limit=0), "limit must be at least \\d, not 0", "limit"),
    "runs of letters": (
        lambda _: hyperpod_jlab.runs(limit="x"),  # type: ignore[arg-type]
        "limit must be .*, not a str",
        "limit",
    ),
    "state of a number": (
        lambda _: hyperpod_jlab.runs(state=5),  # type: ignore[arg-type]
        "state must be .*, not an int",
        "state",
    ),
}


@pytest.mark.parametrize(("call", "words", "field"), _CALLS.values(), ids=list(_CALLS))
def test_a_bad_argument_is_named(call: Callable[[Any], object], words: str, field: str) -> None:
    run = hyperpod_jlab.api.Run(hyperpod_jlab.api._hyperpod(), "any")
    with pytest.raises(InvalidInputError, match=words) as caught:
        call(run)
    assert caught.value.detail["field"] == field


def test_an_int_cannot_be_run() -> None:
    with pytest.raises(InvalidInputError, match=r"^an int cannot be run"):
        hyperpod_jlab.submit(5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rank": 9}, ["--rank", "9"]),
        ({"rank": [0, 9]}, ["--rank", "0,9"]),
        ({"attempt": 5}, ["--attempt", "5"]),
        ({"attempt": 5, "follow": True}, ["--attempt", "5", "-f"]),
    ],
)
def test_a_log_that_is_not_there_is_refused_as_on_the_command_line(
    options: dict[str, Any], words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    run = hyperpod_jlab.submit(command="true", nodes=2, run_id="two").wait(60)
    with pytest.raises(NotFoundError) as caught:
        list(run.logs(**options))

    async def first() -> object:
        return await anext(aiter(run.logs(**options)))

    with pytest.raises(NotFoundError):
        asyncio.run(first())
    assert main(["logs", "two", *words]) == 3
    error = caught.value
    assert capsys.readouterr().err == f"error: {error.message}\nhint: {error.hint}\n"


def test_a_node_that_is_not_there_is_refused() -> None:
    run = hyperpod_jlab.submit(command="true").wait(60)
    with pytest.raises(NotFoundError, match="has no node 3"):
        list(run.logs(node=3))


def test_waiting_too_long_says_for_what() -> None:
    run = hyperpod_jlab.submit(command="sleep 300", stop_grace=1, run_id="long")
    with pytest.raises(TimeoutError, match=r"^long is (waiting|running).* after 0.5 s and continues"):
        run.wait(0.5)
    with pytest.raises(TimeoutError, match=re.escape("after 0.25 s")):
        run.result(timeout=0.25)
    run.cancel()
    assert run.wait(float("inf")).state == "cancelled"


def test_a_current_folder_that_is_gone_is_told() -> None:
    gone = Path("gone").absolute()
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    with pytest.raises(InvalidInputError, match="the current folder cannot be used"):
        hyperpod_jlab.submit(command="true")
