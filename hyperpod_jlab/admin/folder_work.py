"""The work on folders of a file system: looked at, made, and given to whom they belong, with their access lists (ACLs).

One file for Python 3.8 and later that needs nothing beside it: this package calls it where the file system is mounted, and sends its text to a job where
it is mounted elsewhere. What is to be done comes as data, and so does the answer, which is sealed: who reads it knows that it is whole, and to his order.

Each step of a path is opened by itself and never through a symbolic link: what users can write lies beside what is made here as root. All of it may be
done again, and by two at once.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import errno
import hashlib
import hmac
import json
import os
import stat
import struct
import sys
import time
import zlib
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

VERSION = 1
MARK = "hyperpod-folders"
"""How the line with a sealed answer begins."""

NO_REPLY = 88
"""Exit code: the answer cannot be written."""

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LOOK = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ACCESS, _DEFAULT = "system.posix_acl_access", "system.posix_acl_default"
_HEAD, _ENTRY = struct.pack("<I", 2), struct.Struct("<HHI")
_UNNAMED = 0xFFFFFFFF
_OWNER, _USER, _OWNERS, _GROUP, _MASK, _OTHER = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20
_TAGS = {_OWNER: "user", _USER: "user", _OWNERS: "group", _GROUP: "group", _OTHER: "other"}
_MASKED = (_USER, _OWNERS, _GROUP)
_NO_ACLS = (errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
_OLD = 3600.0
"""Seconds after which an answer that lies about is removed."""

Acl = List[Tuple[int, int, int]]
"""Entries of an access list as Linux keeps them (linux/posix_acl_xattr.h): tag, permissions, number."""


class WorkError(Exception):
    """Why a folder was not looked at or made: a code, and words of the system."""

    def __init__(self, code: str, words: str = "") -> None:
        super().__init__(words)
        self.code = code
        self.words = words


def work(order: Mapping[str, Any]) -> Dict[str, Any]:
    """Look at folders or make them; one result each, in their order.

    Args:
        order: ``root``: where the whole file system is; ``do``: ``look`` or ``make``; ``folders``: each with its ``path`` there, and to be made with
            ``uid``, ``gid``, ``mode``, ``acl`` and ``default`` (entries ``[tag, number or null, permissions]``).
    """
    results = []
    for wanted in order["folders"]:
        result: Dict[str, Any] = {"path": wanted["path"], "found": None, "error": None}
        try:
            if order["do"] == "make":
                result["found"] = _make(order["root"], wanted)
            else:
                result["found"] = _look(order["root"], wanted["path"])
        except WorkError as error:
            result["error"] = {"code": error.code, "words": error.words}
        except OSError as error:
            code = "denied" if error.errno in (errno.EPERM, errno.EACCES) else "system"
            result["error"] = {"code": code, "words": error.strerror or str(error)}
        results.append(result)
    return {"version": VERSION, "results": results}


# ------------------------------------------------------------------------------ one folder


def _look(root: str, path: str) -> Optional[Dict[str, Any]]:
    try:
        with _parent(root, path) as (parent, name):
            opened = os.open(name, _LOOK, dir_fd=parent)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            return {"other": True}
        raise
    try:
        return _state(opened)
    finally:
        os.close(opened)


def _make(root: str, wanted: Mapping[str, Any]) -> Dict[str, Any]:
    try:
        with _parent(root, wanted["path"]) as (parent, name):
            made = True
            try:
                os.mkdir(name, 0o700, dir_fd=parent)
            except FileExistsError:
                made = False
            try:
                opened = os.open(name, _OPEN, dir_fd=parent)
            except FileNotFoundError as error:  # somebody takes it away as it is made
                raise WorkError("no_folder") from error
            try:
                if not made:
                    _see_whose(opened, wanted)
                    if _is_right(_state(opened), wanted):
                        return _state(opened)
                try:
                    _give(opened, wanted)
                except OSError:
                    if made:
                        with contextlib.suppress(OSError):
                            os.rmdir(name, dir_fd=parent)
                    raise
                return _state(opened)
            finally:
                os.close(opened)
    except FileNotFoundError as error:
        raise WorkError("no_parent") from error
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            raise WorkError("no_folder") from error
        raise


@contextlib.contextmanager
def _parent(root: str, path: str) -> Iterator[Tuple[int, str]]:
    """The folder above, opened, and the last name; ``.`` for the root itself."""
    names = [name for name in path.split("/") if name]
    if not path.startswith("/") or {".", ".."} & set(names) or "\0" in path:
        raise WorkError("no_path")
    above, name = names[:-1], names[-1] if names else "."
    at = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for one in above:
            following = os.open(one, _OPEN, dir_fd=at)
            os.close(at)
            at = following
        yield at, name
    finally:
        os.close(at)


def _see_whose(opened: int, wanted: Mapping[str, Any]) -> None:
    """Take no folder from anybody: it is the wanted owner's already, or root's, and then what is to be private has nothing in it."""
    found = os.fstat(opened)
    if found.st_uid == wanted["uid"]:
        return
    if found.st_uid != 0:
        raise WorkError("foreign_folder", str(found.st_uid))
    if not wanted["mode"] & 0o077 and not _is_empty(opened):
        raise WorkError("foreign_folder", "0")


def _is_right(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(found[name] == wanted[name] for name in ("uid", "gid", "mode", "acl", "default"))


def _give(opened: int, wanted: Mapping[str, Any]) -> None:
    """Set owner, mode and lists."""
    found = os.fstat(opened)
    if (found.st_uid, found.st_gid) != (wanted["uid"], wanted["gid"]):
        # First the owner: a change of it takes the bits for user and group away.
        os.fchown(opened, wanted["uid"], wanted["gid"])
    base = [["user", None, wanted["mode"] >> 6 & 7], ["group", None, wanted["mode"] >> 3 & 7]]
    base.append(["other", None, wanted["mode"] & 7])
    access = _entries([*base, *wanted["acl"]]) if wanted["acl"] else []
    mask = [rights for tag, rights, _ in access if tag == _MASK]
    mode = wanted["mode"] & ~0o070 | mask[0] << 3 if mask else wanted["mode"]
    try:
        # Names of a list that is there must not outlive it, nor the mask become the group's rights: so first the list goes, or else is masked by the mode.
        if not access:
            _put(opened, _ACCESS, [])
        os.fchmod(opened, wanted["mode"])
        if access:
            _put(opened, _ACCESS, access)
        _put(opened, _DEFAULT, _entries(wanted["default"]))
    except OSError as error:
        if error.errno in _NO_ACLS:
            raise WorkError("no_acl") from error
        raise
    if stat.S_IMODE(os.fstat(opened).st_mode) != mode:
        os.fchmod(opened, mode)  # setting a list may take the bit of the group away


def _state(opened: int) -> Dict[str, Any]:
    """What a folder is; it may be opened for looking only."""
    found = os.fstat(opened)
    mode = stat.S_IMODE(found.st_mode)
    lists = {name: _read(opened, name) for name in (_ACCESS, _DEFAULT)}
    access = _shown(lists[_ACCESS] or [])
    for tag, number, rights in access:
        if tag == "group" and number is None:
            mode = mode & ~0o070 | rights << 3
    return {
        "uid": found.st_uid,
        "gid": found.st_gid,
        "mode": mode,
        "acl": [entry for entry in access if entry[1] is not None],
        "default": _shown(lists[_DEFAULT] or []),
        "takes_acls": lists[_ACCESS] is not None,
        "empty": _is_empty(opened),
    }


def _is_empty(opened: int) -> bool:
    """Whether nothing is in a folder; one that may not be looked into counts as full."""
    try:
        again = os.open(".", _OPEN, dir_fd=opened)
    except OSError:
        return False
    try:
        with os.scandir(again) as entries:
            return next(entries, None) is None
    finally:
        os.close(again)


# ------------------------------------------------------------------------------ access lists


def _entries(listed: Sequence[Sequence[Any]]) -> Acl:
    """A list as Linux keeps it; with names in it, it needs a mask, which lets them all through."""
    made = []
    for tag, number, rights in listed:
        if tag == "other":
            made.append((_OTHER, rights, _UNNAMED))
        elif number is None:
            made.append((_OWNER if tag == "user" else _OWNERS, rights, _UNNAMED))
        else:
            made.append((_USER if tag == "user" else _GROUP, rights, number))
    if any(tag in (_USER, _GROUP) for tag, _, _ in made):
        mask = 0
        for tag, rights, _ in made:
            if tag in _MASKED:
                mask |= rights
        made.append((_MASK, mask, _UNNAMED))
    return sorted(made, key=lambda entry: (entry[0], entry[2]))


def _shown(entries: Acl) -> List[List[Any]]:
    """A list for people: what its mask takes away is taken away."""
    masks = [rights for tag, rights, _ in entries if tag == _MASK]
    mask = masks[0] if masks else 7
    return [
        [_TAGS[tag], None if number == _UNNAMED else number, rights & mask if tag in _MASKED else rights]
        for tag, rights, number in entries
        if tag in _TAGS
    ]  # fmt: skip


def _read(opened: int, name: str) -> Optional[Acl]:
    """A list; None: the file system keeps none."""
    try:
        data = os.getxattr("/proc/self/fd/%d" % opened, name)
    except OSError as error:
        if error.errno in _NO_ACLS:
            return None
        if error.errno == errno.ENODATA:
            return []
        raise
    return [(tag, rights, number) for tag, rights, number in _ENTRY.iter_unpack(data[4:])]


def _put(opened: int, name: str, entries: Acl) -> None:
    if entries:
        data = _HEAD + b"".join(_ENTRY.pack(*entry) for entry in entries)
        os.setxattr(opened, name, data)
        return
    try:
        os.removexattr(opened, name)
    except OSError as error:
        if error.errno != errno.ENODATA and error.errno not in _NO_ACLS:
            raise


# ------------------------------------------------------------------------------ the order and the answer


def packed(order: Mapping[str, Any]) -> str:
    """An order as plain letters."""
    return base64.b64encode(zlib.compress(json.dumps(order).encode(), 9)).decode()


def sealed(answer: Mapping[str, Any], key: str) -> str:
    """An answer as one line, with the mark of who knows the key."""
    body = packed(answer)
    return "%s %s %s\n" % (MARK, body, _seal(body, key))


def unsealed(text: str, key: str) -> Optional[Dict[str, Any]]:
    """The answer in a text, whatever stands around it; None: there is none that is whole and was given to this order."""
    for line in text.splitlines():
        words = line.split(" ")
        if len(words) != 3 or words[0] != MARK:
            continue
        if hmac.compare_digest(words[2].encode(), _seal(words[1], key).encode()):
            with contextlib.suppress(binascii.Error, zlib.error, ValueError):
                found: Dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(words[1])))
                return found
    return None


def _seal(body: str, key: str) -> str:
    return hmac.new(key.encode(), body.encode(), hashlib.sha256).hexdigest()


def main(text: str) -> int:
    """Carry out an order and give the answer: on standard output, or as a file of the file system.

    Args:
        text: The order, packed. Besides what `work` needs: ``key``; ``reply``: the folder for the answer, which only its maker may write to, or null; ``name``: of
            the file there.
    """
    order = json.loads(zlib.decompress(base64.b64decode(text)))
    answer = sealed(work(order) if _is_mounted(order["root"]) else _NOT_MOUNTED, order["key"])
    if order["reply"] is None:
        sys.stdout.write("\n" + answer)
        sys.stdout.flush()
        return 0
    try:
        _reply(order["root"], order["reply"], order["name"], answer.encode())
    except (OSError, WorkError) as error:
        sys.stderr.write("%s: the answer cannot be written: %s\n" % (MARK, error))
        return NO_REPLY
    return 0


_NOT_MOUNTED = {"version": VERSION, "results": [], "error": "not_mounted"}


def _is_mounted(root: str) -> bool:
    """Whether something is mounted there: else folders would be made on the machine's own disk, where nobody finds them."""
    place = os.path.realpath(root)
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        points = [line.split(" ")[4].replace("\\040", " ") for line in file]
    return place in points


def _reply(root: str, folder: str, name: str, data: bytes) -> None:
    with _parent(root, folder) as (parent, last):
        with contextlib.suppress(FileExistsError):
            os.mkdir(last, 0o711, dir_fd=parent)
        opened = os.open(last, _OPEN, dir_fd=parent)
    try:
        found = os.fstat(opened)
        if found.st_uid != os.geteuid() or found.st_mode & 0o022:
            raise WorkError("foreign_folder", "%s belongs to somebody else" % folder)
        os.fchmod(opened, 0o711)
        _tidy(opened)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(name + ".part", flags, 0o644, dir_fd=opened), "wb") as file:
            os.fchmod(file.fileno(), 0o644)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.rename(name + ".part", name, src_dir_fd=opened, dst_dir_fd=opened)
    finally:
        os.close(opened)


def _tidy(opened: int) -> None:
    """Remove answers that nobody reads any more."""
    for name in os.listdir(opened):
        with contextlib.suppress(OSError):
            if time.time() - os.stat(name, dir_fd=opened, follow_symlinks=False).st_mtime > _OLD:
                os.unlink(name, dir_fd=opened)
