"""A victim and an attacker on one storage partition."""

from __future__ import annotations

import importlib
import os
import pkgutil
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.security.inventory import Inventory, inventory
from tests.security.people import Person
from tests.security.stage import Stage, open_stage

VICTIM, ATTACKER = 3001, 3002
PAPERS = ("Documents", "Downloads", "Desktop", "Pictures", "data", "models", "notebooks", "src")
"""Folders that alice's home has, as many homes do."""


_LINKS = ("protected_symlinks", "protected_hardlinks")


def pytest_report_header() -> str:
    """The kernel's settings that decide what an attacker may link."""
    return f"links of others: {kernel_settings()}"


def kernel_settings() -> str:
    """Whether the kernel follows links of others in sticky folders, and lets them link what they do not own."""
    names = (*_LINKS, "protected_fifos", "protected_regular")
    return ", ".join(f"{name} {_setting(name).read_text().strip()}" for name in names)


def _setting(name: str) -> Path:
    return Path("/proc/sys/fs") / name


@pytest.fixture(scope="session", autouse=True)
def links() -> Iterator[None]:
    """Other settings for the time of the tests, where ``HYPERPOD_PROTECTED_LINKS`` asks for them: ``01`` is symlinks 0, hardlinks 1.

    They are the whole machine's, in no namespace, so nothing changes them unasked: without the variable the tests run with what is set.
    """
    wanted = os.environ.get("HYPERPOD_PROTECTED_LINKS")
    if not wanted:
        yield
        return
    before = {name: _setting(name).read_text() for name in _LINKS}
    try:
        for name, value in zip(_LINKS, wanted, strict=True):
            _setting(name).write_text(value)
        yield
    finally:
        for name, text in before.items():
            _setting(name).write_text(text)


@pytest.fixture(scope="session", autouse=True)
def warm() -> None:
    """Import once what each forked command would import anew."""
    for part in ("api", "capture", "cli", "logs", "engines.local", "run", "clusters", "storage"):
        package = importlib.import_module(f"hyperpod_jlab.{part}")
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if ".runtime" not in found.name:
                importlib.import_module(found.name)


@dataclass
class Scene:
    """Two users, their partition, and what tells whether something went wrong.

    Attributes:
        stage: Where it is.
        partition: The partition.
        alice: The victim.
        bob: The attacker.
        canaries: Open to both: a program of bob's leaves a file here, whose owner tells as whom it ran.
    """

    stage: Stage
    partition: Path
    alice: Person
    bob: Person
    canaries: Path

    @property
    def executed(self) -> dict[str, int]:
        """What programs of bob's left, and as whom they ran."""
        return {path.name: path.lstat().st_uid for path in self.canaries.iterdir()}

    @property
    def betrayed(self) -> list[str]:
        """What of bob's ran as alice."""
        return [name for name, uid in self.executed.items() if uid == self.alice.uid]

    @property
    def kept(self) -> Inventory:
        """What bob must not bring alice to change: her home but for what her own programs keep there, and what others gave her."""
        return inventory(self.alice.home, leave_out=(self.alice.state,)) | inventory(self.stage.folder / "elsewhere")


@pytest.fixture
def stage() -> Iterator[Stage]:
    """A stage for alice and bob."""
    if os.getuid() != 0:
        pytest.skip("only root can be two users")
    folder = Path(tempfile.mkdtemp(prefix="hyperpod-security-"))
    folder.chmod(0o755)
    try:
        with open_stage(folder, {"alice": VICTIM, "bob": ATTACKER}) as made:
            yield made
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def make_scene(stage: Stage) -> Callable[..., Scene]:
    """Makes a scene; of a partition with `mode`, which alice's configuration calls `shared` or not."""

    def make(mode: int = 0o1777, *, shared: bool = True, slots: int = 2) -> Scene:
        partition, canaries = stage.folder / "partition", stage.folder / "canaries"
        for folder, its_mode in ((partition, mode), (canaries, 0o1777)):
            folder.mkdir()
            folder.chmod(its_mode)
        alice = Person(stage, "alice", VICTIM, partition, shared=shared, slots=slots)
        bob = Person(stage, "bob", ATTACKER, partition)
        _furnish(stage.folder, alice)
        return Scene(stage, partition, alice, bob, canaries)

    return make


@pytest.fixture
def scene(make_scene: Callable[..., Scene]) -> Scene:
    """A partition that all may add to, as an admin makes it for a team."""
    return make_scene()


def _furnish(folder: Path, alice: Person) -> None:
    """What alice has: papers of her own, and a folder elsewhere that only she may write."""
    elsewhere = folder / "elsewhere"
    for path in (*(alice.home / name for name in PAPERS), elsewhere):
        path.mkdir()
        (path / "thesis.txt").write_text("years of work\n")
        (path / "deep" / "er").mkdir(parents=True)
        (path / "deep" / "er" / "data.bin").write_bytes(bytes(range(256)) * 8)
    (alice.home / ".bashrc").write_text("# mine\n")
    (alice.home / "private.txt").write_text("known to alice alone\n")
    (alice.home / "private.txt").chmod(0o600)
    for top in (alice.home, elsewhere):
        for path in (top, *top.rglob("*")):
            os.chown(path, alice.uid, alice.uid)
