"""``hpj`` on a terminal, with programs beside it that a test chooses."""

from __future__ import annotations

import os
import pty
import shutil
import stat
import subprocess
from pathlib import Path

from tests.cli.conftest import HPJ, Home


class Shell:
    """A terminal with some programs in it."""

    def __init__(self, home: Home, folder: Path) -> None:
        self._home, self._folder = home, folder
        folder.mkdir()

    def install(self, name: str, script: str) -> None:
        path = self._folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def sh(self, line: str) -> str:
        """All that a line for a shell prints, without a terminal."""
        environment = self._home.process_environment({"PATH": f"{self._folder}{os.pathsep}{os.environ['PATH']}"})
        done = subprocess.run(["/bin/sh", "-c", line], env=environment, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    def run(self, *words: str, typed: str = "") -> tuple[int, str]:
        """Exit code and what stood on the screen.

        Args:
            words: The command line.
            typed: What is typed meanwhile.
        """
        ours, theirs = pty.openpty()
        environment = self._home.process_environment({"PATH": str(self._folder)})
        program = shutil.which(HPJ[0]) or HPJ[0]
        started = subprocess.Popen(
            [program, *HPJ[1:], *words],
            cwd=self._home.work,
            env=environment,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        os.write(ours, typed.encode())
        screen = b""
        try:
            while part := os.read(ours, 4096):
                screen += part
        except OSError:  # the other side is closed
            pass
        finally:
            os.close(ours)
        return started.wait(60), screen.decode().replace("\r\n", "\n")
