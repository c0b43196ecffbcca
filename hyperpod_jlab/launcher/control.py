"""The line between a pod's program and the node program that it started."""

from __future__ import annotations

import contextlib
import json
import os
from typing import Any, Dict, List, Mapping, Optional


class Control:
    """The node's end of it: a socket on which each line is a JSON object.

    The pod's program says ``{"stop": REASON}`` and ``{"note": TEXT}``; the node says ``{"attempt": N}`` when it is in one, ``{"failing": true}`` as soon as it
    knows, and ``{"end": {...}}`` last. Without a descriptor nobody is there.
    """

    def __init__(self, descriptor: Optional[int]) -> None:
        self.descriptor = descriptor
        self.stop: Optional[str] = None
        """Why the node has to end, once it has."""
        self._buffer = b""
        self._notes: List[str] = []
        if descriptor is not None:
            os.set_blocking(descriptor, False)
            os.set_inheritable(descriptor, False)

    def read(self) -> None:
        """Take in what was said."""
        while self.descriptor is not None:
            try:
                data = os.read(self.descriptor, 65536)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:  # the pod's program is gone, and the kernel ends us
                self.descriptor = None
                return
            *lines, self._buffer = (self._buffer + data).split(b"\n")
            for line in lines:
                self._handle(json.loads(line.decode("utf-8")))

    def _handle(self, document: Dict[str, Any]) -> None:
        if "stop" in document:
            self.stop = self.stop or str(document["stop"])
        if "note" in document:
            self._notes.append(str(document["note"]))

    def pop_notes(self) -> List[str]:
        """What is to be written into the node's log since the last call."""
        notes, self._notes = self._notes, []
        return notes

    def send(self, document: Mapping[str, Any]) -> None:
        """Say something to the pod's program."""
        if self.descriptor is not None:
            with contextlib.suppress(OSError):
                os.write(self.descriptor, json.dumps(document).encode("utf-8") + b"\n")
