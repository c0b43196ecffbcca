"""Another user's run, in which each option names a program. To look at it, or to clone it without trust, starts no program and asks no server."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

from hyperpod_jlab.core.spec import EnvironmentCapture
from tests.security.attacks import plant, program, put, rewrite, runs_folders
from tests.security.bait import KINDS, bait_spec
from tests.security.conftest import Scene
from tests.security.people import Person
from tests.security.server import serving

_CAPTURES = get_args(EnvironmentCapture)


@contextmanager
def _counting() -> Iterator[tuple[str, Callable[[], int]]]:
    """An address, and how many have connected to it."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        listener.setblocking(False)

        def count() -> int:
            found = 0
            while True:
                try:
                    listener.accept()[0].close()
                except BlockingIOError:
                    return found
                found += 1

        yield f"http://127.0.0.1:{listener.getsockname()[1]}", count


def _lay_bait(scene: Scene, address: str) -> dict[str, dict[str, Any]]:
    """Bob's runs, one for each kind of source, and their specs."""
    bob = scene.bob
    put(bob.project / "train.py", "print('trained')\n")
    put(bob.project / "requirements.txt", "tiny\n")
    words = ("submit", "train.py", "--no-project-files", "--env-from", "requirements", "--json")
    bob.hpj(*words, "--run-id", "template")
    bob.hpj("submit", "-c", "true", "--no-project-files", "--wait", "--run-id", "before").ok()
    template = bob.bundle("template")

    def make() -> dict[str, dict[str, Any]]:
        programs = scene.partition / "programs"
        programs.mkdir(exist_ok=True)
        programs.chmod(0o755)

        def place(path: str) -> str:
            made = programs / path
            put(made, program(scene.canaries, path))
            made.chmod(0o755)
            return str(made)

        specs = {}
        for number, kind in enumerate(KINDS):
            capture = _CAPTURES[number % len(_CAPTURES)]
            run_id = f"bait-{number}"
            spec = bait_spec(kind, capture, place, address=address, after="before")

            def edit(bundle: Path, spec: dict[str, Any] = spec) -> None:
                put(bundle / "spec.json", json.dumps(spec))
                rewrite(bundle / "launch.json", python=place("launch.python"))
                # Whatever a reader of files takes for a program of the run's.
                for name in ("work/uv", "work/git", "work/pip.py", "work/uv.py", "code/uv.py"):
                    put(bundle / name, program(scene.canaries, name.replace("/", ".")))

            plant(template, run_id, runs_folders(scene.partition, bob.uid), edit=edit)
            specs[run_id] = spec
        return specs

    made: dict[str, dict[str, Any]] = bob.do(make)
    return made


def _unharmed(scene: Scene, count: Callable[[], int], what: object) -> None:
    assert scene.betrayed == [], what
    assert count() == 0, f"{what} asked a server that bob named"


def test_a_bait_run_starts_nothing_before_it_is_trusted(scene: Scene) -> None:
    """By every face: the command line, REST, the magic and the Python API."""
    alice = scene.alice
    with _counting() as (address, count):
        specs = _lay_bait(scene, address)
        count()  # bob's own run may have posted
        for run_id in specs:
            for words in (
                ("clone", run_id, "--dry-run"),
                ("clone", run_id, "--dry-run", "--json"),
                ("clone", run_id),
                ("clone", run_id, "--python", "/usr/bin/python3", "--dry-run"),
                ("clone", run_id, "--trust-owner", "alice"),
                ("show", run_id),
                ("why", run_id),
                ("cost", run_id),
                ("logs", run_id),
            ):
                alice.hpj(*words).clean()
                _unharmed(scene, count, words)
            _by_magic(alice, run_id)
            _by_python(alice, run_id, specs[run_id])
            _unharmed(scene, count, run_id)
        with serving(alice) as server:
            for run_id, spec in specs.items():
                body = {"clone_of": run_id, "spec": spec, "cluster": "local"}
                status, preview = server.ask("POST", "runs/preview", body)
                assert status == 200, preview
                assert "foreign_code" in {one["code"] for one in preview["findings"]}, preview
                assert preview["cost"] is None
                status, refused = server.ask("POST", "runs", body)
                assert status >= 400, refused
                for path in ("", "/why", "/cost", "/code", "/rendered", "/numbers", "/notebook"):
                    server.ask("GET", f"runs/{run_id}{path}")
                _unharmed(scene, count, run_id)
    assert not [name for name in alice.runs() if name.startswith("bait")]


def test_the_bait_bites_whoever_trusts_it(scene: Scene) -> None:
    """The programs are real: a clone that is confirmed starts the interpreter that bob named, as alice."""
    with _counting() as (address, _):
        _lay_bait(scene, address)
        scene.alice.hpj("clone", "bait-2", "--dry-run", "--trust-owner", "bob")
    assert scene.betrayed


def _by_magic(alice: Person, run_id: str) -> None:
    code = f"""
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "hyperpod_jlab")
for line in ("clone {run_id} --dry-run", "clone {run_id}", "show {run_id}"):
    try:
        shell.run_line_magic("hyperpod", line)
    except Exception as error:
        print(type(error).__name__, error)
"""
    alice.program("python", "-c", code).answer().clean()


def _by_python(alice: Person, run_id: str, spec: dict[str, Any]) -> None:
    code = f"""
import asyncio, json, os
import hyperpod_jlab
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.run.services import Hyperpod
from hyperpod_jlab.run.submit import Request

run = hyperpod_jlab.get({run_id!r})
print(run, run.state, run.cost(), run.to_dict(), str(run.logs()))
spec = JobSpec.model_validate_json(os.environ["SPEC"])

async def preview():
    hyperpod = Hyperpod()
    asked = Request(spec, cluster="local", clone_of={run_id!r}, interpreter=spec.environment.python)
    try:
        return await hyperpod.submitter.preview(asked)
    finally:
        await hyperpod.close()

assert "foreign_code" in {{one.code for one in asyncio.run(preview()).findings}}
"""
    environment = {"SPEC": json.dumps(spec)}
    alice.program("python", "-c", code, environment=environment).answer().ok()
