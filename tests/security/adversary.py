"""A user who does to a shared partition, at random and without end, whatever the kernel lets be done."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.security.attacks import (
    HEXES,
    as_not_begun,
    open_up,
    place_of,
    program,
    put,
    rewrite,
    swap,
    take_common_folders,
    take_own_folder,
)
from tests.security.fillings import LOG, METRICS, OUTPUTS, RESOURCES, absurd_numbers, hole, short_quadratic

_MOST_PLANTED = 12
_MOST_SEEN = 2000
_PAUSE = 0.004
_FILES = (
    "bundle.json",
    "spec.json",
    "launch.json",
    "files.json",
    "local.json",
    "submission.json",
    "launcher.py",
    "code/main.py",
    "result.json",
    "status/claim.json",
    "status/owner.json",
    "status/attempt-1/claim.json",
    "status/attempt-1/node-0.json",
    "status/observations/local.json",
    "status/actions/1-a.json",
    "logs/attempt-1/node-0.rank-0.log",
    "logs/attempt-1/node-0.log",
    "logs/attempt-1/node-0.rank-0.idx",
    METRICS,
    OUTPUTS,
    RESOURCES,
    "logs/supervisor.log",
    "secrets",
    "status",
    "tasks",
    "logs",
    "work",
)


@dataclass(frozen=True)
class Place:
    """Where it happens.

    Attributes:
        partition: The partition.
        template: A bundle of the attacker's own.
        canaries: Where the attacker's programs tell as whom they ran.
        home: The victim's home.
        readable: Files of the victim's that all may read.
        victim: The victim's uid.
        attacker: The attacker's.
        ids: Ids that the victim will give to runs, as far as they can be guessed.
    """

    partition: Path
    template: Path
    canaries: Path
    home: Path
    readable: tuple[Path, ...]
    victim: int
    attacker: int
    ids: tuple[str, ...]


class Adversary:
    """One of them; all that it does follows from the seed and from what it finds."""

    def __init__(self, place: Place, seed: str) -> None:
        self._place = place
        self._random = random.Random(seed)
        self._planted = 0
        self._seen: list[Path] = []
        self._small: list[Callable[[], object]] = [
            self._rename,
            self._exchange,
            self._link,
            self._hard_link,
            self._remove,
            self._truncate,
            self._write,
            self._fill,
            self._chmod,
            self._pipe,
        ]
        self._large = [self._folder, self._take, self._hijack]
        self._large += [self._plant] * 4 + [self._swap] * 3

    def rampage(self, seconds: float) -> int:
        """Go on for so long."""
        os.nice(5)
        end = time.monotonic() + seconds
        count = 0
        while time.monotonic() < end:
            if count % 32 == 0:
                self._look()
            # What there is stays bounded: this is no attack on the disk's size.
            full = len(self._seen) > _MOST_SEEN
            steps = [*self._small, *([self._remove] * 4 if full else self._large)]
            with contextlib.suppress(OSError, ValueError, TypeError, KeyError, IndexError, shutil.Error):
                self._random.choice(steps)()
            count += 1
            time.sleep(_PAUSE)
        return 0

    def _look(self) -> None:
        """See what there is."""
        self._seen = []
        for folder, names, files in os.walk(self._place.partition):
            self._seen += [Path(folder, name) for name in (*names, *files)]
            if len(self._seen) > _MOST_SEEN:
                return

    def _some(self) -> Path:
        """Something of what is there, or a name that may come to be used."""
        if self._seen and self._random.random() < 0.9:
            return self._random.choice(self._seen)
        return self._runs() / self._random.choice(HEXES)

    def _runs(self) -> Path:
        mine, theirs = self._place.attacker, self._place.victim
        name = self._random.choice((".hyperpod", f".hyperpod-{mine}", f".hyperpod-{theirs}"))
        return self._place.partition / name / self._random.choice(("runs", "runs", "code"))

    def _target(self) -> Path:
        """Where a link may lead."""
        place = self._place
        near = (place.home, place.home / "Documents", place.home / ".bashrc", place.home / "new")
        far = (Path("/dev/zero"), Path("/proc/self"), Path("/etc/passwd"), Path("loop"))
        return self._random.choice((*near, *near, *place.readable, *far, self._some()))

    def _rename(self) -> None:
        path = self._some()
        path.rename(path.with_name(f".{self._random.randrange(99)}-{path.name}"[:200]))

    def _exchange(self) -> None:
        one, other = self._some(), self._some()
        aside = one.with_name(f".aside-{self._random.randrange(99)}")
        one.rename(aside)
        other.rename(one)
        aside.rename(other)

    def _clear(self, path: Path) -> None:
        if path.is_dir() and not path.is_symlink():
            path.rename(path.with_name(f".{self._random.randrange(10**6)}"))
        else:
            path.unlink(missing_ok=True)

    def _link(self) -> None:
        path = self._some()
        self._clear(path)
        path.symlink_to(self._target())

    def _hard_link(self) -> None:
        path = self._some()
        source = self._random.choice((*self._place.readable, self._some()))
        os.link(source, path if path.is_dir() is False else path / source.name)

    def _remove(self) -> None:
        path = self._some()
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()

    def _truncate(self) -> None:
        os.truncate(self._some(), self._random.choice((0, 1, 100, 1 << 40)))

    def _write(self) -> None:
        path = self._some()
        if path.is_file():
            self._clear(path)
            path.write_text(self._text())

    def _fill(self) -> None:
        """Something that is short to write and long to read, in the place of a file or in a folder of logs."""
        path = self._some()
        if path.is_dir() and self._random.random() < 0.5:
            path /= self._random.choice((LOG, METRICS, OUTPUTS, RESOURCES)).rpartition("/")[2]
        elif not path.is_file():
            return
        self._random.choice((hole, short_quadratic, absurd_numbers))(path)

    def _text(self) -> str:
        return self._random.choice(
            (
                "",
                "{",
                "[" * 100_000,
                "null",
                '{"a": ' * 5000 + "1" + "}" * 5000,
                json.dumps({"format": 1, "name": "x" * 2_000_000}),
                json.dumps({"format": 10**30}),
                '{"time": 1e400, "ended_at": NaN}',
                "\ud800".encode("utf-8", "surrogatepass").decode("latin-1"),
                program(self._place.canaries, "written"),
            )
        )

    def _chmod(self) -> None:
        self._some().chmod(self._random.choice((0, 0o500, 0o777, 0o1777, 0o4755)))

    def _pipe(self) -> None:
        path = self._some()
        self._clear(path)
        os.mkfifo(path, 0o666)

    def _folder(self) -> None:
        path = self._random.choice((self._runs(), self._some()))
        folder = path / self._random.choice((*HEXES, "tasks", "secrets"))
        folder.mkdir(parents=True)
        folder.chmod(self._random.choice((0o777, 0o1777)))

    def _take(self) -> None:
        if self._random.random() < 0.5:
            take_common_folders(self._place.partition)
        else:
            take_own_folder(self._place.partition, self._place.victim)

    def _plant(self) -> None:
        """A bundle of one's own that says whatever may do harm."""
        guessed = self._random.random() < 0.1
        run_id = self._random.choice(self._place.ids) if guessed else f"of-bob-{self._planted % _MOST_PLANTED}"
        place = place_of(self._runs().parent / "runs", run_id)
        with contextlib.suppress(OSError):
            place.parent.mkdir(parents=True)
            place.parent.chmod(0o1777)
        shutil.copytree(self._place.template, place, symlinks=True)
        self._planted += 1
        self._pose(place, run_id)
        if self._random.random() < 0.4:
            as_not_begun(place)
        for _ in range(self._random.randrange(4)):
            self._spoil(place)
        if self._random.random() < 0.7:
            open_up(place)

    def _pose(self, place: Path, run_id: str) -> None:
        chance = self._random.random
        head: dict[str, Any] = {"run_id": run_id}
        head["user"] = self._random.choice(("alice", "bob", "root", "\x1b[2J", "x" * 300))
        head["created_at"] = time.time() + self._random.choice((-1e6, -60, 0, 3600, 1e12))
        spec = json.loads((place / "spec.json").read_text())
        if chance() < 0.3:
            head["array"] = spec["array"] = "0-99999"
        if chance() < 0.5:
            python = place / "python3"
            put(python, program(self._place.canaries, "interpreter"))
            python.chmod(0o755)
            spec["environment"] = {**spec.get("environment", {}), "python": str(python)}
        if chance() < 0.5:
            put(place / "launcher.py", program(self._place.canaries, "launcher"))
        if chance() < 0.2:
            spec["after"] = [self._random.choice(self._place.ids)]
        if chance() < 0.2:
            head["nodes"] = spec["resources"] = 10**9
        put(place / "spec.json", json.dumps(spec))
        rewrite(place / "bundle.json", **head)

    def _spoil(self, place: Path) -> None:
        """Put something else in the place of a part of a bundle."""
        part = place / self._random.choice(_FILES)
        part.parent.mkdir(parents=True, exist_ok=True)
        if part.exists() or part.is_symlink():
            self._clear(part)
        how = self._random.randrange(7)
        if how == 0:
            part.symlink_to(self._target())
        elif how == 1:
            os.mkfifo(part, 0o666)
        elif how == 2:
            part.mkdir()
            for number in range(200):
                (part / f"{number}").touch()
            (part / "Documents").mkdir(mode=0)
        elif how < 5:
            self._random.choice((hole, short_quadratic, absurd_numbers))(part)
        else:
            part.write_text(self._text())

    def _hijack(self) -> None:
        """A copy of somebody's bundle under an id that is to come."""
        bundles = [path for path in self._seen if path.name == "bundle.json"]
        source = self._random.choice(bundles).parent
        run_id = self._random.choice(self._place.ids)
        place = place_of(self._runs().parent / "runs", run_id)
        shutil.copytree(source, place, symlinks=True)
        as_not_begun(place)
        rewrite(place / "bundle.json", run_id=run_id)
        put(place / "launcher.py", program(self._place.canaries, "hijacked"))
        open_up(place)

    def _swap(self) -> None:
        """Another launcher in somebody's bundle, or a link in the place of a part that is just being worked on."""
        bundles = [path for path in self._seen if path.name == "bundle.json"]
        bundle = self._random.choice(bundles).parent
        if self._random.random() < 0.5:
            swap(bundle, program(self._place.canaries, "swapped"))
        else:
            self._spoil(bundle)
