"""A pod's node: the program `node` in a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
import time
from typing import Any, Dict, List, Optional

from .contract import TAKEN_SIGNALS
from .system import PARENT, running_processes, send


class NodeProcess:
    """The program `node` in one attempt."""

    def __init__(self, words: List[str], incarnation: str) -> None:
        import subprocess

        self.incarnation = incarnation
        self.attempt = 0
        self.failing = False
        self.end: Optional[Dict[str, Any]] = None
        self.told: Optional[str] = None
        self.warned = False
        self._sock, theirs = socket.socketpair()
        self._sock.setblocking(False)
        self._held = b""
        with theirs:
            # -I as for all programs of ours: what lies in the working folder is not to be imported
            argv = [sys.executable, "-I", os.path.abspath(__file__), "node", *words]
            # What is sent to it before it has handlers waits for them: what is blocked here is so there.
            before = signal.pthread_sigmask(signal.SIG_BLOCK, TAKEN_SIGNALS)
            try:
                popen = subprocess.Popen(
                    [*argv, "--control=%d" % theirs.fileno()],
                    env={**os.environ, PARENT: str(os.getpid())},
                    stdin=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                )
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
        popen.returncode = 0  # we wait for it ourselves
        self.pid = popen.pid

    def fileno(self) -> int:
        """What to wait for."""
        return self._sock.fileno()

    def tell(self, document: Dict[str, Any]) -> None:
        """Say something to it."""
        with contextlib.suppress(OSError):
            self._sock.sendall(json.dumps(document).encode("utf-8") + b"\n")

    def stop(self, reason: str) -> None:
        """Have it end."""
        if self.told is None:
            self.told = reason
            self.tell({"stop": reason})

    def read(self) -> None:
        """Take in what it said."""
        while True:
            try:
                data = self._sock.recv(65536)
            except OSError:
                return
            if not data:
                return
            *lines, self._held = (self._held + data).split(b"\n")
            for line in lines:
                said = json.loads(line.decode("utf-8"))
                self.attempt = said.get("attempt", self.attempt)
                self.failing = self.failing or "failing" in said
                self.end = said.get("end", self.end)

    def close(self) -> None:
        """End the line to it."""
        self._sock.close()


def end_all_below() -> None:
    """Kill what a node's program left when it was killed itself."""
    me = os.getpid()
    for _ in range(20):
        everybody = running_processes()
        below = {me}
        grown = True
        while grown:
            more = {one.pid for one in everybody.values() if one.parent in below} - below
            below |= more
            grown = bool(more)
        below.discard(me)
        if not below:
            return
        for pid in below:
            send(pid, signal.SIGKILL)
        time.sleep(0.05)


def write_out(data: bytes) -> None:
    """Write frames while no node's program does."""
    with contextlib.suppress(OSError):
        while data:
            data = data[os.write(1, data) :]
