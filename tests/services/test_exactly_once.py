"""A run id is submitted once, whoever sends it, how often, and wherever the sender is killed."""

from __future__ import annotations

import random
from pathlib import Path
from typing import get_args

import pytest

from hyperpod_jlab.core.errors import ConflictError
from hyperpod_jlab.run.submit import Step
from tests.services.conftest import Place
from tests.services.racing import Answer, Submitting, all_at_once

STEPS = get_args(Step)
FACES = ["service", "api", "command-line"]


@pytest.fixture
def marks(place: Place) -> Path:
    """A file of which the job writes a line each time it runs."""
    return place.folder.parent / "marks"


def mark(marks: Path, word: str = "x") -> str:
    return f"echo {word} >> '{marks}'"


def times(marks: Path, word: str = "x") -> int:
    return marks.read_text().split().count(word) if marks.exists() else 0


async def test_eight_submits_of_one_id_at_the_same_moment_from_all_faces(place, marks):
    faces = [FACES[number % 3] for number in range(8)]
    answers = all_at_once([Submitting("run-1", mark(marks), face=face) for face in faces])
    assert answers == [Answer(0, "run-1")] * 8
    run = await place.ended("run-1")
    assert (run.state, len(run.status.attempts)) == ("succeeded", 1)
    assert times(marks) == 1
    assert place.left() == ["run-1"]


async def test_eight_submits_of_different_specs_under_one_id(place, marks):
    senders = [Submitting("run-1", mark(marks, f"w{number}")) for number in range(8)]
    answers = all_at_once(senders)
    assert sorted(answer.code for answer in answers) == [0] + [2] * 7
    assert [answer.said for answer in answers if answer.code] == ["run_id_taken"] * 7
    winner = next(number for number, answer in enumerate(answers) if answer.code == 0)
    assert (await place.ended("run-1")).state == "succeeded"
    assert marks.read_text().split() == [f"w{winner}"]
    assert place.left() == ["run-1"]


async def test_the_same_again_later_is_the_same_run(place, marks):
    for _ in range(3):
        assert await place.submit(mark(marks), run_id="run-1") == "run-1"
        await place.ended("run-1")
    assert times(marks) == 1


@pytest.mark.parametrize(
    "other",
    [{"command": "false"}, {"name": "other"}, {"resources": {"nodes": 2}}, {"environment": {"variables": {"A": "1"}}}],
)  # fmt: skip
async def test_the_same_id_with_another_spec_is_refused(place, other):
    await place.submit("true", run_id="run-1")
    with pytest.raises(ConflictError) as caught:
        await place.submit(**{"command": "true", "run_id": "run-1", **other})
    assert (caught.value.code, caught.value.status, caught.value.exit_code) == ("run_id_taken", 409, 2)
    await place.ended("run-1")


async def test_the_same_id_with_other_code_in_the_same_file_is_refused(place):
    script = place.folder / "train.py"
    script.write_text("print(1)")
    source = {"kind": "script", "path": "train.py"}
    await place.submit(run_id="run-1", source=source)
    script.write_text("print(2)")
    with pytest.raises(ConflictError):
        await place.submit(run_id="run-1", source=source)
    await place.ended("run-1")


async def test_killed_at_each_step(place, marks):
    """All six at the same time, each under an id of its own; then each is sent once more."""
    names = {step: f"run-{step}" for step in STEPS}
    senders = [Submitting(names[step], mark(marks, step), die_at=step) for step in STEPS]
    assert [answer.code for answer in all_at_once(senders)] == [-9] * len(STEPS)
    listed = await place.listed()
    for step in ("captured", "checked", "staged"):
        assert names[step] not in listed
        assert times(marks, step) == 0
    lost = await place.hyperpod.runs.get(names["committed"])
    assert (lost.state, lost.status.reason_code) == ("failed", "submit_interrupted")
    assert "submit it again" in str(lost.status.reason)
    for step in ("sent", "recorded"):
        assert (await place.ended(names[step])).state == "succeeded"
    for step in STEPS:
        assert await place.submit(mark(marks, step), run_id=names[step], stop_grace=10) == names[step]
        run = await place.ended(names[step])
        assert (run.state, len(run.status.attempts)) == ("succeeded", 1), step
    assert {step: times(marks, step) for step in STEPS} == dict.fromkeys(STEPS, 1)
    assert sorted(await place.listed()) == sorted(names.values())


async def test_killed_at_random_moments(place, marks):
    dice = random.Random(20261121)
    moments = [dice.uniform(0, 0.35) for _ in range(20)]
    for begin in range(0, 20, 5):
        batch = range(begin, begin + 5)
        senders = [Submitting(f"run-{n}", mark(marks, f"w{n}"), die_after=moments[n]) for n in batch]
        assert {answer.code for answer in all_at_once(senders)} == {-9}
        for number in batch:
            run_id = f"run-{number}"
            if run_id in await place.listed():
                run = await place.ended(run_id)
                ended = (run.state, run.status.reason_code)
                assert ended in {("succeeded", None), ("failed", "submit_interrupted")}
            await place.submit(mark(marks, f"w{number}"), run_id=run_id, stop_grace=10)
    for number in range(20):
        run = await place.ended(f"run-{number}")
        assert (run.state, len(run.status.attempts)) == ("succeeded", 1)
        assert times(marks, f"w{number}") == 1
