"""What this machine has made to verify facts: a note for each run, locked while the run lives, so that what is left of one that was killed is known.

The tags on what was made say the same to other machines (`throw_away`). A note says besides whether the run still lives, and which domain it made: AWS
leaves security groups when a domain is deleted, which bear its id and no tag.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hyperpod_jlab.model.errors import StorageError


@dataclass(frozen=True)
class Note:
    """What a run that is over has left: its name, and the domains that it made."""

    name: str
    domains: tuple[str, ...]


class Journal:
    """The notes of one account and region.

    Args:
        account: The account's id.
        region: The region.
    """

    def __init__(self, account: str, region: str) -> None:
        base = os.environ.get("XDG_STATE_HOME") or Path("~/.local/state").expanduser()
        self._folder = Path(base) / "hyperpod-jlab" / "verify" / f"{account}-{region}"
        self._held: dict[str, int] = {}

    def begin(self, name: str) -> None:
        """Begin the note of a run of ours; it is locked as long as this process lives.

        Raises:
            StorageError: It cannot be written: nothing may be made then.
        """
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            held = os.open(self._folder / name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            fcntl.flock(held, fcntl.LOCK_EX)
        except OSError as error:
            raise StorageError(
                f"{self._folder} cannot be written: {error.strerror}",
                hint="set XDG_STATE_HOME to a folder on this machine's own disk",
            ) from error
        self._held[name] = held

    def add(self, name: str, domain: str) -> None:
        """Note a domain that the run has made."""
        os.write(self._held[name], f"{domain}\n".encode())
        os.fsync(self._held[name])

    def end(self, name: str) -> None:
        """All that the run has made is gone."""
        (self._folder / name).unlink(missing_ok=True)
        self.release(name)

    def release(self, name: str) -> None:
        """The run is over, whatever it has left."""
        held = self._held.pop(name, None)
        if held is not None:
            os.close(held)

    def left(self) -> Iterator[Note]:
        """The notes of runs that are over."""
        for path in sorted(self._folder.glob("*")):
            if path.name not in self._held and not _lives(path):
                domains = path.read_text(encoding="utf-8").split()
                yield Note(path.name, tuple(domains))

    def lives(self, name: str) -> bool:
        """Whether a run of this machine is under way."""
        path = self._folder / name
        return name in self._held or (path.exists() and _lives(path))


def _lives(path: Path) -> bool:
    """Whether the process that began a note still has it locked."""
    found = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(found)
    return False
