"""A terminal for ``hpj`` to run on."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import termios

from .conftest import Home


def on_terminal(home: Home, *words: str, answers: tuple[tuple[str, str], ...] = (), columns: int = 100) -> str:
    """What a terminal gets to see; each answer is typed once its question has appeared."""
    leader, follower = pty.openpty()
    fcntl.ioctl(leader, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    env = {"TERM": "xterm-256color"}
    process = home.start(*words, stdin=follower, stdout=follower, stderr=follower, env=env)
    os.close(follower)
    shown, left = "", list(answers)
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:  # the last one has closed it
            break
        shown += part.decode()
        if left and left[0][0] in shown:
            os.write(leader, left.pop(0)[1].encode() + b"\n")
    process.wait(timeout=30)
    os.close(leader)
    assert left == []
    return shown
