"""A user of a cluster whose ``hpj`` and whose server answer: what they say is compared with golden files."""

from __future__ import annotations

import io
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from hyperpod_jlab.cli.main import main
from tests.golden.frozen import Golden

TOKEN = "of-a-test"
START = 60.0
PACE = 0.2

NO_AWS = {
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": "/nowhere/config",
    "AWS_SHARED_CREDENTIALS_FILE": "/nowhere/credentials",
    "RESOURCE_METADATA_FILE": "/nowhere/metadata.json",
}
"""Nobody is asked for credentials, and this is not Studio."""

BAD_INPUT: dict[str, list[str]] = {
    "bad-option": ["submit", "-c", "true", "--nods", "2"],
    "bad-value": ["submit", "-c", "true", "--nodes", "many"],
    "no-source": ["submit", "nope.py"],
    "run-id-taken": ["submit", "-c", "false", "--run-id", "failed"],
    "unknown-run": ["show", "nope"],
    "unknown-cluster": ["nodes", "--cluster", "nope"],
    "requeue-ended": ["requeue", "failed"],
    "change-ended": ["change", "failed", "--time-limit", "2h"],
}
"""Command lines that no cluster takes; there is a run ``failed``."""

Cut = Callable[[Any], Any]


@dataclass(frozen=True)
class Said:
    """What a call of ``hpj`` gave."""

    code: int
    out: str
    err: str

    def ok(self) -> Any:
        """Its JSON; fails when the call did."""
        assert self.code == 0, f"exit code {self.code}\n{self.out}\n{self.err}"
        return self.document["answer"]

    @property
    def document(self) -> dict[str, Any]:
        """The exit code, the JSON or the JSON lines of the standard output, and the error of the last line of stderr."""
        lines = [json.loads(line) for line in self.out.splitlines()] if _is_lines(self.out) else []
        answer = lines or (json.loads(self.out) if self.out else None)
        told: dict[str, Any] = {"exit_code": self.code, "answer": answer}
        if self.code:
            told["error"] = json.loads(self.err.splitlines()[-1])
        return told


@dataclass
class User:
    """One user, with a configuration, a folder and a running server of their own.

    Attributes:
        environment: What makes it this user's.
        folder: Where ``hpj`` is called.
        port: Of the server.
        also: Words of this run of the tests, and what stands for each.
    """

    environment: Mapping[str, str]
    folder: Path
    port: int
    also: dict[str, str] = field(default_factory=dict)

    def hpj(self, *words: str) -> Said:
        """Call ``hpj ... --json`` in this process."""
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in "oe")
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            for name, value in self.environment.items():
                patch.setenv(name, value)
            for name in ("NO_COLOR", "FORCE_COLOR", "HYPERPOD_DEBUG"):
                patch.delenv(name, raising=False)
            patch.chdir(self.folder)
            code = main([words[0], "--json", *words[1:]])
        said = [one.buffer.getvalue().decode() for one in (out, err)]
        return Said(code, *said)

    def ask(self, verb: str, path: str, body: Any = None) -> tuple[int, Any]:
        """The status and the JSON of the server's answer."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            headers = {"Authorization": f"token {TOKEN}", "Content-Type": "application/json"}
            data = None if body is None else json.dumps(body)
            connection.request(verb, f"/hyperpod/api/v1/{path}", data, headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def until(self, run_id: str, there: Callable[[Any], bool], limit: float = 90.0) -> Any:
        """Wait until a run looks as wanted."""
        end = time.monotonic() + limit
        while not there(run := self.hpj("show", run_id).ok()):
            assert time.monotonic() < end, f"never so in {limit} s: {run}"
            time.sleep(PACE)
        return run

    def says(self, run_id: str, limit: float = 90.0) -> None:
        """Wait until a running run has written something: all of it has started then."""
        self.until(run_id, lambda run: run["state"] == "running" and bool(run["attempts"]), limit)
        end = time.monotonic() + limit
        while not self.hpj("logs", run_id).out:
            assert time.monotonic() < end, run_id
            time.sleep(PACE)

    def ended(self, *run_ids: str) -> None:
        """Wait for the end of runs."""
        for run_id in run_ids:
            self.until(run_id, lambda run: run["state"] in {"succeeded", "failed", "cancelled"})


@dataclass(frozen=True)
class Answers:
    """Compares what a user is answered with golden files.

    Attributes:
        user: Who asks.
        golden: The files.
        place: Their folder.
        varying: Keys whose values always vary there.
    """

    user: User
    golden: Golden
    place: str
    varying: frozenset[str] = frozenset()

    def hpj(
        self,
        name: str,
        *words: str,
        cut: Cut | None = None,
        varying: Iterable[str] = (),
        also: Mapping[str, str] | None = None,
    ) -> Any:
        """Compare what ``hpj`` says; returns its JSON.

        Args:
            name: The golden file.
            words: Of the command line.
            cut: Takes what is another test's from the JSON.
            varying: Further keys whose values vary.
            also: Further words of this run.
        """
        told = self.user.hpj(*words).document
        shown = told["answer"]
        if cut is not None:
            told["answer"] = cut(shown)
        self.check(name, told, varying=varying, also=also)
        return shown

    def get(self, name: str, path: str, cut: Cut | None = None, **varies: Any) -> Any:
        """Compare what the server says."""
        return self.send(name, "GET", path, None, cut, **varies)

    def send(self, name: str, verb: str, path: str, body: Any, cut: Cut | None = None, **varies: Any) -> Any:
        """Compare what the server says to this request; returns its JSON."""
        status, answer = self.user.ask(verb, path, body)
        shown = cut(answer) if cut is not None else answer
        self.check(f"rest/{name}", {"status": status, "answer": shown}, **varies)
        return answer

    def check(
        self, name: str, document: Any, *, varying: Iterable[str] = (), also: Mapping[str, str] | None = None
    ) -> None:
        """Compare a document."""
        words = {**self.user.also, **(also or {})}
        keys = {*self.varying, *varying}
        self.golden.check(f"{self.place}/{name}", _readable(document), varying=keys, also=words)


def only(key: str, named: str, *names: str) -> Cut:
    """Keeps those entries of a table whose ``named`` is one of the names, in the order of these: they may be of the same second."""

    def cut(answer: Any) -> Any:
        found = [one for one in answer[key] if one[named] in names]
        return {**answer, key: sorted(found, key=lambda one: names.index(one[named]))}

    return cut


def without(*keys: str) -> Cut:
    """Leaves keys out, at whatever depth: what a run is like a moment after an order."""

    def cut(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: cut(one) for key, one in value.items() if key not in keys}
        return [cut(one) for one in value] if isinstance(value, list) else value

    return cut


def unsure(*keys: str) -> Cut:
    """What these keys have, and whether it is null, depends on the moment."""

    def cut(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: "<or null>" if key in keys else cut(one) for key, one in value.items()}
        return [cut(one) for one in value] if isinstance(value, list) else value

    return cut


def by_rank(answer: Any) -> list[Any]:
    """What the ranks wrote, in an order that does not vary; what a launcher says of its own depends on the moment."""
    lines = [answer] if isinstance(answer, dict) else answer or []
    ranked = [line for line in lines if line["rank"] is not None]
    return sorted(ranked, key=lambda line: (line.get("run_id", ""), line["rank"], line["line"]))


@contextmanager
def user_of(root: Path, config: Path, environment: Mapping[str, str], also: Mapping[str, str]) -> Iterator[User]:
    """A user with folders below ``root``, whose server ends with the block."""
    own = {f"XDG_{name}_HOME": str(root / name.lower()) for name in ("DATA", "STATE", "CACHE")}
    own = {**environment, **own, "HYPERPOD_CONFIG": str(config), **NO_AWS}
    folder = root / "project"
    folder.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = {
        "ServerApp.ip": "127.0.0.1",
        "ServerApp.port": port,
        "ServerApp.port_retries": 0,
        "ServerApp.open_browser": False,
        "ServerApp.allow_root": True,
        "ServerApp.root_dir": folder,
        "ServerApp.jpserver_extensions": {"hyperpod_jlab": True, "jupyter_server_terminals": False},
        "IdentityProvider.token": TOKEN,
    }
    words = [f"--{name}={value}" for name, value in options.items()]
    with (root / "server.log").open("wb") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyter_server", *words],
            cwd=folder,
            env={**os.environ, **own},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        user = User(own, folder, port, dict(also))
        _await_server(user, server, root / "server.log")
        yield user
    finally:
        server.terminate()
        server.wait(30)


def _await_server(user: User, server: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + START
    while True:
        try:
            if user.ask("GET", "version")[0] == 200:
                return
        except OSError:
            pass
        assert server.poll() is None, log.read_text()
        assert time.monotonic() < end, log.read_text()
        time.sleep(PACE)


def _is_lines(text: str) -> bool:
    """Whether it is JSON Lines, not one document."""
    lines = text.splitlines()
    return len(lines) > 1 and all(line.startswith("{") and line.endswith("}") for line in lines)


def _readable(value: Any, key: str = "") -> Any:
    """Long texts by lines; a scheduler's numbers of jobs go."""
    if isinstance(value, dict):
        return {name: _readable(one, name) for name, one in value.items()}
    if isinstance(value, list):
        return [_readable(one, key) for one in value]
    if not isinstance(value, str):
        return value
    if key in {"scheduler_id", "job", "array"}:
        return re.sub(r"^\d+", "<number>", value)
    return value.splitlines() if value.count("\n") > 2 else value
