"""What the bundle of an adopted job knows of it: its own id, by which it is told from a later object of the same name."""

from __future__ import annotations

import json

from pydantic_core import from_json

from hyperpod_jlab.storage import descent
from hyperpod_jlab.storage.records import BundleReader

FILENAME = "adopted.json"
_LARGEST = 64 << 10


def adopted_uid(bundle: BundleReader) -> str | None:
    """The uid of an adopted job's object; None for a run that was sent from here. Blocking."""
    try:
        return str(from_json(descent.read(bundle.folder / FILENAME, _LARGEST))["uid"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def adopted_text(uid: str) -> bytes:
    """The bytes of ``adopted.json``."""
    return json.dumps({"format": 1, "uid": uid}).encode() + b"\n"
