"""The public API over a local cluster in folders of the test's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import hyperpod_jlab
from hyperpod_jlab import api


@pytest.fixture(autouse=True)
def own_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project folder to work in; the API's services are made anew, and runs left behind are cancelled."""
    for name in ("DATA", "STATE", "CACHE", "CONFIG"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    config = tmp_path / "config.toml"
    config.write_text("[clusters.local]\nslots = 8\n")
    monkeypatch.setenv("HYPERPOD_CONFIG", str(config))
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    api._hyperpod.cache_clear()
    yield project
    for run in hyperpod_jlab.runs(limit=None):
        if run.state in {"waiting", "running"}:
            run.cancel().wait(30)
    api._hyperpod.cache_clear()
