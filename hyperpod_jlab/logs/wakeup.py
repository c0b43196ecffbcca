"""inotify as an additional wake-up: where it works, news is seen at once; where it does not, nothing is lost but time.

Lustre and NFS report only this machine's own writes, so no notification never means no news.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hyperpod_jlab.storage import descent

_LOG = logging.getLogger(__name__)
_EVENT = struct.Struct("iIII")
_BUFFER = 64 << 10
_GAP = 0.002


class Wakeups:
    """Watches folders and tells the names of the files in them that were made or written to.

    Args:
        told: Called in the event loop with a watched folder and the names in it.
    """

    def __init__(self, told: Callable[[Path, set[str]], None]) -> None:
        self._told = told
        self._folders: dict[int, Path] = {}
        self._inotify: Any = None
        self._fd = -1
        self._loop: asyncio.AbstractEventLoop | None = None
        self._resuming: asyncio.TimerHandle | None = None

    def start(self) -> bool:
        """Begin, in the running event loop; tells whether there is an inotify to be had."""
        if sys.platform != "linux":
            return False
        try:
            from asyncinotify import Inotify

            self._inotify = Inotify()
            self._fd = self._inotify.fd
            self._loop = asyncio.get_running_loop()
            # Events come in floods while ranks write; they are parsed in one go, not one object each.
            self._loop.add_reader(self._fd, self._read)
        except (ImportError, OSError, NotImplementedError) as error:
            _LOG.debug("no inotify, logs are polled only: %s", error)
            self.stop()
            return False
        return True

    def watch(self, folder: Path) -> None:
        """Watch a folder, once; one that is not there is not watched."""
        if self._inotify is None or folder in self._folders.values():
            return
        from asyncinotify import Mask

        try:
            with descent.opened_folder(folder) as opened:
                watch = self._inotify.add_watch(
                    Path(f"/proc/self/fd/{opened}"),
                    Mask.MODIFY | Mask.CREATE | Mask.MOVED_TO | Mask.ONLYDIR,
                )
        except OSError as error:
            _LOG.debug("%s is polled only: %s", folder, error)
            return
        self._folders[watch.wd] = folder

    def stop(self) -> None:
        """Watch nothing any more."""
        if self._resuming is not None:
            self._resuming.cancel()
        if self._inotify is not None:
            if self._loop is not None and not self._loop.is_closed():
                # By its number: at the end of the process the inotify itself may have been closed before.
                self._loop.remove_reader(self._fd)
            self._inotify.close()
        self._inotify = None
        self._folders.clear()

    def _resume(self) -> None:
        if self._loop is not None:
            with contextlib.suppress(OSError):  # closed, at the end of the process
                self._loop.add_reader(self._fd, self._read)

    def _read(self) -> None:
        try:
            data = os.read(self._fd, _BUFFER)
        except OSError:  # nothing there; or it was closed, at the end of the process
            return
        # Under a flood it is enough to hear of it now and then.
        if self._loop is not None:
            self._loop.remove_reader(self._fd)
            self._resuming = self._loop.call_later(_GAP, self._resume)
        names: dict[int, set[str]] = {}
        at = 0
        while at + _EVENT.size <= len(data):
            wd, _, _, length = _EVENT.unpack_from(data, at)
            at += _EVENT.size
            name = data[at : at + length].rstrip(b"\0")
            at += length
            names.setdefault(wd, set()).add(os.fsdecode(name))
        for wd, told in names.items():
            if wd in self._folders:
                self._told(self._folders[wd], told)
            elif wd == -1:
                # The kernel's queue overflowed: anything may have happened anywhere.
                for folder in self._folders.values():
                    self._told(folder, set())
