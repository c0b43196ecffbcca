"""Ignore files in gitignore's syntax, for any folder, with or without git.

Their patterns may come from a stranger's repository, so the expressions made of them never go back over a star. Those of libraries do, and then one
pattern and one name take hours.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

MAX_LINES = 10_000
"""Lines of an ignore file."""
_MAX_PATTERN = 4096
"""Bytes of a pattern, as in a path. A longer one matches nothing."""

_CLASSES = {
    "alnum": r"A-Za-z0-9",
    "alpha": r"A-Za-z",
    "blank": r" \t",
    "cntrl": r"\0-\x1f\x7f",
    "digit": r"0-9",
    "graph": r"!-~",
    "lower": r"a-z",
    "print": r" -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r" \t\n\r",
    "upper": r"A-Z",
    "xdigit": r"0-9A-Fa-f",
}
_TOKEN = re.compile(r"\*+|\\?.", re.DOTALL)
_ITEM = re.compile(r"\[:(?P<name>[^\]]*):\]|(?P<low>\\?.)(?:-(?P<high>\\.|[^\]\\]))?", re.DOTALL)
_SPECIAL = re.compile(r"[*?\[\\]")
_STAR, _FOLDERS, _SOME_FOLDERS, _REST = "*", "**/", "**\\/", "**"
"""Wildcards. Any other piece of a pattern is an expression for one character."""


class TooManyPatternsError(Exception):
    """An ignore file has more than `MAX_LINES` lines."""


@dataclass(frozen=True)
class _Rule:
    """One line.

    Attributes:
        pattern: Matches a whole path, or its last name if the line has no slash.
        ignores: False for a line with an exclamation mark.
        name_only: Whether it is about names in any folder.
        folder_only: Whether it is about folders only.
    """

    pattern: re.Pattern[str]
    ignores: bool
    name_only: bool
    folder_only: bool


class IgnoreFile:
    """The rules of one ignore file; paths are relative to its folder.

    Raises:
        TooManyPatternsError: It has too many lines.
    """

    def __init__(self, text: str) -> None:
        lines = text.removeprefix("\ufeff").split("\n")
        if len(lines) > MAX_LINES:
            raise TooManyPatternsError
        self._rules = [rule for line in lines if (rule := _rule(_by_bytes(line))) is not None]

    def decide(self, path: str, *, folder: bool) -> bool | None:
        """Whether the path itself is ignored; None when no rule matches."""
        whole = _by_bytes(path)
        name = whole.rpartition("/")[2]
        for rule in reversed(self._rules):
            if rule.folder_only and not folder:
                continue
            if rule.pattern.fullmatch(name if rule.name_only else whole):
                return rule.ignores
        return None


def _by_bytes(text: str) -> str:
    """A character for each byte, because git compares bytes."""
    return text.encode("utf-8", "surrogateescape").decode("latin-1")


def _rule(line: str) -> _Rule | None:
    """A line's rule; None if it matches nothing, as in git."""
    line = _without_trailing_spaces(line.removesuffix("\r"))
    if line.startswith("#") or len(line) > _MAX_PATTERN:
        return None
    ignores = not line.startswith("!")
    line = line.removeprefix("!")
    folder_only = line.endswith("/")
    line = line.removesuffix("/")
    pieces = _pieces(line.removeprefix("/"))
    if not pieces:
        return None
    pattern = re.compile(_expression(pieces), re.DOTALL)
    return _Rule(pattern, ignores, "/" not in line, folder_only)


def _without_trailing_spaces(line: str) -> str:
    end = len(line.rstrip(" "))
    backslashes = end - len(line[:end].rstrip("\\"))
    return line[: end + backslashes % 2]


def _expression(pieces: list[str]) -> str:
    """The regular expression of a pattern.

    Between two stars is text of a fixed length, and between two ``**`` a fixed number of folders. Where it fits at several places, the first is as good as
    any other, so an atomic group forgets the others. Only the text after a name's last star has a place of its own: the end of the name.
    """
    text, block, result = "", "", ""  # up to the next star, the next ``**``, the end
    ends_name = True
    for piece in reversed(pieces):
        if piece == _STAR:
            block = (f"[^/]*{text}(?![^/])" if ends_name else f"(?>[^/]*?{text})") + block
            text, ends_name = "", False
        elif piece == "/":
            block = f"/{text}{block}"
            text, ends_name = "", True
        elif piece == _REST:
            result = ".*"
        elif piece in (_FOLDERS, _SOME_FOLDERS):
            repeated = "*?" if piece == _FOLDERS else "+?"
            end = "" if result else r"\Z"
            result = f"(?>(?:[^/]*/){repeated}{text}{block}{end}){result}"
            text, block, ends_name = "", "", True
        else:
            text = piece + text
    return text + block + result


def _pieces(pattern: str) -> list[str] | None:
    """The pieces of a pattern; None if it is malformed."""
    pieces = list[str]()
    special = _SPECIAL.search(pattern)
    position = 0
    while token := _TOKEN.match(pattern, position):
        begin, position = token.span()
        text = token[0]
        if text == "[":
            bracket = _bracket(pattern, position)
            if bracket is None:
                return None
            piece, position = bracket
        elif text == "\\":
            return None
        elif text == "?":
            piece = "[^/]"
        elif text.startswith("*"):
            # Git compares the text before the first wildcard apart, so for git a name begins there.
            begins_name = (special and special.start() == begin) or pattern[:begin].endswith("/")
            is_double = len(text) > 1 and begins_name
            piece = _double_star(pattern[position : position + 2]) if is_double else _STAR
            position += max(0, len(piece) - 2)
        else:
            piece = "/" if text[-1] == "/" else re.escape(text[-1])
        pieces.append(piece)
    return pieces


def _double_star(rest: str) -> str:
    """What two stars at the start of a name are, by the text after them."""
    if rest.startswith("/"):
        return _FOLDERS
    if rest == "\\/":
        return _SOME_FOLDERS
    return _STAR if rest else _REST


def _bracket(pattern: str, position: int) -> tuple[str, int] | None:
    """The expression for a bracket whose content begins at this position, and the position after it; None if it is malformed."""
    is_negated = pattern.startswith(("!", "^"), position)
    position = start = position + is_negated
    content = ""
    while not pattern.startswith("]", position) or position == start:
        item = _ITEM.match(pattern, position)
        if item is None or item["low"] == "\\":
            return None
        position = item.end()
        if item["low"] is None:
            if item["name"] not in _CLASSES:
                return None
            content += _CLASSES[item["name"]]
            continue
        low, high = item["low"][-1], (item["high"] or item["low"])[-1]
        if low <= high:
            content += f"\\x{ord(low):02x}-\\x{ord(high):02x}"
        else:
            content += f"\\x{ord(low):02x}"
    return (f"[^/{content}]" if is_negated else f"(?!/)[{content}]"), position + 1


class IgnoreTree:
    """All ignore files of a tree, by folder; the nearest one with a matching rule decides, as in git."""

    def __init__(self) -> None:
        self._files: dict[str, list[IgnoreFile]] = {}
        self._folders: dict[str, bool] = {}

    def add(self, folder: str, text: str) -> None:
        """Add the file of a folder (relative to the root, empty for the root itself)."""
        self._files.setdefault(folder, []).append(IgnoreFile(text))
        self._folders = {}

    def ignores(self, path: str, *, folder: bool = False) -> bool:
        """Whether a path, or a folder above it, is ignored: rules cannot re-include files of an ignored folder."""
        slash = path.find("/")
        while slash >= 0:
            parent = path[:slash]
            if parent not in self._folders:
                self._folders[parent] = self._decide(parent, folder=True)
            if self._folders[parent]:
                return True
            slash = path.find("/", slash + 1)
        return self._decide(path, folder=folder)

    def _decide(self, path: str, *, folder: bool) -> bool:
        base = path.rpartition("/")[0]
        while True:
            inner = path[len(base) + 1 :] if base else path
            for file in reversed(self._files.get(base, [])):
                decision = file.decide(inner, folder=folder)
                if decision is not None:
                    return decision
            if not base:
                return False
            base = base.rpartition("/")[0]


def build_tree(files: Iterable[tuple[str, str]]) -> IgnoreTree:
    """Build an `IgnoreTree` from files, each with its folder and its text."""
    tree = IgnoreTree()
    for folder, text in files:
        tree.add(folder, text)
    return tree
