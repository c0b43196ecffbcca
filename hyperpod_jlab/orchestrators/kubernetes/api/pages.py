"""Lists of the API server, page by page, in one of the forms in which it gives them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from hyperpod_jlab.model.errors import ConflictError

Form: TypeAlias = Literal["json", "table", "metadata"]
_META = "v=v1;g=meta.k8s.io"
ACCEPT: Mapping[Form, str] = {
    "json": "application/json",
    # With plain JSON after it: what is served by another server than the main one may know no tables.
    "table": f"application/json;as=Table;{_META},application/json",
    "metadata": f"application/json;as=PartialObjectMetadataList;{_META},application/json;as=PartialObjectMetadata;{_META},application/json",
}
_BYTES = 1_000_000
"""Of a page. Decoding takes some 10 ms for each of them, in which nothing else runs."""
_FEWEST, _MOST = 20, 2000


@dataclass
class Listing:
    """A list, or a page of one.

    Attributes:
        items: The objects; of a table its rows (``cells``, and ``object`` as ``includeObject`` says).
        columns: The names of a table's columns.
        version: The list's resource version, from which a watch can go on.
    """

    items: list[dict[str, Any]] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    version: str = ""

    def add(self, page: Listing) -> None:
        """Take in the next page."""
        self.items += page.items
        self.columns = self.columns or page.columns
        self.version = page.version


class Pages:
    """Which page to ask for next."""

    def __init__(self, limit: int) -> None:
        self.done = False
        self._limit = limit
        self._next = ""
        self._whole = False

    def query(self) -> dict[str, str]:
        """What to ask for."""
        if self._whole:
            return {}
        asked = {"limit": str(self._limit)}
        return asked | {"continue": self._next} if self._next else asked

    def again(self, error: ConflictError) -> bool:
        """Whether to ask on after an error: the state that the pages are of may have become too old for the server, which says from where to go on."""
        if error.code != "expired" or not self._next:
            return False
        onward = str(error.detail.get("continue") or "")
        if not onward or onward == self._next:
            return False
        self._next = onward
        return True

    def take(self, found: Mapping[str, Any], size: int) -> Listing:
        """A page, of so many bytes."""
        metadata = found.get("metadata") or {}
        table = found.get("kind") == "Table"
        items = (found.get("rows") if table else found.get("items")) or []
        columns = [str(one["name"]) for one in found.get("columnDefinitions") or []]
        self._next = str(metadata.get("continue") or "")
        self.done = not self._next
        if items:
            fitting = int(_BYTES / max(1, size / len(items)))
            self._limit = min(_MOST, max(_FEWEST, fitting))
        return Listing(list(items), columns, str(metadata.get("resourceVersion") or ""))
