"""Words of shells, of sbatch and of comments through every text field of a spec: no command of theirs ever runs.

Each is either right, which is to say that it arrives as it was written, or refused in words. A file called canary is what each of them would make.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from hyperpod_jlab.core.errors import HyperpodError, InvalidInputError
from hyperpod_jlab.core.spec import JobSpec
from hyperpod_jlab.core.validation import parse
from hyperpod_jlab.engines.launch import GuardPolicy
from hyperpod_jlab.engines.protocol import RenderInput
from hyperpod_jlab.engines.slurm.client import Bucket
from hyperpod_jlab.engines.slurm.engine import SlurmOrchestrator
from hyperpod_jlab.engines.slurm.render import render
from hyperpod_jlab.run.services import Hyperpod
from hyperpod_jlab.run.submit import Request
from hyperpod_jlab.storage.partition import PathMap
from tests.slurm.cluster import SlurmTestbed
from tests.slurm.hyperpod_fixtures import CLUSTER, SlurmSession, make_hyperpod

CORPUS = {
    "substitution": "$(touch canary)",
    "back-quotes": "`touch canary`",
    "semicolon": "; touch canary;",
    "and": "&& touch canary &",
    "pipe": "| touch canary #",
    "single quote": "'; touch canary; '",
    "double quote": '"; touch canary; "',
    "both quotes": "'\"'\"'; touch canary; '\"'",
    "field separator": ";touch${IFS}canary;",
    "newline": "x\ntouch canary\n",
    "carriage return": "x\rtouch canary\r",
    "directive": "x\n#SBATCH --wrap='touch canary'\ntouch canary",
    "directive in a line": "x #SBATCH --prolog=canary",
    "comment": "# touch canary",
    "option": "--wrap=touch canary",
    "short option": "-J canary",
    "patterns": "%j%x%%%A_%a\\%j",
    "backslashes": "\\\\\\'; touch canary; \\",
    "backslash at the end": "touch canary\\",
    "nul": "x\0touch canary",
    "unit separator": "x\x1f\x1etouch canary",
    "line separator": "x\u2028touch canary\u2029touch canary",
    "next line": "x\u0085touch canary\u0085",
    "right to left": "x\u202e; touch canary",
    "heredoc": "EOF\ntouch canary\nEOF",
    "braces": "{touch,canary} {0} {run_id} %(x)s ${x:-$(touch canary)}",
    "glob": "* ? [a-z] ~ !! ^touch^canary",
    "name=value": "A=B touch canary",
    "long": "$(touch canary)" * 600,
}
"""What would make a file, if any shell, sbatch or template read it."""

FIELDS = {
    "name": ("name",),
    "queue": ("queue",),
    "account": ("account",),
    "qos": ("qos",),
    "priority": ("priority",),
    "time_limit": ("time_limit",),
    "array": ("array",),
    "memory": ("resources", "memory"),
    "accelerator": ("resources", "accelerators", "type"),
    "instance_type": ("resources", "instance_type"),
    "instance_group": ("resources", "instance_group"),
    "python": ("environment", "python"),
    "image": ("environment", "image"),
    "setup": ("environment", "setup"),
    "launcher": ("launcher",),
    "after": ("after", 0),
    "args": ("args", 0),
    "flag": ("slurm", "flags", "mail-user"),
    "constraint": ("slurm", "flags", "constraint"),
    "nodelist": ("slurm", "flags", "nodelist"),
    "begin": ("slurm", "flags", "begin"),
    "namespace": ("kubernetes", "namespace"),
}
"""The text fields of a spec. Those that are shell lines by design (the command, ``setup``) are only rendered here."""

RAN = "import json, os, sys; print(json.dumps([os.environ['VALUE'], sys.argv[1:]]))"


def _spec(path: tuple[str | int, ...], text: str) -> dict[str, Any]:
    value: Any = text
    for part in reversed(path):
        value = [value] if part == 0 else {part: value}
    data: dict[str, Any] = {"source": {"kind": "command", "command": "true"}, "files": {"project": False}}
    return data | value if path else data


def _canaries(slurm: SlurmTestbed, *folders: Path) -> list[Path]:
    """All files that a command of the corpus made, wherever one could run."""
    places = [slurm.partition, Path.cwd(), Path.home(), slurm.folder / "work", *folders]
    deep = [path for folder in (slurm.partition, *folders) for path in folder.rglob("canary*")]
    return deep + [path for place in places for path in place.glob("canary*")]


@pytest.fixture
def hyperpod(slurm_cluster: SlurmTestbed) -> Hyperpod:
    """The services, without patience for the scheduler's limiter."""
    hyperpod = make_hyperpod(slurm_cluster)
    engine = hyperpod.engines.get(CLUSTER)
    assert isinstance(engine, SlurmOrchestrator)
    engine._client._bucket = Bucket(1000, 1000)
    return hyperpod


def _all(hyperpod: Hyperpod, jobs: list[Any], at_once: int = 6) -> list[Any]:
    """What all of them give, so many at once."""

    async def give() -> list[Any]:
        try:
            return await _gathered(jobs, at_once)
        finally:
            await hyperpod.close()

    return asyncio.run(give())


async def _gathered(jobs: list[Any], at_once: int) -> list[Any]:
    gate = asyncio.Semaphore(at_once)

    async def one(job: Any) -> Any:
        async with gate:
            return await job

    return await asyncio.gather(*(one(job) for job in jobs))


# ------------------------------------------------------------------------------ what arrives


def test_a_canary_would_be_seen(hyperpod: Hyperpod, slurm_cluster: SlurmTestbed, tmp_path: Path):
    """The control: a command that is the user's own makes the file, and it is found."""

    async def ran() -> str:
        session = SlurmSession(slurm_cluster, hyperpod, tmp_path)
        run_id = await session.submit("touch canary")
        assert (await session.ended(run_id)).state == "succeeded"
        return run_id

    (run_id,) = _all(hyperpod, [ran()])
    found = _canaries(slurm_cluster, tmp_path)
    assert len(found) == 1
    assert run_id in str(found[0])
    found[0].unlink()


def test_text_arrives_as_it_was_written(hyperpod: Hyperpod, slurm_cluster: SlurmTestbed, tmp_path: Path):
    """Variables, arguments, a command's words and a flag's value: each string in all of them at once, in a job of its own."""
    session = SlurmSession(slurm_cluster, hyperpod, tmp_path)
    (tmp_path / "echo.py").write_text(RAN)

    async def one(text: str) -> tuple[str, Any]:
        flags = {} if _has_control(text) or len(text) > 4000 else {"mail-user": text}
        spec = {
            "source": {"kind": "script", "path": "echo.py"},
            "files": {"project": False},
            "args": [text, "--", text],
            "environment": {"variables": {"VALUE": text}, "setup": "true # " + _one_line(text)},
            "slurm": {"flags": flags},
        }
        request = Request(parse(JobSpec, spec), base=tmp_path)
        run_id = await hyperpod.submitter.submit(request)
        run = await session.ended(run_id)
        assert run.state == "succeeded", (text, run.status, session.log(run_id))
        log = session.log(run_id)
        return text, json.loads(log)

    texts = [text for text in CORPUS.values() if "\0" not in text]
    for text, seen in _all(hyperpod, [one(text) for text in texts]):
        assert seen == [text, [text, "--", text]]
    assert _canaries(slurm_cluster, tmp_path) == []


def test_a_script_may_be_called_anything(hyperpod: Hyperpod, slurm_cluster: SlurmTestbed, tmp_path: Path):
    session = SlurmSession(slurm_cluster, hyperpod, tmp_path)

    async def one(text: str) -> tuple[str, str]:
        name = text[:80] + ".py"
        (tmp_path / name).write_text("print('ran')")
        source = {"kind": "script", "path": name}
        try:
            spec = parse(JobSpec, {"source": source, "files": {"project": False}})
            run_id = await hyperpod.submitter.submit(Request(spec, base=tmp_path))
        except HyperpodError as error:
            return text, "refused: " + error.message
        await session.ended(run_id)
        return text, session.log(run_id)

    texts = [text for text in CORPUS.values() if "\0" not in text]
    for text, said in _all(hyperpod, [one(text) for text in texts]):
        assert said.startswith("refused: ") == _has_control(text), (text, said)
        assert said == "ran\n" or _has_control(text), (text, said)
    assert _canaries(slurm_cluster) == []


def _has_control(text: str) -> bool:
    return any(ord(character) < 32 for character in text)


def _one_line(text: str) -> str:
    return "".join(character for character in text if ord(character) >= 32)


@pytest.mark.parametrize("field", ["variables", "args", "command", "setup"])
def test_a_nul_is_refused(field: str):
    parts: dict[str, dict[str, Any]] = {
        "variables": {"environment": {"variables": {"A": "x\0y"}}},
        "args": {"args": ["x\0y"]},
        "command": {"source": {"kind": "command", "command": "x\0y"}},
        "setup": {"environment": {"setup": "x\0y"}},
    }
    data = {"source": {"kind": "command", "command": "true"}} | parts[field]
    with pytest.raises(InvalidInputError):
        parse(JobSpec, data)


# ------------------------------------------------------------------------------ what is refused


def test_every_field_is_right_or_refused(hyperpod: Hyperpod, slurm_cluster: SlurmTestbed, tmp_path: Path):
    """Each string in each field by itself, up to the moment of sending: the spec, preflight, the controller's verdict."""

    async def one(field: str, text: str) -> str | None:
        try:
            spec = parse(JobSpec, _spec(FIELDS[field], text))
            preview = await hyperpod.submitter.preview(Request(spec, base=tmp_path))
        except HyperpodError as error:
            return error.message
        errors = [found.message for found in preview.findings if found.level == "error"]
        return errors[0] if errors else None

    pairs = list(itertools.product(FIELDS, CORPUS))
    said = _all(hyperpod, [one(field, CORPUS[name]) for field, name in pairs])
    taken = {field for (field, _), message in zip(pairs, said, strict=True) if message is None}
    assert taken == {"instance_type", "instance_group", "setup", "args", "flag"}
    assert [message for message in said if message is not None and not message.strip()] == []
    assert _canaries(slurm_cluster, tmp_path) == []


def test_a_path_that_is_looked_for_over_ssh_is_no_shell(slurm_cluster: SlurmTestbed, tmp_path: Path):
    hyperpod = make_hyperpod(slurm_cluster, "ssh")

    async def one(text: str) -> str:
        python = {"python": "/nowhere/" + text}
        try:
            spec = parse(JobSpec, _spec((), "") | {"environment": python})
            preview = await hyperpod.submitter.preview(Request(spec, base=tmp_path))
        except HyperpodError as error:
            return error.code
        return next(found.code for found in preview.findings if found.level == "error")

    said = _all(hyperpod, [one(text) for text in CORPUS.values()])
    assert set(said) == {"no_python", "invalid_spec"}
    assert _canaries(slurm_cluster, tmp_path) == []


@pytest.mark.parametrize("name", CORPUS)
def test_a_flags_name_is_one_of_a_list(name: str):
    spec = parse(JobSpec, _spec(("slurm", "flags", CORPUS[name]), "x"))
    with pytest.raises(InvalidInputError):
        _script(spec)


def _script(spec: JobSpec, there: str = "/fsx/team") -> str:
    python = spec.environment.python or "/usr/bin/python3"
    paths = PathMap.create_map("/here", there)
    return render(RenderInput("run", "run", spec, "bundle", paths, python, GuardPolicy.current(), 60)).text


# ------------------------------------------------------------------------------ without preflight


def _sent_anyway(slurm: SlurmTestbed, hyperpod: Hyperpod, fields: list[str]) -> list[str]:
    """Send what preflight would have refused, each string in each of the fields; the jobs that sbatch took."""
    folder = slurm.partition / "anyway"
    (folder / "bundle" / "logs").mkdir(parents=True, exist_ok=True)
    there = str(slurm.partition_on_nodes / "anyway")
    engine = hyperpod.engines.get(CLUSTER)
    assert isinstance(engine, SlurmOrchestrator)

    async def one(field: str, text: str) -> str | None:
        try:
            script = _script(parse(JobSpec, _spec(FIELDS[field], text)), there)
            return await engine._client.sbatch(script.encode())
        except HyperpodError:
            return None

    pairs = itertools.product(fields, CORPUS.values())
    sent = _all(hyperpod, [one(field, text) for field, text in pairs])
    jobs = [job for job in sent if job is not None]
    _wait_for_all(slurm, jobs)
    return jobs


def _wait_for_all(slurm: SlurmTestbed, jobs: list[str]) -> None:
    """Until they have ended; those that cannot start are taken away."""
    end = time.monotonic() + 120
    while left := _queue(slurm, jobs):
        for job, state, reason in left:
            if state == "PENDING" and reason not in {"None", "Resources", "Priority"}:
                slurm.run("ctl", "scancel", "--quiet", job)
        assert time.monotonic() < end, left
        time.sleep(0.3)


def _queue(slurm: SlurmTestbed, jobs: list[str]) -> list[list[str]]:
    """Id, state and reason of those of these jobs that have not ended."""
    text = slurm.exec("ctl", "squeue", "-h", "-o", "%A %T %r")
    rows = [line.split(" ", 2) for line in text.splitlines()]
    return [row for row in rows if row[0] in jobs]


def test_what_preflight_refuses_runs_no_command_when_it_is_sent(hyperpod: Hyperpod, slurm_cluster: SlurmTestbed):
    jobs = _sent_anyway(slurm_cluster, hyperpod, ["python", "priority"])
    assert len(jobs) > 10
    assert _canaries(slurm_cluster) == []


@pytest.mark.full
def test_no_field_runs_a_command_when_it_is_sent(hyperpod: Hyperpod, slurm_cluster: SlurmTestbed):
    _sent_anyway(slurm_cluster, hyperpod, sorted(FIELDS))
    assert _canaries(slurm_cluster) == []


@pytest.mark.parametrize("name", CORPUS)
def test_a_partitions_path_is_no_shell(name: str):
    """A folder may be called anything; what no script can hold is refused."""
    text = CORPUS[name]
    spec = parse(JobSpec, _spec(("name",), "run"))
    if "\\" in text or _has_control(text):
        with pytest.raises(InvalidInputError):
            _script(spec, f"/fsx/{text}")
        return
    script = _script(spec, f"/fsx/{text}")
    words = script[script.index("\nguard=") :]
    words = words[: words.index("\n", words.index("\nguarded=(") + 1)]
    told = subprocess.run(
        ["bash", "-c", f"{words}\nprintf '%s\\0' \"${{guarded[@]}}\""], capture_output=True, check=True
    )
    assert told.stderr == b""
    assert f"/fsx/{text}".encode() in told.stdout.split(b"\0")
