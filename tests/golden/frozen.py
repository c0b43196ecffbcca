"""Golden files: what scripts rely on, frozen.

Each document is compared with its file in ``tests/golden/documents``. Values that differ between runs, such as times and ids, are first replaced by a word in angle
brackets. All keys, nulls and other values are kept. ``pytest --freeze`` rewrites the files; read the diff before you commit it.
"""

from __future__ import annotations

import getpass
import json
import os
import re
import socket
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from difflib import unified_diff
from pathlib import Path
from typing import Any

from hyperpod_jlab import __version__

FOLDER = Path(__file__).parent / "documents"

_MASKS = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?"), "<time>"),
    (re.compile(r"(?<=, since )\d{4}-\d\d-\d\d"), "<day>"),
    (re.compile(r"(?<=/runs/)[0-9a-f]{2}(?=/[\w-]*\d{8}-\d{6}-)"), "<part>"),
    (re.compile(r"\b[\w-]*\d{8}-\d{6}-[0-9a-z]{4,}\b"), "<run>"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "<uuid>"),
    (re.compile(r"\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{12,}\b"), "<hex>"),
    (re.compile(r"(?<=index-|mount-)[0-9a-f]{16}\b"), "<hex>"),
    (re.compile(r"(?<=-jupyterlab-|code-editor-)[0-9a-f]{12}\b"), "<hex>"),
    (re.compile(r"(?<=\bjob )\d+\b|(?<=\bafterok:)\d+\b|(?<=/slurm-)\d+(?=\.out\b)"), "<number>"),
    (re.compile(r"\b(127\.0\.0\.1|localhost):\d+"), "<address>"),
)


class Golden:
    """Compares documents with golden files.

    Args:
        freeze: Whether files are written rather than compared.
        places: Folders of this test and what stands for each.
    """

    def __init__(self, freeze: bool, places: Mapping[str, str]) -> None:
        self._freeze = freeze
        self._fixed: frozenset[str] = frozenset()
        own = {str(Path(sys.prefix)): "<python>", str(Path(__file__).parents[2]): "<source>"}
        own |= {socket.gethostname(): "<host>", str(Path.home()): "<home>"}
        words = {**places, **own}
        self._places = [
            (re.compile(rf"(?<![^\W_]){re.escape(place)}(?![^\W_]|_\w)"), name)
            for place, name in sorted(words.items(), key=lambda one: -len(one[0]))
        ]

    def check(
        self,
        name: str,
        document: Any,
        *,
        varying: Iterable[str] = (),
        also: Mapping[str, str] | None = None,
        fixed: Collection[str] = (),
        static: bool = False,
    ) -> None:
        """Compare a document with its golden file.

        Args:
            name: The file below ``documents``, without its suffix, such as ``slurm/runs``.
            document: What JSON knows, or a text.
            varying: Keys whose values differ from run to run: only their kind is kept.
            also: Words of this run and what stands for each, such as a job's number.
            fixed: Words that are the same in every run, though they look like what is masked.
            static: Nothing of this run or machine is in it, such as in a schema: only our version is replaced.

        Raises:
            AssertionError: The document differs from its file, or has no file.
        """
        self._fixed = frozenset(fixed)
        masked = _unversioned(document) if static else self._masked(document, frozenset(varying), also or {})
        is_text = isinstance(masked, str)
        path = FOLDER / f"{name}.{'txt' if is_text else 'json'}"
        text = masked if is_text else json.dumps(masked, indent=1, sort_keys=True, ensure_ascii=False)
        text = text.rstrip("\n") + "\n"
        if self._freeze:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        there = path.read_text(encoding="utf-8") if path.exists() else ""
        if text != there:
            lines = unified_diff(there.splitlines(), text.splitlines(), "frozen", "now", n=2)
            raise AssertionError("\n".join([f"{path}: if that is meant: pytest --freeze", *lines][:60]))

    def _masked(self, value: Any, varying: frozenset[str], also: Mapping[str, str]) -> Any:
        if isinstance(value, Mapping):
            return {
                self._word(str(key), also): _kind(one) if key in varying else self._masked(one, varying, also)
                for key, one in value.items()
            }
        if isinstance(value, list | tuple):
            return [self._masked(one, varying, also) for one in value]
        return self._word(value, also) if isinstance(value, str) else value

    def _word(self, text: str, also: Mapping[str, str]) -> str:
        for word, name in also.items():
            text = re.sub(rf"(?<![\w-]){re.escape(word)}(?![\w-])", name, text)
        for place, name in self._places:
            text = place.sub(name, text)
        for pattern, name in _MASKS:
            text = pattern.sub(self._unless_fixed(name), text)
        text = text.replace(__version__, "<version>")
        return re.sub(rf"\b(?:user|for|by) {re.escape(getpass.getuser())}\b", "<user>", text)

    def _unless_fixed(self, name: str) -> Callable[[re.Match[str]], str]:
        return lambda found: found.group() if found.group() in self._fixed else name


def _unversioned(document: Any) -> Any:
    """A document without our version."""
    text = json.dumps(document, ensure_ascii=False)
    return json.loads(text.replace(f'"{__version__}"', '"<version>"'))


def _kind(value: Any) -> Any:
    """What stands for a value that varies; null is kept, for it says something else than a value."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "<true or false>"
    if isinstance(value, int | float):
        return "<number>"
    if isinstance(value, list):
        return ["<varying>"] if value else []
    return "<object>" if isinstance(value, Mapping) else "<text>"


def places_of(tmp_path: Path) -> dict[str, str]:
    """Folders of a test."""
    return {str(tmp_path): "<tmp>", os.environ.get("TMPDIR", "/tmp").rstrip("/"): "<temporary>"}
