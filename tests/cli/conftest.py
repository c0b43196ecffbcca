"""``hpj`` in a home of its own: in this process for speed, or as a process of its own where that is what matters."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hyperpod_jlab.cli.main import main

HPJ = (sys.executable, "-m", "hyperpod_jlab.cli.main")
TIMEOUT = 60


@dataclass(frozen=True)
class Result:
    """What a call of ``hpj`` did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as one JSON document."""
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, Any]:
        """The last line of stderr as the error's JSON."""
        found: dict[str, Any] = json.loads(self.err.splitlines()[-1])
        assert found.keys() == {"code", "message", "hint", "detail"}
        return found

    def ok(self) -> Result:
        """The result itself, once it is sure that it is a good one."""
        assert self.code == 0, f"exit code {self.code}\n{self.out}\n{self.err}"
        return self


Hpj = Callable[..., Result]


@dataclass(frozen=True)
class Home:
    """Folders and configuration of one user who has nothing yet."""

    root: Path
    work: Path
    config: Path

    @property
    def environment(self) -> dict[str, str]:
        """The variables that make it this user's home."""
        return {
            "XDG_DATA_HOME": str(self.root / "data"),
            "XDG_STATE_HOME": str(self.root / "state"),
            "XDG_CACHE_HOME": str(self.root / "cache"),
            "HYPERPOD_CONFIG": str(self.config),
        }

    @property
    def partition(self) -> Path:
        """The storage partition."""
        return self.root / "data" / "hyperpod-jlab" / "partition"

    def bundles(self) -> list[Path]:
        """All bundles, staging folders included."""
        return sorted(self.partition.glob(".hyperpod*/runs/*/*"))

    def process(self, *words: str, env: Mapping[str, str] | None = None) -> Result:
        """Call ``hpj`` as a process of its own."""
        done = subprocess.run(
            [*HPJ, *words],
            cwd=self.work,
            env=self.process_environment(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
        )
        return Result(done.returncode, done.stdout, done.stderr)

    def start(self, *words: str, **options: Any) -> subprocess.Popen[bytes]:
        """Start ``hpj`` and leave it running."""
        env = self.process_environment(options.pop("env", None))
        return subprocess.Popen([*HPJ, *words], cwd=self.work, env=env, **options)

    def process_environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """This process's environment in this home."""
        colours = {"NO_COLOR", "FORCE_COLOR"}
        kept = {name: value for name, value in os.environ.items() if name not in colours}
        return {**kept, **self.environment, **(more or {})}


def make_home(root: Path, *, slots: int = 4) -> Home:
    """A home with a local cluster of some slots."""
    home = Home(root, root / "work", root / "config.toml")
    home.work.mkdir(parents=True)
    home.config.write_text(f"[clusters.local]\nslots = {slots}\n")
    return home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return make_home(tmp_path)


@pytest.fixture
def hpj(home: Home, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Hpj:
    """Call ``hpj`` in this process, in the test's home."""
    for name, value in home.environment.items():
        monkeypatch.setenv(name, value)
    for name in ("NO_COLOR", "FORCE_COLOR", "HYPERPOD_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(home.work)
    return caller(capfd)


def caller(capfd: pytest.CaptureFixture[str]) -> Hpj:
    """Call ``hpj`` in this process."""

    def call(*words: str) -> Result:
        capfd.readouterr()
        code = main(words)
        out, err = capfd.readouterr()
        return Result(code, out, err)

    return call


def notebook(*cells: str | tuple[str, Sequence[str]]) -> dict[str, Any]:
    """A notebook of code cells, each a text or a text with tags."""
    made: list[dict[str, Any]] = []
    for cell in cells:
        text, tags = cell if isinstance(cell, tuple) else (cell, ())
        metadata = {"tags": list(tags)} if tags else {}
        made.append({"cell_type": "code", "source": text, "metadata": metadata, "outputs": [], "execution_count": None})
    return {"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": made}


def write_notebook(path: Path, *cells: str | tuple[str, Sequence[str]]) -> Path:
    """Write a notebook of code cells."""
    path.write_text(json.dumps(notebook(*cells)))
    return path
