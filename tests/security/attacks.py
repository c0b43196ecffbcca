"""What an attacker lays into a shared partition. All of it runs as the attacker: the kernel says what of it can be done."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hyperpod_jlab.core.run_id import shard_of

HEXES = [f"{number:02x}" for number in range(256)]


def program(canaries: Path, name: str) -> str:
    """A Python program that leaves a canary, whatever it is called with, and ends as if all were well."""
    canary = str(canaries / name)
    return (
        f"#!{sys.executable}\nimport os\n"
        f"os.close(os.open({canary!r} + '.%d' % os.getpid(), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))\n"
        "print(3, 11, 0)\n"
    )


def try_to(work: Callable[[], object]) -> bool:
    """Do something if the kernel lets it be done."""
    try:
        work()
    except OSError:
        return False
    return True


def take_common_folders(partition: Path, *, stored: Sequence[str] = HEXES) -> None:
    """Be the first: make the folders that used to be common to all users, and so own them; those of the store with these names."""
    ours = partition / ".hyperpod"
    folders = [ours, ours / "runs", ours / "code"]
    folders += [*(ours / "runs" / name for name in HEXES), *(ours / "code" / name for name in stored)]
    for folder in folders:
        if try_to(folder.mkdir):
            folder.chmod(0o1777)


def take_own_folder(partition: Path, uid: int) -> None:
    """Be the first in the folder that is to be another user's."""
    ours = partition / f".hyperpod-{uid}"
    for folder in (ours, *(ours / part for part in ("runs", "code")), *(ours / "runs" / name for name in HEXES)):
        if try_to(folder.mkdir):
            folder.chmod(0o777)


def runs_folders(partition: Path, *users: int) -> list[Path]:
    """Where bundles may lie: today's folder for all, and one for each user."""
    return [partition / name / "runs" for name in (".hyperpod", *(f".hyperpod-{uid}" for uid in users))]


def place_of(runs: Path, run_id: str) -> Path:
    """The bundle of a run."""
    return runs / shard_of(run_id) / run_id


def plant(
    template: Path,
    run_id: str,
    folders: Iterable[Path],
    *,
    edit: Callable[[Path], object] = lambda _: None,
    head: Mapping[str, Any] | None = None,
) -> list[Path]:
    """Lay a copy of a bundle under another id wherever that can be done.

    Args:
        template: A bundle of the attacker's own.
        run_id: The id.
        folders: Folders of runs.
        edit: Changes a copy.
        head: Fields of its ``bundle.json``.
    """
    made = []
    for runs in folders:
        place = place_of(runs, run_id)
        if try_to(lambda place=place: place.parent.mkdir(parents=True)):  # type: ignore[misc]
            place.parent.chmod(0o1777)
        if not try_to(lambda place=place: shutil.copytree(template, place, symlinks=True)):  # type: ignore[misc]
            continue
        rewrite(place / "bundle.json", run_id=run_id, **(head or {}))
        edit(place)
        open_up(place)
        made.append(place)
    return made


def rewrite(path: Path, **fields: Any) -> None:
    """Change fields of a JSON file; one that an attack has spoilt before gets only these."""
    try:
        data = json.loads(path.read_text()) | fields
    except ValueError:
        data = fields
    put(path, json.dumps(data))


def put(path: Path, text: str) -> None:
    """Write a file in the place of whatever is there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    path.write_text(text)


def as_not_begun(bundle: Path) -> None:
    """Let a run look as if it had been written down, and neither sent nor started."""
    for name in ("status", "logs", "submission.json", "spool"):
        path = bundle / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    for name in ("status/observations", "status/actions", "logs"):
        (bundle / name).mkdir(parents=True)


def open_up(bundle: Path) -> None:
    """Let everybody write all of it, so that another user's programs fail at nothing."""
    for folder, _, files in os.walk(bundle):
        os.chmod(folder, 0o777)  # noqa: PTH101
        for name in files:
            path = Path(folder, name)
            if not path.is_symlink() and path.is_file():
                try_to(lambda path=path: path.chmod(0o777))  # type: ignore[misc]


def swap(bundle: Path, launcher: str) -> bool:
    """Put a copy of a bundle with another launcher in its place."""

    def work() -> None:
        away = bundle.with_name(f".away-{bundle.name}")
        bundle.rename(away)
        shutil.copytree(away, bundle, symlinks=True, ignore=shutil.ignore_patterns("secrets"))
        put(bundle / "launcher.py", launcher)
        open_up(bundle)

    return try_to(work)


def hijack(template: Path, run_id: str, partition: Path, launcher: str) -> list[Path]:
    """Lay a copy of somebody's bundle, as if it had not been sent and with another launcher, wherever a run of that id may be looked for."""

    def edit(place: Path) -> None:
        as_not_begun(place)
        put(place / "launcher.py", launcher)

    folders = [*runs_folders(partition, os.getuid()), template.parents[1]]
    return plant(template, run_id, folders, edit=edit)


def pose(template: Path, run_id: str, partition: Path, job: str) -> list[Path]:
    """Lay a run that says it is alice's, with a job of hers."""

    def edit(place: Path) -> None:
        shutil.rmtree(place / "status")
        (place / "status").mkdir()
        rewrite(place / "submission.json", scheduler_id=job)

    head = {"user": "alice", "created_at": 4e9}
    return plant(template, run_id, runs_folders(partition, os.getuid()), edit=edit, head=head)
