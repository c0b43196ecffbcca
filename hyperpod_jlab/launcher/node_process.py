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

from .contract import HANDLED_SIGNALS
from .system import PARENT, running_processes, send


class NodeProcess:
    """The program `node` in one attempt."""

    def __init__(self, node_argv: List[str], incarnation: str) -> None:
        import subprocess

        self.incarnation = incarnation
        self.attempt = 0
        self.failing = False
        self.end: Optional[Dict[str, Any]] = None
        self.end_signal: Optional[str] = None
        self.warned = False
        self._sock, child_socket = socket.socketpair()
        self._sock.setblocking(False)
        self._buffer = b""
        with child_socket:
            # -I as for all programs of ours: what lies in the working folder is not to be imported
            argv = [sys.executable, "-I", os.path.abspath(__file__), "node", *node_argv]
            # What is sent to it before it has handlers waits for them: what is blocked here is so there.
            previous_mask = signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED_SIGNALS)
            try:
                popen = subprocess.Popen(
                    [*argv, "--control=%d" % child_socket.fileno()],
                    env={**os.environ, PARENT: str(os.getpid())},
                    stdin=subprocess.DEVNULL,
                    pass_fds=[child_socket.fileno()],
                    start_new_session=True,
                )
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, previous_mask)
        popen.returncode = 0  # we wait for it ourselves
        self.pid = popen.pid

    def fileno(self) -> int:
        """What to wait for."""
        return self._sock.fileno()

    def send(self, document: Dict[str, Any]) -> None:
        """Say something to it."""
        with contextlib.suppress(OSError):
            self._sock.sendall(json.dumps(document).encode("utf-8") + b"\n")

    def stop(self, reason: str) -> None:
        """Have it end."""
        if self.end_signal is None:
            self.end_signal = reason
            self.send({"stop": reason})

    def read(self) -> None:
        """Take in what it said."""
        while True:
            try:
                data = self._sock.recv(65536)
            except OSError:
                return
            if not data:
                return
            *lines, self._buffer = (self._buffer + data).split(b"\n")
            for line in lines:
                message = json.loads(line.decode("utf-8"))
                self.attempt = message.get("attempt", self.attempt)
                self.failing = self.failing or "failing" in message
                self.end = message.get("end", self.end)

    def close(self) -> None:
        """End the line to it."""
        self._sock.close()


def end_descendants() -> None:
    """Kill what a node's program left when it was killed itself."""
    own_pid = os.getpid()
    for _ in range(20):
        processes = running_processes()
        descendants = {own_pid}
        grown = True
        while grown:
            new_descendants = {
                process.pid for process in processes.values() if process.parent in descendants
            } - descendants
            descendants |= new_descendants
            grown = bool(new_descendants)
        descendants.discard(own_pid)
        if not descendants:
            return
        for pid in descendants:
            send(pid, signal.SIGKILL)
        time.sleep(0.05)
