"""Spaces of Studio for tests, and what lies on their partition."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from hyperpod_jlab.admin.lifecycle.scripts import App, ScriptSettings, render
from tests.lifecycle.image import packages, studio_python, wheel
from tests.lifecycle.space import FILE_SYSTEM, Space

PACKAGE = "packages/hyperpod-jlab"


@dataclass(frozen=True)
class Package:
    """A folder of wheels and the SHA-256 of its list."""

    folder: Path
    sha256: str
    wheel: Path


@pytest.fixture(scope="session")
def package() -> Iterator[Package]:
    if os.getuid() != 0:
        raise RuntimeError("Spaces need root: they have namespaces, users and mounts of their own.")
    with tempfile.TemporaryDirectory(prefix="hpj-package-") as folder:
        base = Path(folder)
        made = wheel(base / "dist")
        sha256 = packages(made, base / "packages")
        yield Package(base / "packages", sha256, made)


@pytest.fixture(scope="session")
def conda() -> Path:
    return studio_python()


@pytest.fixture
def base() -> Iterator[Path]:
    """A folder that everybody may enter, unlike pytest's own."""
    with tempfile.TemporaryDirectory(prefix="hpj-space-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture
def partition(base: Path, package: Package) -> Path:
    """A partition with the packages on it."""
    folder = base / "fsx"
    folder.mkdir()
    folder.chmod(0o1777)
    shutil.copytree(package.folder, folder / PACKAGE)
    return folder


@pytest.fixture
def space(base: Path, partition: Path, conda: Path) -> Callable[..., Space]:
    """Makes the space of the test; it is not started yet."""

    def make(**options: Any) -> Space:
        return Space(base / "space", partition, conda, **options)

    return make


@pytest.fixture
def settings(package: Package) -> ScriptSettings:
    """For a cluster with Slurm that is reached by ssh, so that the space needs no client."""
    return ScriptSettings(
        cluster="ml-cluster",
        region="us-west-2",
        orchestrator="slurm",
        file_system=FILE_SYSTEM,
        package=PACKAGE,
        package_sha256=package.sha256,
        login_nodes=("login-1",),
    )


@pytest.fixture
def script(settings: ScriptSettings) -> Callable[..., str]:
    """A script with these settings, and others."""

    def make(app: App = "code-editor", **changed: Any) -> str:
        return render(app, replace(settings, **changed))

    return make
