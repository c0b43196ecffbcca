"""Laying out what was captured as a bundle, and running its command as the launcher does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hyperpod_jlab.capture import Captured, FunctionCall, capture
from hyperpod_jlab.core.spec import JobSpec


def notebook_of(*cells: str | dict[str, Any], **metadata: Any) -> dict[str, Any]:
    """A notebook of code cells; a cell given as a dict is taken as it is."""
    made = [
        cell
        if isinstance(cell, dict)
        else {
            "cell_type": "code",
            "id": f"id-{number}",
            "metadata": {},
            "execution_count": None,
            "outputs": [],
            "source": cell,
        }
        for number, cell in enumerate(cells, 1)
    ]
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": made}


def notebook_spec(**fields: Any) -> JobSpec:
    source = {"kind": "notebook", "path": "train.ipynb"}
    source.update(fields.pop("source", {}))
    return JobSpec.model_validate({"source": source, **fields})


@dataclass
class Done:
    """One rank that ended."""

    code: int
    out: str
    err: str
    error: dict[str, Any] | None


class Bundle:
    """A bundle on a partition of its own."""

    def __init__(self, partition: Path, captured: Captured) -> None:
        self.captured = captured
        self.folder = partition / ".hyperpod" / "runs" / "00" / "run"
        (self.folder / "work").mkdir(parents=True)
        (self.folder / "status" / "attempt-1").mkdir(parents=True)
        for file in captured.files:
            self._write(file.path, file.data, file.executable)
        for project in captured.project:
            self._write(f"work/{project.path}", project.source.read_bytes(), project.executable)

    def _write(self, path: str, data: bytes, executable: bool) -> None:
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        target.chmod(0o755 if executable else 0o644)

    def command(self, python: str = sys.executable) -> list[str]:
        made = []
        for item in self.captured.command:
            if isinstance(item, str):
                made.append(item)
            elif "bundle" in item:
                made.append(str(self.folder / item["bundle"]))
            else:
                made.append(python)
        return made

    def environment(self, rank: int = 0, world: int = 1, **variables: str) -> dict[str, str]:
        given = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
        return {
            **given,
            "LANG": "C.UTF-8",
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "NODE_RANK": "0",
            "WORLD_SIZE": str(world),
            "LOCAL_WORLD_SIZE": str(world),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": "29500",
            "HYPERPOD_RUN_ID": "run",
            "HYPERPOD_ATTEMPT": "1",
            "HYPERPOD_BUNDLE": str(self.folder),
            "HYPERPOD_RECORDS": str(self.folder),
            "PYTHONUNBUFFERED": "1",
            "PYTHONFAULTHANDLER": "1",
            **variables,
        }

    def start(
        self, rank: int = 0, world: int = 1, python: str = sys.executable, output: int | None = None, **variables: str
    ) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self.command(python),
            cwd=self.folder / "work",
            env=self.environment(rank, world, **variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if output is None else output,
            stderr=subprocess.PIPE if output is None else output,
        )

    def finish(self, process: subprocess.Popen[bytes], rank: int = 0) -> Done:
        out, err = process.communicate(timeout=100)
        record = self.folder / "status" / "attempt-1" / f"rank-{rank}.error.json"
        error = json.loads(record.read_text()) if record.exists() else None
        return Done(process.returncode, out.decode(), err.decode(), error)

    def run(self, python: str = sys.executable, **variables: str) -> Done:
        return self.finish(self.start(0, 1, python, None, **variables))

    def run_ranks(self, world: int, **variables: str) -> list[Done]:
        started = [self.start(rank, world, sys.executable, None, **variables) for rank in range(world)]
        return [self.finish(process, rank) for rank, process in enumerate(started)]


@dataclass
class Laboratory:
    """A folder to capture from and a partition to run on."""

    base: Path
    partition: Path

    def capture(
        self, spec: JobSpec, notebook: dict[str, Any] | None = None, call: FunctionCall | None = None
    ) -> Captured:
        return capture(spec, base=self.base, notebook=notebook, call=call)

    def bundle(self, captured: Captured) -> Bundle:
        self.partition.mkdir(exist_ok=True)
        return Bundle(self.partition, captured)

    def cells(self, *cells: str, **fields: Any) -> Bundle:
        """A bundle of a notebook with these cells."""
        return self.bundle(self.capture(notebook_spec(**fields), notebook_of(*cells)))

    def run(self, *cells: str, **fields: Any) -> Done:
        """Run a notebook with these cells."""
        return self.cells(*cells, **fields).run()
