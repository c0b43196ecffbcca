"""The guard: starts the launcher of a bundle only where nobody else could have laid or changed it.

Its text is part of what the scheduler holds (`python -I -c GUARD ROOT BUNDLE OWNER DIGEST SHARED WORDS...`), so nobody who may write to the partition can
swap the guard itself. It checks, in this order:

1. Every folder from ``/`` to the bundle belongs to root, to OWNER (who submitted) or to the job's own user, and nobody else may write to it. In a
   sticky folder others may add entries but not replace those of somebody else; so the bundle itself is the one folder that may not be sticky instead.
   Each folder is opened from the one above it and never through a link; a link above the partition's root counts as a folder and is checked likewise.
2. ``launcher.py`` is a plain file that the same users own and nobody else may write to, and its SHA-256 is DIGEST.

Then it executes the very bytes that it checked. From there on the launcher goes by paths: it starts itself again (``rank``, ``agent``, ``node``), and reads the
plan and the code. That is safe because of 1: whoever could swap one of these would have to write to a folder that only root, OWNER and the job's user
may write to. This property does not end when the check ends.

Groups: the write bit of a group counts when a person other than those three is in the group on this machine. For the partition's root and what is above
it, it counts only where SHARED is ``shared``: on a private partition these groups are trusted, as they are at the submit. An access list (ACL) is read entry by entry,
because the group bits are only its mask then. In a user namespace the kernel shows every foreign number as one (``overflowuid``): the partition's root
and what is above it may belong to that, for there it stands for root outside.

Signals that the launcher takes wait from here on until it can, so that none of them ends it at its start or is lost.

With ``-`` as OWNER only the digest is compared: for containers that show other user numbers, after a check outside. Without WORDS nothing is started.
"""

from __future__ import annotations

import errno
import grp
import hashlib
import os
import pwd
import signal
import stat
import struct
import sys
from typing import Dict, Iterator, List, Sequence, Set

STICKY, WORLD_WRITE, GROUP_WRITE = 0o1000, 0o002, 0o020
MAX_LAUNCHER_BYTES = 16 << 20
FOREIGN = 65534
BLOCKED_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


class UntrustedError(Exception):
    """The bundle was changed, or somebody else could change it."""

    exit_code = 84


def open_bundle(root: str, bundle: str, users: Set[int], shared: bool) -> int:
    """A descriptor of the bundle, a path below root, once all folders on the way are checked."""
    trusted = users | {FOREIGN} if in_user_namespace() else users
    folder_fd, path, links = open_folder("/", "/", -1, trusted, shared), "/", 0
    waiting = parts(root)
    while waiting:
        name = waiting.pop(0)
        status = os.stat(name, dir_fd=folder_fd, follow_symlinks=False)
        path = os.path.join(path, name)
        if not stat.S_ISLNK(status.st_mode):
            folder_fd = open_folder(name, path, folder_fd, trusted, shared)
            continue
        links += 1
        if status.st_uid not in trusted or links > 40:
            raise UntrustedError("%s is a link of another user (uid %d)" % (path, status.st_uid))
        target = os.readlink(name, dir_fd=folder_fd)
        path = "/" if target.startswith("/") else os.path.dirname(path)
        folder_fd = open_folder(path if target.startswith("/") else ".", path, folder_fd, trusted, shared)
        waiting = parts(target) + waiting
    for name in parts(bundle):
        path = os.path.join(path, name)
        folder_fd = open_folder(name, path, folder_fd, users)
    check(folder_fd, path, users, True, sticky=False)
    return folder_fd


def parts(path: str) -> List[str]:
    """The names in a path."""
    return [part for part in path.split("/") if part]


def open_folder(name: str, path: str, folder_fd: int, users: Set[int], groups: bool = True) -> int:
    """A descriptor of a checked folder in the folder `folder_fd`, which is closed."""
    flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        folder = os.open(name, flags, dir_fd=None if folder_fd < 0 else folder_fd)
    except NotADirectoryError:
        raise UntrustedError("%s is a link or not a folder" % path) from None
    if folder_fd >= 0:
        os.close(folder_fd)
    check(folder, path, users, groups)
    return folder


def check(descriptor: int, path: str, users: Set[int], groups: bool, sticky: bool = True) -> None:
    """Refuse what belongs to somebody else, or what others may write to."""
    status = os.fstat(descriptor)
    if status.st_uid not in users:
        raise UntrustedError("%s belongs to another user (uid %d)" % (path, status.st_uid))
    if sticky and status.st_mode & STICKY:
        return
    strangers = False
    if groups and status.st_mode & GROUP_WRITE:
        strangers = not users.issuperset(writers(descriptor, status.st_gid))
    if status.st_mode & WORLD_WRITE or strangers:
        raise UntrustedError("other users may write to %s" % path)


def writers(descriptor: int, group: int) -> Iterator[int]:
    """Who may write by the group bits: the group, or those whom an access list (linux/posix_acl_xattr.h) names."""
    try:
        entries = os.getxattr("/proc/self/fd/%d" % descriptor, "system.posix_acl_access")[4:]
    except OSError as error:
        if error.errno not in (errno.ENODATA, errno.ENOTSUP):
            raise
        yield from members(group)
        return
    for tag, bits, number in struct.iter_unpack("<HHI", entries):
        if bits & 2 and tag == 2:
            yield number
        elif bits & 2 and tag in (4, 8):
            yield from members(group if tag == 4 else number)


def members(group: int) -> Iterator[int]:
    """People in a group, as far as this machine knows; accounts of the system (below 1000) are trusted like root."""
    uid_by_name: Dict[str, int] = {p.pw_name: p.pw_uid for p in pwd.getpwall() if p.pw_gid == group}
    try:
        for name in grp.getgrgid(group).gr_mem:
            uid_by_name[name] = pwd.getpwnam(name).pw_uid
    except KeyError:
        pass
    return (uid for uid in uid_by_name.values() if uid >= 1000 and uid != FOREIGN)


def in_user_namespace() -> bool:
    """Whether user numbers are others here than outside."""
    try:
        with open("/proc/self/uid_map") as file:
            return file.read().split() != ["0", "0", "4294967295"]
    except OSError:
        return False


def read_launcher(bundle: int, users: Set[int]) -> bytes:
    """The bytes of the launcher in a bundle; without `users` whoever owns it."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open("launcher.py", flags, dir_fd=bundle)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise UntrustedError("launcher.py is not a regular file") from None
        raise
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_LAUNCHER_BYTES:
            raise UntrustedError("launcher.py is not a regular file")
        if users:
            check(descriptor, "launcher.py", users, True, sticky=False)
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(MAX_LAUNCHER_BYTES)
    finally:
        os.close(descriptor)


def main(argv: Sequence[str]) -> int:
    """Check the bundle, then become its launcher."""
    signal.pthread_sigmask(signal.SIG_BLOCK, BLOCKED_SIGNALS)
    root, bundle, owner, digest, shared = argv[:5]
    folder = os.path.join(root, bundle)
    path = os.path.join(folder, "launcher.py")
    users: Set[int] = {0, os.getuid(), int(owner)} if owner != "-" else set()
    try:
        if users:
            folder_fd = open_bundle(root, bundle, users, shared == "shared")
        else:
            folder_fd = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        data = read_launcher(folder_fd, users)
        os.close(folder_fd)
        if hashlib.sha256(data).hexdigest() != digest:
            raise UntrustedError("launcher.py was changed after the submit")
    except UntrustedError as error:
        os.write(2, os.fsencode("hyperpod: nothing was run: %s\n" % error))
        return error.exit_code
    except OSError as error:
        os.write(2, os.fsencode("hyperpod: the storage of the bundle failed: %s\n" % error))
        return 86
    if argv[5:]:
        sys.argv = [path, *argv[5:]]
        exec(compile(data, path, "exec"), {"__name__": "__main__", "__file__": path})  # noqa: S102
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
