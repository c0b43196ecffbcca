"""What a program's HTML pages get as their first script: stand-ins for what the browser forbids to a sandboxed page."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Final

SCRIPT_PATH: Final = ".hyperpod/page.js"
"""Where the script is, below the key's address: a file of the page's own address passes a policy that forbids inline scripts."""

_ENOUGH = 1024
# A script before the doctype would put the page into the browser's quirks mode.
_BEFORE = re.compile(
    rb"(?:\xef\xbb\xbf)?(?:\s|<!--.*?-->)*(?:<!doctype[^>]*>)?", re.IGNORECASE | re.DOTALL
)


@cache
def page_script() -> bytes:
    """The script."""
    return (Path(__file__).parent / "port_page.js").read_bytes()


class PageStart:
    """Puts the script's tag at the start of a page whose bytes pass through.

    Args:
        prefix: The path of the program, key included.
    """

    def __init__(self, prefix: str) -> None:
        self.tag = f'<script src="{prefix}{SCRIPT_PATH}"></script>'.encode("latin-1", "replace")
        self._begun: bytes | None = b""

    def feed(self, chunk: bytes) -> bytes:
        """What can be sent on by now."""
        if self._begun is None:
            return chunk
        self._begun += chunk
        return self.end() if len(self._begun) >= _ENOUGH else b""

    def end(self) -> bytes:
        """What is left."""
        begun, self._begun = self._begun, None
        if begun is None:
            return b""
        found = _BEFORE.match(begun)
        place = found.end() if found else 0
        return begun[:place] + self.tag + begun[place:]


def is_html(status: int, content_type: str, encoding: str) -> bool:
    """Whether an answer is a whole page whose bytes can be added to."""
    kind, _, parameters = content_type.lower().partition(";")
    return (
        kind.strip() == "text/html"
        and "utf-16" not in parameters
        and encoding.lower() in {"", "identity"}
        and status not in {204, 206, 304}
    )
