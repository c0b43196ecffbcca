"""Ignore files in gitignore's syntax, matched here so that ``.hyperpodignore`` works in any folder, with or without git."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class _Rule:
    pattern: re.Pattern[str]
    ignores: bool
    folders_only: bool


class IgnoreFile:
    """The rules of one ignore file; paths are relative to its folder."""

    def __init__(self, text: str) -> None:
        self._rules = [rule for line in text.splitlines() if (rule := _parse(line)) is not None]

    def decide(self, path: str, *, folder: bool) -> bool | None:
        """Whether the path is ignored by itself; None when no rule speaks of it."""
        for rule in reversed(self._rules):
            if (folder or not rule.folders_only) and rule.pattern.fullmatch(path):
                return rule.ignores
        return None


class IgnoreTree:
    """All ignore files of a tree, by folder; the nearest one that speaks of a path decides, as with git."""

    def __init__(self) -> None:
        self._files: dict[str, list[IgnoreFile]] = {}
        self._folders: dict[str, bool] = {}

    def add(self, folder: str, text: str) -> None:
        """Add a file that lies in a folder (relative to the root, empty for the root itself)."""
        self._files.setdefault(folder, []).append(IgnoreFile(text))
        self._folders = {}

    def ignores(self, path: str, *, folder: bool = False) -> bool:
        """Whether a path, or a folder that it lies in, is ignored: what lies in an ignored folder can't be taken back."""
        at = path.find("/")
        while at >= 0:
            parent = path[:at]
            if parent not in self._folders:
                self._folders[parent] = self._decide(parent, folder=True)
            if self._folders[parent]:
                return True
            at = path.find("/", at + 1)
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


def tree_of(files: Iterable[tuple[str, str]]) -> IgnoreTree:
    """An `IgnoreTree` of some files, each with its folder and its text."""
    tree = IgnoreTree()
    for folder, text in files:
        tree.add(folder, text)
    return tree


def _parse(line: str) -> _Rule | None:
    text = re.sub(r"(?<!\\) +$", "", line)
    if not text or text.startswith("#"):
        return None
    ignores = not text.startswith("!")
    text = text if ignores else text[1:]
    folders_only = text.endswith("/")
    text = text.rstrip("/") if folders_only else text
    anchored = "/" in text
    text = text.removeprefix("/")
    if not text:
        return None
    source = _translate(text)
    if source is None:
        return None
    return _Rule(
        re.compile(source if anchored else f"(?:.*/)?{source}", re.DOTALL), ignores, folders_only
    )


def _translate(pattern: str) -> str | None:
    """The regular expression of a pattern, or None for one that can't match."""
    found: list[str] = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == "*":
            end = at
            while pattern[end : end + 1] == "*":
                end += 1
            at = _stars(pattern, at, end, found)
        elif char == "?":
            found.append("[^/]")
            at += 1
        elif char == "[":
            end, source = _bracket(pattern, at)
            if source is None:
                return None
            found.append(source)
            at = end
        elif char == "\\":
            if at + 1 == len(pattern):
                return None
            found.append(re.escape(pattern[at + 1]))
            at += 2
        else:
            found.append(re.escape(char))
            at += 1
    return "".join(found)


def _stars(pattern: str, at: int, end: int, found: list[str]) -> int:
    """Translate a run of stars; ``**`` crosses folders only between slashes or at an end."""
    opens = at == 0 or pattern[at - 1] == "/"
    if end - at < 2 or not opens:
        found.append("[^/]*")
        return end
    if pattern[end : end + 1] == "/":
        found.append("(?:.*/)?")
        return end + 1
    found.append(".*" if end == len(pattern) else "[^/]*")
    return end


def _bracket(pattern: str, at: int) -> tuple[int, str | None]:
    """Translate ``[...]``; an unclosed one matches nothing, as with git."""
    end = at + 1
    negated = pattern[end : end + 1] in {"!", "^"}
    end += negated
    first = end
    parts: list[str] = []
    while end < len(pattern) and (pattern[end] != "]" or end == first):
        if pattern[end] == "\\" and end + 1 < len(pattern):
            end += 1
            parts.append(re.escape(pattern[end]))
        elif pattern.startswith("[:", end) and ":]" in pattern[end:]:
            close = pattern.index(":]", end)
            parts.append(_CLASSES.get(pattern[end + 2 : close], ""))
            end = close + 1
        else:
            parts.append("-" if pattern[end] == "-" else re.escape(pattern[end]))
        end += 1
    if end >= len(pattern):
        return end, None
    inside = "".join(parts)
    # A hyphen at an edge stands for itself.
    inside = re.sub(r"^-|-$", r"\\-", inside)
    try:
        re.compile(f"[{inside}]")
    except re.error:
        return end, None
    return end + 1, f"(?!/)[{'^' if negated else ''}{inside}]"


_CLASSES = {
    "alnum": "A-Za-z0-9",
    "alpha": "A-Za-z",
    "blank": r" \t",
    "digit": "0-9",
    "lower": "a-z",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\s",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}
