"""Runs of others in lists, and sent again: told as theirs, believed in nothing, and nothing of theirs is started."""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.security.attacks import as_not_begun, place_of, plant, program, put, rewrite, runs_folders
from tests.security.conftest import Scene
from tests.security.people import LIMIT
from tests.security.server import serving

POSING = "29990101-000000-posing"
"""An id that looks as if it were the newest."""


@pytest.fixture
def template(scene: Scene) -> Path:
    """A run of bob's that has ended."""
    put(scene.bob.project / "train.py", "print('trained')\n")
    scene.bob.hpj("submit", "train.py", "--no-project-files", "--wait", "--run-id", "template").ok()
    return scene.bob.bundle("template")


@pytest.fixture
def posing(scene: Scene, template: Path) -> Path:
    """A bundle that says it was alice's, and that names a program of bob's as its interpreter."""
    bob = scene.bob
    text = program(scene.canaries, "interpreter")

    def edit(place: Path) -> None:
        python = place / "python3"
        put(python, text)
        python.chmod(0o755)
        spec = json.loads((place / "spec.json").read_text())
        spec["environment"] = {**spec.get("environment", {}), "python": str(python)}
        put(place / "spec.json", json.dumps(spec))
        rewrite(place / "launch.json", python=str(python), run_id=POSING)

    head = {"user": "alice", "created_at": time.time() + 3600}
    folders = runs_folders(scene.partition, bob.uid)
    planted = bob.do(lambda: plant(template, POSING, folders, edit=edit, head=head))
    assert planted, "bob could lay his bundle nowhere"
    return planted[0]


def test_a_run_is_its_folders_owners_whatever_its_records_say(scene: Scene, posing: Path) -> None:
    """Finding 4."""
    alice = scene.alice
    alice.hpj("submit", "--no-project-files", "--wait", "--run-id", "mine", "-c", "true").ok()
    assert list(alice.runs()) == ["mine"]
    assert alice.hpj("show", "last", "--json").ok().json["run_id"] == "mine"
    everybodys = alice.runs("--all-users")
    assert everybodys["mine"]["user"] == "alice"
    others = {run_id: run["user"] for run_id, run in everybodys.items() if run_id != "mine"}
    assert set(others.values()) <= {"bob"}
    for action in ("cancel", "hold", "requeue"):
        refused = alice.hpj(action, POSING, "--json").clean()
        assert refused.code != 0


@pytest.mark.parametrize("run", [POSING, "last"])
@pytest.mark.parametrize("how", [("--dry-run",), ("--json",)])
def test_sending_anothers_run_again_does_not_start_its_interpreter(
    scene: Scene, posing: Path, run: str, how: tuple[str, ...]
) -> None:
    """Finding 4."""
    for words in (("show", run), ("logs", run), ("clone", run, *how)):
        scene.alice.hpj(*words).clean()
    assert scene.betrayed == []


def test_the_page_that_offers_to_send_it_again_does_not_start_it(scene: Scene, posing: Path) -> None:
    """Finding 4."""
    with serving(scene.alice) as server:
        spec: dict[str, Any] = {"source": {"kind": "script", "path": "train.py"}}
        spec["environment"] = {"python": str(posing / "python3")}
        for asked in ({"clone_of": POSING}, {"clone_of": POSING, "spec": spec}):
            status, answer = server.ask("POST", "runs/preview", asked)
            assert status in {200, 400, 403, 404, 409, 422}, answer
        for path in ("", "/code", "/files", "/records", "/script", "/access"):
            status, answer = server.ask("GET", f"runs/{POSING}{path}")
            assert 200 <= status < 500, (path, answer)
        status, listed = server.ask("GET", "runs?limit=20")
        assert status == 200
    assert scene.betrayed == []
    assert all(run["user"] == "bob" for run in listed["runs"] if run["run_id"] == POSING)


@pytest.mark.parametrize("array", ["0-99999", "0-99999:2%1"])
def test_the_number_of_children_that_a_run_claims_costs_nothing(scene: Scene, template: Path, array: str) -> None:
    """Finding 9."""
    alice, bob = scene.alice, scene.bob
    alice.hpj("submit", "--no-project-files", "--wait", "--run-id", "mine", "-c", "true").ok()
    folders = runs_folders(scene.partition, bob.uid)

    def edit(place: Path) -> None:
        sent = (place / "submission.json").read_text()
        as_not_begun(place)
        put(place / "submission.json", sent)
        spec = json.loads((place / "spec.json").read_text())
        put(place / "spec.json", json.dumps({**spec, "array": array}))

    head = {"array": array, "user": "alice"}
    planted = bob.do(lambda: plant(template, "many", folders, edit=edit, head=head))
    assert planted, "bob could lay his bundle nowhere"
    for words in (("runs",), ("runs", "--all-users"), ("runs", "--limit", "1")):
        alice.hpj(*words, limit=2 * LIMIT).ok()
    alice.hpj("show", "many", limit=2 * LIMIT).clean()
    assert list(alice.runs()) == ["mine"]


def test_a_run_with_wild_records_is_listed_in_the_time_of_others(scene: Scene, template: Path) -> None:
    """What finding 9 is of a kind with: numbers, depths and sizes that only a foreigner's file has."""
    alice, bob = scene.alice, scene.bob
    alice.hpj("submit", "--no-project-files", "--wait", "--run-id", "mine", "-c", "true").ok()
    folders = runs_folders(scene.partition, bob.uid)
    wild = {
        "deep": "[" * 200_000,
        "long": json.dumps({"format": 1, "name": "x" * 10_000_000}),
        "number": '{"format": 1' + "0" * 5000 + "}",
        "zero": "",
    }

    def lay() -> int:
        count = 0
        for name, text in wild.items():
            for victim in ("bundle.json", "spec.json", "submission.json", "status/claim.json"):
                edit = lambda place, victim=victim, text=text: put(place / victim, text)  # noqa: E731
                run_id = f"wild-{name}-{victim.partition('.')[0].replace('/', '-')}"
                count += len(plant(template, run_id, folders, edit=edit))
        attempts = lambda place: [(place / f"status/attempt-{n}").mkdir() for n in range(2, 3000)]  # noqa: E731
        count += len(plant(template, "wild-attempts", folders, edit=attempts))
        sparse = lambda place: os.truncate(place / "spec.json", 1 << 40)  # noqa: E731
        return count + len(plant(template, "wild-size", folders, edit=sparse))

    assert bob.do(lay) > len(wild)
    for words in (("runs",), ("runs", "--all-users"), ("runs", "--all-users", "--json"), ("clean", "--yes")):
        alice.hpj(*words).ok()
    for run_id in [run_id for run_id in alice.runs("--all-users") if run_id.startswith("wild-")][:6]:
        for words in (("show", run_id), ("logs", run_id), ("clone", run_id, "--dry-run")):
            alice.hpj(*words).clean()
    assert alice.runs()["mine"]["state"] == "succeeded"


def test_names_of_users_and_runs_without_end_hold_up_nothing_of_ones_own(scene: Scene, template: Path) -> None:
    """What finding 9 is of a kind with: folders that look like users' and like runs, which cost their maker next to nothing."""
    alice, bob = scene.alice, scene.bob
    alice.hpj("submit", "--no-project-files", "--wait", "--run-id", "mine", "-c", "true").ok()

    def lay() -> None:
        for number in range(5_000):
            (scene.partition / f".hyperpod-{10_000 + number}").mkdir()
        for runs in runs_folders(scene.partition, bob.uid):
            for number in range(5_000):
                place = place_of(runs, f"empty-{number}")
                with contextlib.suppress(FileExistsError, FileNotFoundError):
                    place.parent.mkdir(parents=True)
                with contextlib.suppress(OSError):
                    place.mkdir()

    bob.do(lay)
    for words in (
        ("runs",),
        ("show", "mine"),
        ("show", "last"),
        ("logs", "mine"),
        ("clean", "--yes"),
        ("submit", "--no-project-files", "--wait", "--run-id", "second", "-c", "true"),
        ("storage",),
        ("runs", "--all-users", "--limit", "5"),
    ):
        alice.hpj(*words).ok()
    assert set(alice.runs()) == {"mine", "second"}
