"""TCP ports on which programs of this machine listen, and files that they have open, from /proc."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from typing import Iterable, List, NamedTuple, Set, Tuple


class Listener(NamedTuple):
    """A listening socket: its address, its port, the user of its program, and its inode."""

    address: str
    port: int
    uid: int
    inode: str


_TABLES = (("/proc/net/tcp", socket.AF_INET), ("/proc/net/tcp6", socket.AF_INET6))
_LISTEN = "0A"


def read_listeners() -> List[Listener]:
    """All listening TCP sockets of this network namespace; empty where there is no /proc."""
    found = []
    for path, family in _TABLES:
        with contextlib.suppress(OSError):
            with open(path, encoding="ascii") as file:
                rows = file.readlines()[1:]
            for row in rows:
                cells = row.split()
                if len(cells) < 10 or cells[3] != _LISTEN:
                    continue
                address, port = cells[1].split(":")
                words = [int(address[at : at + 8], 16) for at in range(0, len(address), 8)]
                host = socket.inet_ntop(family, struct.pack("=%dI" % len(words), *words))
                found.append(Listener(host, int(port, 16), int(cells[7]), cells[9]))
    return found


class PortClosedError(Exception):
    """Nothing of this user listens on a port; `is_taken` if another user's program does."""

    def __init__(self, is_taken: bool) -> None:
        super().__init__("the port is taken" if is_taken else "nothing listens")
        self.is_taken = is_taken


def find_addresses(port: int, uid: int, listeners: Iterable[Listener]) -> List[str]:
    """The addresses at which a user's own program is reached on a port, to be tried in turn.

    Connecting to 127.0.0.1 alone could reach a program of another user, who may listen on the same port of another address.

    Raises:
        PortClosedError: No program of this user listens there.
    """
    on_port = [one for one in listeners if one.port == port]
    own = [one for one in on_port if one.uid == uid]
    if not own:
        raise PortClosedError(bool(on_port))
    others = {one.address for one in on_port if one.uid != uid}
    found = []
    for one in own:
        if one.address == "0.0.0.0":  # noqa: S104 - it is read, not bound
            candidates = ["127.0.0.1"]
        elif one.address == "::":
            candidates = ["::1", "127.0.0.1"]
        elif one.address.startswith("::ffff:"):
            candidates = [one.address[7:]]
        else:
            candidates = [one.address]
        # A socket of a certain address has priority over one of all addresses.
        found += [address for address in candidates if address not in others]
    return sorted(set(found), key=found.index)


_EVENTS = "events.out.tfevents"
"""In the name of each file that TensorBoard reads."""


class OpenFiles(NamedTuple):
    """The inodes of a process's sockets, and the folders of the TensorBoard event files that it writes."""

    sockets: Set[str]
    log_folders: Set[str]


def read_open_files(pids: Iterable[int]) -> OpenFiles:
    """What processes have open; those that this user may not see, or that have ended, have nothing."""
    found = OpenFiles(set(), set())
    for pid in pids:
        folder = "/proc/%d/fd" % pid
        with contextlib.suppress(OSError):
            for name in os.listdir(folder):
                with contextlib.suppress(OSError):
                    target = os.readlink("%s/%s" % (folder, name))
                    if target.startswith("socket:["):
                        found.sockets.add(target[8:-1])
                    elif _EVENTS in target and os.path.basename(target).startswith(_EVENTS):
                        found.log_folders.add(os.path.dirname(target))
    return found


class Services(NamedTuple):
    """What programs of a node offer: the ports on which they listen, and the folders with their TensorBoard events."""

    ports: Tuple[int, ...]
    log_folders: Tuple[str, ...]


MAX_PORTS = 16
MAX_LOG_FOLDERS = 8
_FIRST_EPHEMERAL_PORT = 32768
"""Linux' default: above are ports that the kernel chose, such as those of NCCL and Gloo."""


def read_services(pids: Iterable[int], hidden_port: int) -> Services:
    """What processes offer.

    Args:
        pids: The processes.
        hidden_port: A port to leave out: that of the rendezvous.
    """
    files = read_open_files(pids)
    ports = {
        one.port
        for one in (read_listeners() if files.sockets else [])
        if one.inode in files.sockets and one.port < _FIRST_EPHEMERAL_PORT
    } - {hidden_port}
    folders = [
        folder
        for folder in sorted(files.log_folders)
        if len(folder) <= 1000 and "\ufffd" not in folder and folder.isprintable()
    ]
    return Services(tuple(sorted(ports)[:MAX_PORTS]), tuple(folders[:MAX_LOG_FOLDERS]))
