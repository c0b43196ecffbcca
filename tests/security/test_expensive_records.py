"""Records that take long to read: of a user's own runs, and of others'. What is asked for ends, and other requests are answered meanwhile."""

from __future__ import annotations

import json
import os
import random
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from hyperpod_jlab.contributions import Route
from hyperpod_jlab.features.notebook.outputs import read_outputs
from hyperpod_jlab.server.routes import ROUTES
from hyperpod_jlab.storage.big_records import Deadline, read_lines
from tests.security.attacks import plant, put, runs_folders
from tests.security.conftest import Scene
from tests.security.fillings import FILLINGS, HUGE, LOG, hole
from tests.security.server import serving

ANSWERED_S = 2.0
"""Seconds in which a list of runs is there, whatever else was asked."""


@pytest.fixture
def template(scene: Scene) -> Path:
    """A notebook of bob's that has run."""
    cell: dict[str, Any] = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    cells = [{**cell, "id": f"c{number}", "source": f"print({number})"} for number in range(4)]
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}
    put(scene.bob.project / "n.ipynb", json.dumps(notebook))
    scene.bob.hpj("submit", "n.ipynb", "--no-project-files", "--wait", "--run-id", "template").ok()
    return scene.bob.bundle("template")


def plant_all(scene: Scene, template: Path, *ids: str) -> None:
    """Runs of bob's, each filled as its id says."""
    folders = runs_folders(scene.partition, scene.bob.uid)[1:]

    def work() -> list[Path]:
        return [place for run_id in ids for place in plant(template, run_id, folders, edit=FILLINGS[run_id])]

    assert len(scene.bob.do(work)) == len(ids)


def _has_a_body_of_its_own_size(route: Route) -> bool:
    return route.path.endswith(("/raw", "/download"))


ASKED = [
    route.path
    for route in ROUTES
    if route.verb == "get" and route.parameters == ("run_id",) and not _has_a_body_of_its_own_size(route)
]
QUERIES = {"runs/{run_id}/logs/search": "?grep=x", "runs/{run_id}/logs/histogram": "?buckets=20"}


@pytest.mark.timeout(600)
def test_each_request_about_anothers_run_ends_whatever_its_records_are(scene: Scene, template: Path) -> None:
    plant_all(scene, template, *FILLINGS)
    slow: list[tuple[str, float]] = []
    with serving(scene.alice) as server:
        for run_id in FILLINGS:
            for path in ASKED:
                asked = path.replace("{run_id}", run_id) + QUERIES.get(path, "")
                begin = time.monotonic()
                status, answer = server.ask("GET", asked, limit=60)
                seconds = time.monotonic() - begin
                assert status not in {0, 500}, (asked, seconds, answer)
                slow += [(asked, seconds)] if seconds > 15 else []
        for path in ("runs?all_users=true", "series?run=" + ",".join(FILLINGS)):
            assert server.ask("GET", path)[0] in {200, 404}, path
    assert slow == []


@pytest.mark.full
@pytest.mark.timeout(300)
@pytest.mark.parametrize("run_id", FILLINGS)
def test_each_command_about_anothers_run_ends_whatever_its_records_are(
    scene: Scene, template: Path, run_id: str
) -> None:
    plant_all(scene, template, run_id)
    alice = scene.alice
    for words in (
        ("runs", "--all-users"),
        ("show", run_id),
        ("why", run_id),
        ("logs", run_id, "--tail", "20"),
        ("logs", run_id, "--tail", "20", "--grep", "xy"),
        ("metrics", run_id),
        ("notebook", run_id, "-o", "-"),
    ):
        answer = alice.hpj(*words)
        assert not [fault for fault in answer.faults if "took" not in fault], answer.text[:2000]
        assert answer.seconds < 15 * answer.busy, (words, answer.seconds)


@pytest.mark.timeout(300)
def test_a_list_takes_no_longer_for_the_holes_of_others(scene: Scene, template: Path) -> None:
    """Finding 7."""
    alice, bob = scene.alice, scene.bob
    ids = [f"bobs-{number}" for number in range(20)]
    folders = runs_folders(scene.partition, bob.uid)[1:]

    def fill(bundle: Path) -> None:
        for number in range(20):
            hole(bundle / f"logs/attempt-1/node-{number}.metrics.jsonl", 512 << 20)

    def seconds() -> float:
        answer = alice.hpj("runs", "--all-users").ok()
        assert all(run_id in answer.out for run_id in ids)
        return answer.seconds

    assert bob.do(lambda: [plant(template, run_id, folders) for run_id in ids])
    seconds()  # the index is made
    before = min(seconds() for _ in range(2))
    bundles = list(folders[0].glob("*/bobs-*"))
    assert len(bundles) == len(ids)
    bob.do(lambda: list(map(fill, bundles)))
    assert min(seconds() for _ in range(2)) < 2 * before + ANSWERED_S


@pytest.mark.timeout(300)
def test_a_list_is_answered_while_clients_leave_expensive_requests(scene: Scene, template: Path) -> None:
    """Finding 6: the threads of all requests."""
    plant_all(scene, template, "quadratic")
    with serving(scene.alice) as server:
        assert server.ask("GET", "runs")[0] == 200
        for path in ("notebook?attempt=1", "series", "resources?attempt=1"):
            with ThreadPoolExecutor(7) as clients:
                left = clients.map(
                    lambda _, path=path: server.ask("GET", f"runs/quadratic/{path}", limit=0.7)[0], range(7)
                )
                assert set(left) <= {0, 200, 503}
            begin = time.monotonic()
            assert server.ask("GET", "runs", limit=20)[0] == 200
            assert time.monotonic() - begin < ANSWERED_S, path
        status, answer = server.ask("GET", "runs/quadratic/notebook?attempt=1", limit=60)
    assert status == 200
    shown = answer["document"]["metadata"]["hyperpod"]
    outputs = [len(cell["outputs"]) for cell in answer["document"]["cells"]]
    # The cell in which the run ended has an output more, which says so.
    assert shown.get("not_shown") or max(outputs) in {5000, 5001}


def test_updates_of_a_display_take_the_time_of_the_record() -> None:
    """Finding 6: in one cell, and in many."""

    def record(cells: int, displays: int, updates: int) -> list[bytes]:
        put_out = b'{"output":"display_data","at":0,"to":0,"data":{"text/plain":"a"},"display_id":"x"}'
        update = b'{"output":"update","at":0,"data":{"text/plain":"b"},"display_id":"x"}'
        return [
            line
            for cell in range(cells)
            for line in (b'{"cell":%d,"start":1,"at":0}' % cell, *[put_out] * displays, *[update] * updates)
        ]

    for cells, displays, updates in ((1, 5000, 5000), (10, 500, 500), (5000, 1, 1)):
        begin = time.process_time()
        found = read_outputs(record(cells, displays, updates), 0, lambda *_: "")
        assert time.process_time() - begin < 3.0
        shown = [output["data"] for cell in found.values() for output in cell.outputs]
        assert shown == [{"text/plain": "b"}] * cells * displays


def test_a_display_shows_what_was_last_said_of_it() -> None:
    def show(identity: str, text: str, kind: str = "display_data") -> bytes:
        event = {"output": kind, "at": 0, "to": 0, "data": {"text/plain": text}}
        return json.dumps({**event, "display_id": identity}).encode()

    def texts(*lines: bytes) -> list[list[str]]:
        found = read_outputs(lines, 0, lambda *_: "")
        return [[one["data"]["text/plain"] for one in cell.outputs] for cell in found.values()]

    first, second = (b'{"cell":%d,"start":1,"at":0}' % number for number in (1, 2))
    clear, clear_later = b'{"clear":false,"at":0}', b'{"clear":true,"at":0}'
    update = "update"
    # In all cells; one that comes after an update shows what it came with, until the next.
    lines = (first, show("a", "1"), second, show("a", "2", update), show("a", "3"), show("b", "4"))
    assert texts(*lines) == [["2"], ["3", "4"]]
    assert texts(*lines, show("a", "5", update)) == [["5"], ["5", "4"]]
    # What was cleared is gone, and its id with it.
    assert texts(first, show("a", "1"), clear, show("a", "2", update), show("b", "3")) == [["3"]]
    assert texts(first, show("a", "1"), clear_later, show("a", "2", update)) == [["2"]]
    assert texts(first, show("a", "1"), clear_later, show("b", "2"), show("a", "3", update)) == [["2"]]
    assert texts(first, show("a", "1"), show("a", "2", update), first, show("a", "3")) == [["3"]]


def test_lines_are_read_around_holes_and_long_lines(tmp_path: Path) -> None:
    path = tmp_path / "record"
    chance = random.Random(7)
    lines = [b"x" * chance.choice((0, 1, 10, 5000)) for _ in range(3000)]
    path.write_bytes(b"".join(line + b"\n" for line in lines) + b"unfinished")
    descriptor = os.open(path, os.O_RDONLY)
    try:

        def read(begin: int = 0, longest: int = 1 << 20) -> list[tuple[bytes, int]]:
            size = os.fstat(descriptor).st_size
            return list(read_lines(descriptor, begin, size, Deadline(60), longest=longest))

        assert [line for line, _ in read()] == lines
        # From each offset, reading continues with the next line.
        for number in (0, 1, 777, 2998):
            assert [line for line, _ in read(read()[number][1])] == lines[number + 1 :]
        short = [line for line in lines if 0 < len(line) <= 100]
        assert [line for line, _ in read(longest=100) if line] == short
        os.truncate(path, HUGE)
        with path.open("r+b") as file:
            file.seek(HUGE // 2)
            file.write(b"tail\nlast\n")
        found = [line for line, _ in read() if line]
        assert found == [*filter(None, lines), b"last"]
        assert list(read_lines(descriptor, 0, HUGE, Deadline(0), longest=10)) == []
    finally:
        os.close(descriptor)


def test_the_log_of_a_hole_is_shown_in_parts(scene: Scene, template: Path) -> None:
    """A page has a number of lines, and none of them is as long as the file."""
    folders = runs_folders(scene.partition, scene.bob.uid)[1:]
    edit = lambda bundle: hole(bundle / LOG)  # noqa: E731
    assert scene.bob.do(lambda: plant(template, "hole", folders, edit=edit))
    with serving(scene.alice) as server:
        for query in ("", "?direction=forward", "?grep=x", "?since=1"):
            status, page = server.ask("GET", f"runs/hole/logs{query}", limit=60)
            assert status == 200, page
            assert len(json.dumps(page)) < 64 << 20
