"""Keeping a function's value, or its exception, where the submitter looks for it."""

from __future__ import annotations

import io
import json
import math
import os
import pickle
import sys
import time
from typing import Any

from . import failure, records

RESULTS = ("result.json", "result.npy", "result.pkl", "exception.pkl", "exception.json")


class ResultError(TypeError):
    """The function's value can't be kept."""


def forget() -> None:
    """Remove what an earlier attempt left."""
    root = records.records()
    for name in RESULTS if root is not None else ():
        path = os.path.join(str(root), name)
        if os.path.lexists(path):
            os.unlink(path)


def save_result(value: Any) -> None:
    """Keep a value in the first form that gives it back exactly: JSON, numpy's file, a pickle.

    Raises:
        ResultError: It can't even be pickled.
    """
    root = records.records()
    if root is None:
        print(repr(value))
        return
    for name, form in (("result.json", _json), ("result.npy", _npy)):
        data = form(value)
        if data is not None:
            records.write_bytes(os.path.join(root, name), data)
            return
    records.write_bytes(os.path.join(root, "result.pkl"), _pickle(value))


def save_error(error: BaseException) -> None:
    """Keep an exception: as text always, and as itself when it can be pickled."""
    root = records.records()
    if root is None or (isinstance(error, SystemExit) and error.code in (None, 0)):
        return
    document = {
        "time": time.time(),
        "type": failure.type_name(error),
        "message": failure.shorten(failure.safe_str(error), failure.MAX_MESSAGE),
        "traceback": failure.shorten(failure.error_text(error), failure.MAX_TRACEBACK),
    }
    try:
        records.write_json(os.path.join(root, "exception.json"), document)
        records.write_bytes(os.path.join(root, "exception.pkl"), _dumps(error))
    except OSError as problem:
        print(f"hyperpod: the exception cannot be stored: {problem}", file=sys.stderr)
    except Exception:  # noqa: BLE001 - exceptions that can't be pickled exist; the text form is there
        return


def _json(value: Any) -> bytes | None:
    """JSON when it gives back the same value of the same types, else None."""
    try:
        return json.dumps(value, allow_nan=False).encode("ascii") if _is_plain(value) else None
    except (ValueError, RecursionError):
        return None


def _is_plain(value: Any) -> bool:
    kind = type(value)
    if kind is dict:
        return all(type(key) is str and _is_plain(inner) for key, inner in value.items())
    if kind is list:
        return all(map(_is_plain, value))
    if kind is float:
        return math.isfinite(value)
    return value is None or kind in (bool, int, str)


def _npy(value: Any) -> bytes | None:
    """Numpy's own format for a plain array of numbers, else None."""
    numpy = sys.modules.get("numpy")
    if numpy is None or type(value) is not numpy.ndarray:
        return None
    if value.dtype.kind not in "biufcmMSU" or value.dtype.metadata is not None:
        return None
    buffer = io.BytesIO()
    numpy.save(buffer, value, allow_pickle=False)
    return buffer.getvalue()


def _pickle(value: Any) -> bytes:
    try:
        return _dumps(value)
    except Exception as error:
        raise ResultError(
            f"the function returned a {type(value).__name__} object, which cannot be pickled: {error}"
        ) from error


def _dumps(value: Any) -> bytes:
    from cloudpickle import dumps

    data: bytes = dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    return data
