"""Submits that are refused, broken off, or whose answer is lost: nothing half done is listed, and each may be sent again."""

from __future__ import annotations

import asyncio
import shutil
import threading
from dataclasses import replace
from typing import Any, get_args

import pytest

from hyperpod_jlab.core.errors import (
    DeniedError,
    HyperpodError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    StorageError,
    UnreachableError,
    UnsupportedError,
)
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.engines.local.engine import LocalOrchestrator
from hyperpod_jlab.engines.protocol import SubmitResult
from hyperpod_jlab.run.submit import Request, Step
from hyperpod_jlab.storage.records import BundleReader
from tests.services.conftest import Place

pytestmark = pytest.mark.local


class Moody(LocalOrchestrator):
    """The embedded cluster, of which some submits go wrong as they do with schedulers far away."""

    trouble: HyperpodError | None = None
    before = True

    async def submit(self, bundle: BundleReader) -> SubmitResult:
        """Take it, unless there is trouble, before or after."""
        if self.trouble is not None and self.before:
            raise self.trouble
        taken = await super().submit(bundle)
        if self.trouble is not None:
            raise self.trouble
        return taken


@pytest.fixture
def moody(place: Place) -> Moody:
    engine = Moody("local", place.hyperpod.settings.clusters["local"], place.partition)  # type: ignore[arg-type]
    place.hyperpod.engines._engines["local"] = engine
    return engine


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        ({"resources": {"nodes": 65}}, "too_many_nodes"),
        ({"resources": {"nodes": 64, "processes_per_node": 1024}}, "too_many_processes"),
        ({"resources": {"gpus_per_node": 64}}, "not_enough_gpus"),
        ({"resources": {"accelerators": {"kind": "neuron"}}}, "not_enough_gpus"),
        ({"environment": {"python": "/nowhere/python"}}, "no_python"),
        ({"environment": {"python": "/bin/true"}}, "no_python"),
        ({"environment": {"python": "/"}}, "no_python"),
        ({"environment": {"image": "pytorch"}}, "unsupported"),
        ({"environment": {"secrets": {"TOKEN": ""}}}, "secret_missing"),
        ({"source": {"kind": "native", "path": "job.sbatch"}}, "unsupported"),
    ],
)
async def test_what_preflight_refuses_leaves_nothing(place, spec, code):
    (place.folder / "job.sbatch").write_text("#!/bin/sh\n")
    with pytest.raises(RefusedError) as caught:
        await place.submit(run_id="run-1", **spec)
    assert (caught.value.code, caught.value.exit_code, caught.value.status) == (code, 2, 422)
    assert not place.partition.root.exists()
    assert await place.listed() == []


@pytest.mark.parametrize("source", [{"kind": "script", "path": "none.py"}, {"kind": "notebook", "path": "none.ipynb"}])
async def test_what_cannot_be_captured_leaves_nothing(place, source):
    with pytest.raises(InvalidInputError):
        await place.submit(run_id="run-1", source=source)
    assert not place.partition.root.exists()


@pytest.mark.parametrize("run_id", ["../x", "a/b", "", "A", "x" * 41, "a.1", "a\n"])
async def test_a_bad_run_id_leaves_nothing(place, run_id):
    with pytest.raises(InvalidInputError) as caught:
        await place.submit(run_id=run_id)
    assert caught.value.code == "invalid_run_id"
    assert not place.partition.root.exists()


async def test_an_unknown_cluster(place):
    request = Request(JobSpec(source=place.request().spec.source), cluster="lokal")
    with pytest.raises(NotFoundError) as caught:
        await place.hyperpod.submitter.submit(request)
    assert (caught.value.code, caught.value.hint) == ("unknown_cluster", "did you mean 'local'?")


async def test_a_preview_writes_nothing(place):
    preview = await place.hyperpod.submitter.preview(place.request("echo hi", run_id="run-1"))
    assert preview.run_id == "run-1"
    assert "run-1" in preview.rendered.text
    assert not place.partition.root.exists()


@pytest.mark.parametrize("error", [RefusedError, DeniedError, UnsupportedError, InvalidInputError])
async def test_what_the_scheduler_refuses_is_withdrawn(place, moody, error):
    moody.trouble = error("no such account")
    with pytest.raises(error, match="no such account"):
        await place.submit(run_id="run-1")
    assert place.left() == []
    assert await place.listed() == []
    moody.trouble = None
    await place.submit(run_id="run-1")
    assert (await place.ended("run-1")).state == "succeeded"


async def test_what_went_wrong_is_not_written_on_the_event_loop(place, moody, monkeypatch):
    """The partition may be slow just then, and the server's other answers wait for it."""
    write, threads = BundleReader.add_observation, []

    def add_observation(*given: Any) -> None:
        threads.append(threading.current_thread())
        write(*given)

    monkeypatch.setattr(BundleReader, "add_observation", add_observation)
    moody.trouble = UnreachableError("the line broke")
    with pytest.raises(UnreachableError):
        await place.submit(run_id="run-1")
    assert (await place.hyperpod.runs.get("run-1")).status.reason == "the line broke"
    assert threads
    assert threading.current_thread() not in threads


@pytest.mark.parametrize("before", [True, False], ids=["it was not taken", "it was taken"])
async def test_a_lost_answer_and_the_same_process_sends_it_again(place, moody, before):
    marks = place.folder.parent / "marks"
    moody.trouble, moody.before = UnreachableError("the line broke"), before
    with pytest.raises(UnreachableError):
        await place.submit(f"echo x >> {marks}", run_id="run-1")
    if before:
        run = await place.hyperpod.runs.get("run-1")
        assert (run.state, run.status.reason_code) == ("failed", "submit_interrupted")
        assert run.status.reason == "the line broke"
    moody.trouble = None
    await place.submit(f"echo x >> {marks}", run_id="run-1")
    run = await place.ended("run-1")
    assert (run.state, len(run.status.attempts)) == ("succeeded", 1)
    assert marks.read_text() == "x\n"


async def test_waiting_for_a_run_that_was_sent_again_does_not_stop_at_its_first_failure(place, moody):
    moody.trouble = UnreachableError("the line broke")
    with pytest.raises(UnreachableError):
        await place.submit(run_id="run-1")
    moody.trouble = None
    await place.submit(run_id="run-1")
    assert (await place.hyperpod.runs.wait("run-1")).state == "succeeded"


@pytest.mark.parametrize(
    ("step", "error"),
    [(step, RuntimeError) for step in get_args(Step)]
    + [("committed", asyncio.CancelledError), ("committed", KeyboardInterrupt)],
)
def test_broken_off_in_a_process_that_lives_on(home, monkeypatch, step, error):
    """As an interrupt in a notebook's kernel does."""
    place = Place(home)
    marks = home / "marks"
    request = place.request(f"echo x >> {marks}", run_id="run-1", environment={"python": "/usr/bin/python3"})

    def on_step(done: Step) -> None:
        if done == step:
            raise error

    with pytest.raises(error):
        asyncio.run(place.hyperpod.submitter.submit(request, on_step))
    if step in {"captured", "checked", "staged"}:
        assert asyncio.run(place.listed()) == []
    elif step == "committed":
        run = asyncio.run(place.hyperpod.runs.get("run-1"))
        assert (run.state, run.status.reason_code) == ("failed", "submit_interrupted")
    asyncio.run(place.hyperpod.submitter.submit(request))
    run = asyncio.run(place.hyperpod.runs.wait("run-1"))
    assert (run.state, len(run.status.attempts)) == ("succeeded", 1)
    assert marks.read_text() == "x\n"
    assert place.left() == ["run-1"]


async def test_cancelled_at_any_moment_in_a_process_that_lives_on(place):
    marks = place.folder.parent / "marks"
    for turn in range(12):
        request = place.request(f"echo {turn} >> {marks}", run_id=f"run-{turn}")
        task = asyncio.create_task(place.hyperpod.submitter.submit(request))
        await asyncio.sleep(turn * 0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await place.hyperpod.submitter.submit(request)
    for turn in range(12):
        run = await place.hyperpod.runs.wait(f"run-{turn}")
        assert (run.state, len(run.status.attempts)) == ("succeeded", 1), turn
    assert sorted(map(int, marks.read_text().split())) == list(range(12))


async def test_a_bundle_that_cannot_be_handed_over_is_withdrawn(place):
    """Its log folder is gone, so nothing can be started."""
    request = place.request(run_id="run-1")

    def on_step(step: Step) -> None:
        if step == "committed":
            shutil.rmtree(place.partition.bundle("run-1") / "logs")

    with pytest.raises(StorageError):
        await place.hyperpod.submitter.submit(request, on_step)
    assert place.left() == []
    await place.hyperpod.submitter.submit(request)
    assert (await place.ended("run-1")).state == "succeeded"


async def test_cancelling_what_was_never_sent_keeps_it_from_running(place, moody):
    marks = place.folder.parent / "marks"
    moody.trouble = UnreachableError("the line broke")
    with pytest.raises(UnreachableError):
        await place.submit(f"echo x >> {marks}", run_id="run-1")
    bundle = place.hyperpod.runs.bundle("run-1")
    bundle.add_action("cancel", "ada")
    moody.trouble = None
    await place.submit(f"echo x >> {marks}", run_id="run-1")
    assert (await place.ended("run-1")).state == "cancelled"
    assert not marks.exists()


async def test_secrets_lie_nowhere_but_in_their_file(place):
    spec = {"environment": {"secrets": {"TOKEN": ""}}}
    request = place.request('test "${#TOKEN}" = 19', run_id="run-1", **spec)
    request = replace(request, secrets={"TOKEN": "hunter2-very-secret"})
    seen: dict[str, bytes] = {}

    def look(when: str) -> None:
        bundle = place.partition.bundle("run-1")
        files = [path for path in bundle.rglob("*") if path.is_file()]
        seen.update({f"{when}: {path.relative_to(bundle)}": path.read_bytes() for path in files})

    def on_step(step: Step) -> None:
        if step == "committed":
            look("sent")

    await place.hyperpod.submitter.submit(request, on_step)
    assert (await place.ended("run-1")).state == "succeeded"
    look("ended")
    told = [name for name, data in seen.items() if b"hunter2" in data]
    assert told == ["sent: secrets/TOKEN"]
