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
from .paths import OPEN_FLAGS, WorkError, open_parent
from .removal import delete_folder

VERSION = 1
MARK = "hyperpod-folders"
"""How the line with a sealed answer begins."""

NO_REPLY = 88
"""Exit code: the answer cannot be written."""

_MAX_AGE_S = 3600.0
"""Seconds after which an answer that lies about is removed."""


def work(request: Mapping[str, Any]) -> Dict[str, Any]:
    """Look at folders, make or delete them; one result each, in their order.

    Args:
        request: ``root``: where the whole file system is; ``do``: ``look``, ``make`` or ``delete``; ``folders``: each with its ``path`` there, and to be made with
            ``uid``, ``gid``, ``mode``, ``acl`` and ``default`` (entries ``[tag, number or null, permissions]``), to be deleted with the ``uid`` of its owner;
            for that also ``seconds``: the time for all of them.

    Returns:
        ``results``: each with its ``path``, and what was ``found``: the folder as it is then, null where there is none; of one to be deleted, whether it is gone.
    """
    deadline = time.monotonic() + request.get("seconds", 0)
    results = []
    for folder_spec in request["folders"]:
        result: Dict[str, Any] = {"path": folder_spec["path"], "found": None, "error": None}
        try:
            if request["do"] == "delete":
                remaining = deadline - time.monotonic()
                result["found"] = delete_folder(request["root"], folder_spec, remaining)
            elif request["do"] == "make":
                result["found"] = make_folder(request["root"], folder_spec)
            else:
                result["found"] = look_at(request["root"], folder_spec["path"])
        except WorkError as error:
            result["error"] = {"code": error.code, "words": error.words}
        except OSError as error:
            code = "denied" if error.errno in (errno.EPERM, errno.EACCES) else "system"
            result["error"] = {"code": code, "words": error.strerror or str(error)}
        results.append(result)
    return {"version": VERSION, "results": results}


# ------------------------------------------------------------------------------ the order and the answer


def encode_request(request: Mapping[str, Any]) -> str:
    """An order as plain letters."""
    return base64.b64encode(zlib.compress(json.dumps(request).encode(), 9)).decode()


def seal_response(response: Mapping[str, Any], key: str) -> str:
    """An answer as one line, with the mark of who knows the key."""
    body = encode_request(response)
    return "%s %s %s\n" % (MARK, body, _seal(body, key))


def open_response(text: str, key: str) -> Optional[Dict[str, Any]]:
    """The answer in a text, whatever stands around it; None: there is none that is whole and was given to this order."""
    for line in text.splitlines():
        fields = line.split(" ")
        if len(fields) != 3 or fields[0] != MARK:
            continue
        if hmac.compare_digest(fields[2].encode(), _seal(fields[1], key).encode()):
            with contextlib.suppress(binascii.Error, zlib.error, ValueError):
                response: Dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(fields[1])))
                return response
    return None


def _seal(body: str, key: str) -> str:
    return hmac.new(key.encode(), body.encode(), hashlib.sha256).hexdigest()


def main(text: str) -> int:
    """Carry out an order and give the answer: on standard output, or as a file of the file system.

    Args:
        text: The order, packed. Besides what `work` needs: ``key``; ``reply``: the folder for the answer, which only its maker may write to, or null; ``name``: of
            the file there.
    """
    request = json.loads(zlib.decompress(base64.b64decode(text)))
    response = seal_response(work(request) if _is_mounted(request["root"]) else _NOT_MOUNTED, request["key"])
    if request["reply"] is None:
        sys.stdout.write("\n" + response)
        sys.stdout.flush()
        return 0
    try:
        _write_response(request["root"], request["reply"], request["name"], response.encode())
    except (OSError, WorkError) as error:
        sys.stderr.write("%s: cannot write the answer: %s\n" % (MARK, error))
        return NO_REPLY
    return 0


_NOT_MOUNTED = {"version": VERSION, "results": [], "error": "not_mounted"}


def _is_mounted(root: str) -> bool:
    """Whether something is mounted there: else folders would be made on the machine's own disk, where nobody finds them."""
    resolved = os.path.realpath(root)
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        points = [line.split(" ")[4].replace("\\040", " ") for line in file]
    return resolved in points


def _write_response(root: str, folder: str, name: str, data: bytes) -> None:
    with open_parent(root, folder) as (parent, last):
        with contextlib.suppress(FileExistsError):
            os.mkdir(last, 0o711, dir_fd=parent)
        descriptor = os.open(last, OPEN_FLAGS, dir_fd=parent)
    try:
        status = os.fstat(descriptor)
        if status.st_uid != os.geteuid() or status.st_mode & 0o022:
            raise WorkError("foreign_folder", "%s belongs to another user" % folder)
        os.fchmod(descriptor, 0o711)
        _remove_old_responses(descriptor)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(name + ".part", flags, 0o644, dir_fd=descriptor), "wb") as file:
            os.fchmod(file.fileno(), 0o644)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.rename(name + ".part", name, src_dir_fd=descriptor, dst_dir_fd=descriptor)
    finally:
        os.close(descriptor)


def _remove_old_responses(descriptor: int) -> None:
    """Remove answers that nobody reads any more."""
    for name in os.listdir(descriptor):
        with contextlib.suppress(OSError):
            if time.time() - os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mtime > _MAX_AGE_S:
                os.unlink(name, dir_fd=descriptor)
