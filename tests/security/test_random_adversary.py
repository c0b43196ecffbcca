"""A user's day on a partition on which another one does at random whatever the kernel lets be done.

``HYPERPOD_ADVERSARY_SEED`` repeats what a failed round did, as far as the order of two processes can be repeated.
"""

from __future__ import annotations

import json
import os
import random
import secrets
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.security.adversary import Adversary, Place
from tests.security.conftest import Scene, kernel_settings
from tests.security.people import Answer, Going

SEED = os.environ.get("HYPERPOD_ADVERSARY_SEED") or secrets.token_hex(4)
ROUNDS, FULL_ROUNDS = 20, 500
FUNCTION, COMMAND = "day-1", "day-2"
TIMEOUT = 40.0

_templates: list[Path] = []


@pytest.fixture
def template(make_scene: Callable[..., Scene], tmp_path_factory: pytest.TempPathFactory) -> Callable[[Scene], Path]:
    """Gives bob a bundle of his own to copy; the first time by a run of his."""

    def give(scene: Scene) -> Path:
        bob = scene.bob
        if not _templates:
            partition, bob.partition = bob.partition, scene.stage.folder / "bobs"
            bob.partition.mkdir()
            os.chown(bob.partition, bob.uid, bob.uid)
            bob.configure()
            words = ("submit", "--no-project-files", "--wait", "--run-id", "template", "-c", "true")
            bob.hpj(*words).ok()
            kept = tmp_path_factory.mktemp("adversary") / "template"
            shutil.copytree(bob.bundle("template"), kept, symlinks=True)
            _templates.append(kept)
            bob.partition = partition
            bob.configure()
        copy = scene.stage.folder / "template"
        shutil.copytree(_templates[0], copy, symlinks=True)
        for path in (copy, *copy.rglob("*")):
            os.chown(path, bob.uid, bob.uid, follow_symlinks=False)
        return copy

    return give


@dataclass
class Day:
    """What alice does on one day, and what came of it."""

    scene: Scene
    seed: str
    answers: list[Answer]

    def hpj(self, *words: str) -> Answer:
        """A command of alice's."""
        return self._noted(self.scene.alice.hpj(*words))

    def _noted(self, answer: Answer) -> Answer:
        self.answers.append(answer)
        context = f"seed {self.seed} ({kernel_settings()})"
        assert not answer.faults, f"{context}\n{answer.text}"
        return answer

    def submit_function(self, run_id: str) -> Answer:
        """A function by the Python API."""

        def work() -> int:
            import hyperpod_jlab
            from hyperpod_jlab.core.errors import HyperpodError

            def squared(number: int) -> dict[str, int]:
                return {"square": number * number}

            squared.__module__ = "__main__"
            try:
                print(hyperpod_jlab.submit(squared, args=(7,), run_id=run_id).run_id)
            except HyperpodError as error:
                print(json.dumps({"code": error.code, "message": error.message}))
                return 2
            return 0

        return self._noted(self.scene.alice.start(work, words=("alice", "api.submit", run_id)).answer())

    def result(self, run_id: str) -> Answer:
        """The function's value, waited for."""

        def work() -> int:
            import hyperpod_jlab
            from hyperpod_jlab.core.errors import HyperpodError

            try:
                print(hyperpod_jlab.get(run_id).result(timeout=TIMEOUT))
            except (HyperpodError, TimeoutError) as error:
                print(type(error).__name__, error)
                return 2
            return 0

        return self.scene.alice.start(work, words=("alice", "api.result", run_id)).answer(2 * TIMEOUT)


def _begin(scene: Scene, bundle: Path, ids: tuple[str, ...], seed: str) -> Going:
    elsewhere = scene.stage.folder / "elsewhere"
    place = Place(
        partition=scene.partition,
        template=bundle,
        canaries=scene.canaries,
        home=scene.alice.home,
        readable=(elsewhere / "thesis.txt", elsewhere / "deep" / "er" / "data.bin"),
        victim=scene.alice.uid,
        attacker=scene.bob.uid,
        ids=ids,
    )
    return scene.bob.start(lambda: Adversary(place, seed).rampage(5 * TIMEOUT), words=("rampage",))


def _look_around(day: Day, sent: list[str], chance: random.Random) -> None:
    """What one does while runs go on, in any order."""
    one = sent[0] if sent else "day-1"
    words = [
        ("runs", "--json"),
        ("runs", "--all-users", "--json"),
        ("show", one, "--json"),
        ("logs", one),
        ("clone", chance.choice((one, "last")), "--dry-run"),
        ("clean", "--yes", "--older", chance.choice(("30d", "1h"))),
        chance.choice((("storage",), ("show", "last"))),
        (chance.choice(("show", "metrics", "why")), f"of-bob-{chance.randrange(12)}"),
        ("logs", f"of-bob-{chance.randrange(12)}"),
        ("clone", f"of-bob-{chance.randrange(12)}", "--dry-run"),
    ]
    for command in chance.sample(words, 7):
        day.hpj(*command)


def _submit(day: Day, run_id: str) -> Answer:
    """A function by the Python API, or a command."""
    if run_id == FUNCTION:
        return day.submit_function(run_id)
    return day.hpj("submit", "--no-project-files", "--run-id", run_id, "--json", "-c", "echo mine; id -u")


def _round(scene: Scene, template: Callable[[Scene], Path], seed: str) -> None:
    chance = random.Random(seed)
    day = Day(scene, seed, [])
    bundle = template(scene)
    (scene.partition / "roots.txt").write_text("root's\n")
    before = scene.kept
    first, second = chance.choice(((FUNCTION, COMMAND), (COMMAND, FUNCTION)))
    early = chance.random() < 0.3
    answers = {} if early else {first: _submit(day, first).ok()}
    going = _begin(scene, bundle, (first, second), seed)
    if early or chance.random() < 0.4:
        answers[second] = _submit(day, second)
    sent = [run_id for run_id, answer in answers.items() if answer.code == 0]
    _look_around(day, sent, chance)
    said = day.result(FUNCTION) if FUNCTION in sent else None
    assert not going.over, going.answer().text
    going.end()
    context = f"seed {seed} ({kernel_settings()})"
    assert scene.betrayed == [], context
    assert scene.kept == before, context
    assert (scene.partition / "roots.txt").read_text() == "root's\n", context
    if not early:
        refused = [answer.text for run_id, answer in answers.items() if run_id not in sent]
        _check_refusals(refused, context)
    _check_runs(scene, sent, context)
    if said is not None:
        assert said.clean().out.strip() == "{'square': 49}", f"{context}\n{said.text}"


def _check_refusals(refused: list[str], context: str) -> None:
    """Where a user came first, another one can take an id that is to come, and no more."""
    others = [said for said in refused if "run_id_taken" not in said and "is in use" not in said]
    assert not others, "\n".join([context, *others])


def _check_runs(scene: Scene, sent: list[str], context: str) -> None:
    """All that was sent is there, and ended as it should."""
    alice = scene.alice
    for run_id in sent:
        alice.hpj("show", run_id, "--json").ok()
    waited = alice.start(lambda: _wait(sent), words=("wait", *sent)).answer(2 * TIMEOUT)
    assert waited.code == 0, f"{context}\n{waited.text}"
    listed = alice.runs()
    states = {run_id: run["state"] for run_id, run in listed.items()}
    assert states == dict.fromkeys(sent, "succeeded"), context
    for run_id in set(sent) - {FUNCTION}:
        said = alice.hpj("logs", run_id).ok().out
        assert f"mine\n0|{alice.uid}\n" in said, f"{context}\n{said}"


def _wait(run_ids: list[str]) -> int:
    import hyperpod_jlab

    for run_id in run_ids:
        hyperpod_jlab.get(run_id).wait(timeout=TIMEOUT)
    return 0


@pytest.mark.parametrize("number", range(ROUNDS))
def test_a_day_beside_an_adversary(scene: Scene, template: Callable[[Scene], Path], number: int) -> None:
    _round(scene, template, f"{SEED}-{number}")


@pytest.mark.full
@pytest.mark.parametrize("number", range(ROUNDS, FULL_ROUNDS))
def test_many_days_beside_an_adversary(scene: Scene, template: Callable[[Scene], Path], number: int) -> None:
    _round(scene, template, f"{SEED}-{number}")
