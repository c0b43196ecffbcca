"""Processes that submit at the same moment."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass

from tests.mounts import ROOT


@dataclass(frozen=True)
class Answer:
    """What a submitting process said, and how it ended (negative: by a signal)."""

    code: int
    said: str


class Submitting:
    """A process that is ready to submit and waits for the word."""

    def __init__(self, run_id: str, command: str, **options: object) -> None:
        words = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
        # The folder is the caller's, so that capture sees the test's own files; the tests' modules come by path.
        start = f"import sys; sys.path.insert(0, {str(ROOT)!r}); sys.argv[0] = 'submitting'; "
        start += "from tests.services.submitting import main; sys.exit(main())"
        self._process = subprocess.Popen(
            [sys.executable, "-c", start, run_id, command, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ready(self) -> None:
        """Wait until everything is imported."""
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def go(self) -> None:
        """Give the word."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def answer(self) -> Answer:
        """Wait for the end."""
        said, _ = self._process.communicate(timeout=90)
        return Answer(self._process.returncode, said.strip())


def all_at_once(submitting: list[Submitting]) -> list[Answer]:
    """Let them all go at the same moment."""
    for one in submitting:
        one.ready()
    for one in submitting:
        one.go()
    return [one.answer() for one in submitting]
