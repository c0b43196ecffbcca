"""The work on folders of a file system: looked at, made, given to whom they belong, and deleted.

Assembled with the modules beside it (`folders`) to one text for Python 3.8 and later that needs nothing more: this package calls it where the file system is
mounted, and sends the text to a job where it is mounted elsewhere. What is to be done comes as data, and so does the answer, which is sealed: who reads it
knows that it is whole, and to his order.
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
import sys
import time
import zlib
from typing import Any, Dict, Mapping, Optional

from .folder import look_at, make_folder
from .paths import OPEN_FOLDER, WorkError, opened_parent
from .removal import delete_folder

VERSION = 1
MARK = "hyperpod-folders"
"""How the line with a sealed answer begins."""

NO_REPLY = 88
"""Exit code: the answer cannot be written."""

_OLD = 3600.0
"""Seconds after which an answer that lies about is removed."""


def work(order: Mapping[str, Any]) -> Dict[str, Any]:
    """Look at folders, make or delete them; one result each, in their order.

    Args:
        order: ``root``: where the whole file system is; ``do``: ``look``, ``make`` or ``delete``; ``folders``: each with its ``path`` there, and to be made with
            ``uid``, ``gid``, ``mode``, ``acl`` and ``default`` (entries ``[tag, number or null, permissions]``), to be deleted with the ``uid`` of its owner;
            for that also ``seconds``: the time for all of them.

    Returns:
        ``results``: each with its ``path``, and what was ``found``: the folder as it is then, null where there is none; of one to be deleted, whether it is gone.
    """
    until = time.monotonic() + order.get("seconds", 0)
    results = []
    for wanted in order["folders"]:
        result: Dict[str, Any] = {"path": wanted["path"], "found": None, "error": None}
        try:
            if order["do"] == "delete":
                left = until - time.monotonic()
                result["found"] = delete_folder(order["root"], wanted, left)
            elif order["do"] == "make":
                result["found"] = make_folder(order["root"], wanted)
            else:
                result["found"] = look_at(order["root"], wanted["path"])
        except WorkError as error:
            result["error"] = {"code": error.code, "words": error.words}
        except OSError as error:
            code = "denied" if error.errno in (errno.EPERM, errno.EACCES) else "system"
            result["error"] = {"code": code, "words": error.strerror or str(error)}
        results.append(result)
    return {"version": VERSION, "results": results}


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
        sys.stderr.write("%s: cannot write the answer: %s\n" % (MARK, error))
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
    with opened_parent(root, folder) as (parent, last):
        with contextlib.suppress(FileExistsError):
            os.mkdir(last, 0o711, dir_fd=parent)
        opened = os.open(last, OPEN_FOLDER, dir_fd=parent)
    try:
        found = os.fstat(opened)
        if found.st_uid != os.geteuid() or found.st_mode & 0o022:
            raise WorkError("foreign_folder", "%s belongs to another user" % folder)
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
