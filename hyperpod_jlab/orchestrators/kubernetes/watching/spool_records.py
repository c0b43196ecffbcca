"""Records made from the frames of pods: attempts numbered, files put where the launcher would have written them. Any number of processes may do so at once."""

from __future__ import annotations

import contextlib
import json
import re
import secrets
from pathlib import Path
from typing import Any

from hyperpod_jlab.orchestrators.kubernetes.watching.frames import RecordFile
from hyperpod_jlab.orchestrators.kubernetes.watching.spool_files import Modes
from hyperpod_jlab.storage import atomic, descent
from hyperpod_jlab.storage.removal import remove_tree

_IN_ATTEMPT = re.compile(r"(status/(?:observations/launcher\.)?attempt-)([0-9]+)((?:/|\.).*)")
_ATTEMPT = re.compile(r"attempt-([1-9][0-9]{0,8})")


class SpooledRecords:
    """The records of a run. All methods may block.

    Args:
        records: The run's records folder.
        modes: For what is made.
    """

    def __init__(self, records: Path, modes: Modes) -> None:
        self._records = records
        self._status = records / "status"
        self._modes = modes

    def attempt(self, told: int, claim: bytes) -> int:
        """The number of an attempt here, which is opened if need be.

        Args:
            told: Its number as its launchers count: they begin anew when none of the run's pods is left that remembers.
            claim: Its claim. By the incarnation in it an attempt is known.
        """
        wanted = _incarnation(claim)
        while True:
            claims = self._claims()
            for number, found in claims.items():
                if found == wanted:
                    return number
            number = told if told not in claims else max(claims) + 1
            if self._open(number, claim):
                return number

    def put(self, file: RecordFile, number: int | None) -> None:
        """Write a file, unless a later one of the same path is there.

        Args:
            file: The file.
            number: Of its attempt here; None for one that belongs to no attempt.
        """
        if file.content is None:
            return
        path, content = file.path, file.content
        found = _IN_ATTEMPT.fullmatch(path)
        if found is not None and number is not None:
            path = f"{found[1]}{number}{found[3]}"
            if "observations" in path:
                content = _renumbered(content, number)
        target = self._records / path
        self._modes.make(target.parent)
        if file.once:
            if not descent.is_file(target):
                descent.create(target, content, mode=self._modes.file)
        else:
            self._replace(target, content, int(file.time * 1e9))

    def _replace(self, target: Path, content: bytes, stamp: int) -> None:
        """Write a file whose time of change is when its launcher sent it, so that everybody sees which one is later."""
        try:
            if descent.state(target).st_mtime_ns >= stamp:
                return
        except FileNotFoundError:
            pass
        descent.replace(target, content, mode=self._modes.file, stamp=stamp)

    def _open(self, number: int, claim: bytes) -> bool:
        """Make an attempt's folder with its claim in it; False when somebody else did."""
        self._modes.make(self._status)
        staging = self._status / f".attempt-{secrets.token_hex(6)}"
        descent.make_folder(staging, self._modes.folder)
        try:
            descent.create(staging / "claim.json", claim, mode=self._modes.file)
            with contextlib.suppress(OSError):  # it is there, and not empty
                descent.rename(staging, self._status / f"attempt-{number}")
                return True
            return False
        finally:
            with contextlib.suppress(OSError):
                remove_tree(staging)

    def _claims(self) -> dict[int, str | None]:
        """The incarnations of the attempts that are there."""
        found: dict[int, str | None] = {}
        with contextlib.suppress(FileNotFoundError):
            for name in descent.names(self._status):
                number = _ATTEMPT.fullmatch(name)
                if number is not None:
                    path = self._status / name / "claim.json"
                    with contextlib.suppress(OSError):
                        found[int(number[1])] = _incarnation(descent.read(path))
        return found


def attempt_of(path: str) -> int | None:
    """The attempt to which a file of the records folder belongs, as its launcher counts; None for one that belongs to none."""
    found = _IN_ATTEMPT.fullmatch(path)
    return int(found[2]) if found is not None else None


def is_claim(path: str) -> bool:
    """Whether a file is an attempt's claim."""
    return path.endswith("/claim.json") and attempt_of(path) is not None


def _incarnation(claim: bytes) -> str | None:
    found = _document(claim).get("incarnation")
    return str(found) if found is not None else None


def _renumbered(content: bytes, number: int) -> bytes:
    document = _document(content)
    return atomic.to_json({**document, "attempt": number}) if document else content


def _document(content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
