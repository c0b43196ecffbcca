"""The cells of the plan."""

from __future__ import annotations

import os
from typing import Any

from . import records


class Cell:
    """One cell of the plan."""

    def __init__(self, entry: dict[str, Any]) -> None:
        self.number: int = entry["number"]
        self.path = os.path.join(records.CODE, *entry["file"].split("/"))
        # newline="" keeps what is inside strings; the compiler knows every kind of line break.
        with open(self.path, encoding="utf-8", newline="") as file:
            self.text = file.read()
