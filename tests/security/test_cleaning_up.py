"""``hpj clean`` on a partition that others write to: it removes what is the user's own, and nothing that lies elsewhere."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.security.attacks import HEXES, plant, runs_folders, take_common_folders, try_to
from tests.security.conftest import PAPERS, Scene
from tests.security.people import Going

FILES = 4_000
TIMEOUT = 120.0


@pytest.fixture
def template(scene: Scene) -> Path:
    """A run of bob's that has ended just now."""
    scene.bob.hpj("submit", "--no-project-files", "--wait", "--run-id", "template", "-c", "true").ok()
    return scene.bob.bundle("template")


def _lay_stumbling_blocks(folders: list[Path]) -> None:
    """A folder that cannot be entered, called like one that many homes have, and seen as late as can be by who goes through all.

    It is here that a removal by descriptors stumbles, and one by paths goes on behind the link.
    """
    for folder in folders:
        for name in PAPERS:
            (folder / name).mkdir(mode=0)
        *early, _ = [name for name in os.listdir(folder) if name in PAPERS]  # noqa: PTH208 - in its own order
        for name in early:
            (folder / name).rmdir()


def _exchange_once_it_begins(folder: Path, target: Path) -> int:
    """Put a link in a folder's place as soon as somebody begins to remove what is in it."""
    probes = [folder / f"f{number}" for number in range(0, FILES, 97)]
    end = time.monotonic() + TIMEOUT
    while all(probe.exists() for probe in probes):
        if time.monotonic() > end:
            return 1
    folder.rename(folder.with_name("away"))
    folder.symlink_to(target)
    return 0


@pytest.mark.parametrize("part", ["secrets", "work"])
def test_what_a_link_leads_to_is_not_removed(scene: Scene, template: Path, part: str) -> None:
    """Finding 3."""
    alice, bob = scene.alice, scene.bob
    alice.hpj("submit", "--no-project-files", "--wait", "--run-id", "mine", "-c", "true").ok()
    now = time.time()

    def edit(place: Path) -> None:
        folder = place / part
        folder.mkdir(exist_ok=True)
        for number in range(FILES):
            (folder / f"f{number}").touch()

    folders = runs_folders(scene.partition, bob.uid)
    head = {"user": "alice", "created_at": now - 2}
    planted = bob.do(lambda: plant(template, "old-one", folders, edit=edit, head=head))
    assert planted, "bob could lay his bundle nowhere"
    bob.do(lambda: _lay_stumbling_blocks([place / part for place in planted]))
    watchers = [_watch(scene, place / part) for place in planted]
    before = scene.kept
    older = "0s" if part == "work" else "30d"
    for _ in range(2):
        alice.hpj("clean", "--yes", "--older", older).clean()
    assert scene.kept == before
    for watcher in watchers:
        watcher.end()
    assert all(place.exists() for place in planted), "a run of bob's was removed by alice"


def _watch(scene: Scene, folder: Path) -> Going:
    return scene.bob.start(lambda: _exchange_once_it_begins(folder, scene.alice.home))


def test_what_others_leave_in_the_store_stops_no_clean_up(scene: Scene) -> None:
    """Finding 13."""
    alice, bob = scene.alice, scene.bob

    def litter() -> int:
        count = 0
        take_common_folders(scene.partition)
        for top in (".hyperpod", f".hyperpod-{bob.uid}"):
            for name in ("00", "7f", "ff"):
                folder = scene.partition / top / "code" / name
                try_to(lambda folder=folder: folder.mkdir(parents=True))  # type: ignore[misc]
                count += try_to((folder / "junk").touch)
        return count

    assert bob.do(litter), "bob could lay his litter nowhere"
    alice.hpj("submit", "--no-project-files", "--wait", "--run-id", "mine", "-c", "true").ok()
    bundle = alice.bundle("mine")
    cleaned = alice.hpj("clean", "--yes", "--older", "1h", at_first=_in_two_hours).clean()
    assert cleaned.code == 0, cleaned.text
    assert not bundle.exists()
    assert alice.runs() == {}


def _in_two_hours() -> None:
    now = time.time
    time.time = lambda: now() + 7200


def test_a_store_of_others_is_not_gone_through(scene: Scene) -> None:
    """What finding 13 is of a kind with: folders without end, links and pipes where stored files should be."""
    alice, bob = scene.alice, scene.bob

    def litter() -> None:
        take_common_folders(scene.partition, stored=())
        for top in (".hyperpod", f".hyperpod-{bob.uid}"):
            code = scene.partition / top / "code"
            try_to(lambda code=code: code.mkdir(parents=True))  # type: ignore[misc]
            for name, target in zip(HEXES, (alice.home, Path("/proc"), code, Path("loop")) * 8, strict=False):
                try_to(lambda: (code / name).symlink_to(target))  # noqa: B023
            try_to((code / "zz").touch)

    bob.do(litter)
    before = scene.kept
    for words in (
        ("submit", "--no-project-files", "--wait", "--run-id", "mine", "-c", "true"),
        ("clean", "--yes", "--older", "1h"),
        ("storage",),
        ("doctor",),
    ):
        alice.hpj(*words, at_first=_in_two_hours if words[0] == "clean" else None).clean()
    assert scene.kept == before
